"""Early or late: which sides of joins Spark aggregates before anything leaves it, a bit for each side (source D, §5).

A side is *early* if Spark groups its tuples by slice, join keys and grouping columns, so that partials leave it. It is
*late* if its tuples leave Spark as they are, and kernels aggregate them where the step runs. Both give the same cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from windloom.errors import WindloomError
from windloom.plan.physical import PlannedJoin

#: The values that `joins` may have; bits follow EAP, one for each side in the order of FROM.
JOIN_PLANS = ("auto", "LAP", "EAP", "EAP10", "EAP01", "EAP11")
_BITS = re.compile(r"EAP([01]+)")


def check_join_plan(name: str) -> None:
    if name not in JOIN_PLANS and _BITS.fullmatch(name) is None:
        raise WindloomError(
            f"unknown plan of joins '{name}'",
            "it says which sides are aggregated early: LAP is none, EAP all, EAP10 the first of two",
            "use auto, LAP, EAP, or EAP and a bit for each side",
        )


def forced_sets(name: str, joins: Iterable[PlannedJoin]) -> Mapping[int, bool]:
    """Whether each set is early, by its number; empty if nothing is forced.

    A set is read once, so it is early if any of the sides that it answers is.
    """
    if name == "auto":
        return {}
    early: dict[int, bool] = {}
    for join in joins:
        for side, is_early in zip(join.sides, _bits(name, join), strict=True):
            early[side.set] = early.get(side.set, False) or is_early
    return early


def _bits(name: str, join: PlannedJoin) -> list[bool]:
    sides = len(join.sides)
    if name in ("LAP", "EAP"):
        return [name == "EAP"] * sides
    match = _BITS.fullmatch(name)
    assert match is not None, "names are checked when options are made"
    if len(match[1]) != sides:
        raise WindloomError(
            f"query '{join.name}' cannot be planned as {name}",
            f"it joins {sides} sources, and the plan has {len(match[1])} bits",
            "give a bit for each source, or use LAP or EAP, which fit any number of them",
        )
    return [bit == "1" for bit in match[1]]
