"""The windows that close in a round, and which cells they read: a round in which none closes reads nothing of a set."""

from __future__ import annotations

import numpy as np

from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import TimeWindow, Window
from windloom.plan.plan import PartialSet, Plan
from windloom.state.pending import Intervals, readers_of
from windloom.state.segments import Closing
from windloom.state.state import State
from windloom.state.windows.registry import life_of


def closing_sets(plan: Plan, intervals: Intervals) -> dict[int, int]:
    """Return the sets that are read in a round, each with the tick from which its cells are needed.

    These are the sets with a window that closes, and those whose cells are folded in every round.
    """
    closing: dict[int, int] = {}
    for partial_set in plan.sets:
        ticks = []
        for reader in readers_of(plan, partial_set.number):
            interval = intervals[reader.name]
            if _ends_between(reader.query.window, *interval):
                ticks.append(interval[0])
        if life_of(partial_set.window).folds(partial_set):
            closing[partial_set.number] = TICK_MIN
        elif ticks:
            extent = max(planned.query.window.extent_ticks or 0 for planned in partial_set.queries)
            earliest = min(ticks)
            closing[partial_set.number] = TICK_MIN if earliest <= TICK_MIN + extent else earliest - extent + 1
    return closing


#: If more windows of a set close in a round, few cells lie on the same side of all their edges.
_MOST_WINDOWS = 1 << 10


def closing_windows(partial_set: PartialSet, intervals: Intervals, after: State) -> Closing | None:
    """Return the windows of a set that close; None if there are too many, or some do not slide over time."""
    starts, ends, slides = list[int](), list[int](), list[int]()
    for member in partial_set.queries:
        window = member.query.window
        if not isinstance(window, TimeWindow) or member.name not in intervals:  # sides close with their joins
            return None
        begin, until = intervals[member.name]
        if begin >= until:
            continue
        slide, residue = window.slide_ticks, window.end_ticks
        if begin == TICK_MIN or until == TICK_MAX or (until - begin) // slide > _MOST_WINDOWS:
            return None
        first_end = begin - (begin - residue) % slide + slide
        own = range(first_end, until + 1, slide)
        ends += own
        starts += [end - window.range_ticks for end in own]
        slides += [slide] * len(own)
    if not starts or len(starts) > _MOST_WINDOWS:
        return None
    sealed = after.closed_of(partial_set)
    return Closing(sealed, np.array(starts, np.int64), np.array(ends, np.int64), np.array(slides, np.int64))


def _ends_between(window: Window, after: int, until: int) -> bool:
    """Return whether some window may end behind the tick `after`, and not behind `until`."""
    if after >= until:
        return False
    if not isinstance(window, TimeWindow) or after == TICK_MIN:
        return True
    ends, slide = window.end_ticks, window.slide_ticks
    return (until - ends) // slide > (after - ends) // slide
