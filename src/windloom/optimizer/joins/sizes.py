"""How many rows the sides of a join have at the end of a window, as far as rates and groups tell."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1

from windloom.model.join import Join
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.joins.order import SideSize
from windloom.plan.statistics import Statistics


def side_sizes(join: Join, statistics: Sequence[Statistics]) -> list[SideSize]:
    """`statistics` are those of the sets that answer the sides.

    They tell how many groups a side has, not how many values each of its columns: all columns are taken to have the
    same number.
    """
    return [_size(join, side, one) for side, one in enumerate(statistics)]


def _size(join: Join, side: int, known: Statistics) -> SideSize:
    window, columns = join.sides[side].window, len(join.sides[side].group_by)
    seconds = known.round_length if window.extent_ticks is None else window.extent_ticks / TICKS_PER_SECOND
    # Tuples come at random: so many groups have had one within the window.
    rows = known.groups * -expm1(-known.event_rate * seconds / known.groups)

    def values(places: int) -> float:
        return min(rows, known.groups ** (places / columns)) if columns else 1.0

    keys = {
        number: values(len(link.keys)) for number, link in enumerate(join.links) if side in (link.parent, link.child)
    }
    reported = sum(1 for own, _ in join.groups if own == side)
    return SideSize(rows, keys, values(reported) if reported else 1.0)
