"""The number of rows of the sides of a join at the end of a window, estimated from rates and groups."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1

from windloom.model.join import Join
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.joins.order import SideSize
from windloom.plan.links import LinkEstimate
from windloom.plan.statistics import Statistics


def side_sizes(join: Join, statistics: Sequence[Statistics], observed: Sequence[LinkEstimate] = ()) -> list[SideSize]:
    """The sizes of sides, from the statistics of the sets that answer them and what rounds have `observed` of links.

    Statistics give the number of groups of a side, but not the number of values of each of its columns: where no round
    has shown it, all columns are assumed to have the same number.
    """
    return [_size(join, side, statistic, observed) for side, statistic in enumerate(statistics)]


def _size(join: Join, side: int, known: Statistics, observed: Sequence[LinkEstimate]) -> SideSize:
    window, columns = join.sides[side].window, len(join.sides[side].group_by)
    seconds = known.round_length if window.extent_ticks is None else window.extent_ticks / TICKS_PER_SECOND
    # Tuples come at random: this is how many groups have had one within the window.
    rows = known.groups * -expm1(-known.event_rate * seconds / known.groups)

    def values(places: int) -> float:
        return min(rows, known.groups ** (places / columns)) if columns else 1.0

    keys, matching = {}, {}
    for number, link in enumerate(join.links):
        if side not in (link.parent, link.child):
            continue
        keys[number] = values(len(link.keys))
        if observed:
            shown = observed[number].parent_keys if side == link.parent else observed[number].child_keys
            keys[number] = min(rows, max(1.0, shown))
            matching[number] = observed[number].matching
    reported = sum(1 for own, _ in join.groups if own == side)
    return SideSize(rows, keys, values(reported) if reported else 1.0, matching)
