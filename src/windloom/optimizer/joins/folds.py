"""How joins are folded: the technique that was asked for, or the one that is predicted to be fastest."""

from __future__ import annotations

from windloom.kernels.families.algebra import Family
from windloom.model.join import Carried, Corner, Join, JoinKind
from windloom.plan.physical import PlannedComponent


def matrix_obstacle(join: Join, sides: tuple[dict[object, PlannedComponent], ...]) -> str | None:
    """Why a slice matrix cannot fold a join; `sides` are the planned components of its sets, by component."""
    if len(join.sides) != 2:
        return f"it has {len(join.sides)} sides"
    (link,) = join.links
    if link.kind is not JoinKind.INNER:
        return f"it is a {link.kind.upper()} join"
    for side in join.sides:
        if side.window.extent_ticks is None:
            return f"the windows of '{side.alias}' grow from a landmark"
    for folded in join.folded:
        if isinstance(folded, Corner):
            return "it asks for extrema of values that both sides make"
        if isinstance(folded, Carried) and _family(join, folded, sides).is_list:
            return f"'{join.sides[folded.side].components[folded.component]}' keeps lists"
    return None


def _family(join: Join, folded: Carried, sides: tuple[dict[object, PlannedComponent], ...]) -> Family:
    return sides[folded.side][join.sides[folded.side].components[folded.component]].family
