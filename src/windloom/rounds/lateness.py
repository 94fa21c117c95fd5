"""Counting late tuples: those that find some, or all, of their windows closed.

A window is closed for a query once the query has reported it, or would have: in the first step of a query that answers
from history, windows it is still going to report are open, however long ago they ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from windloom.model.expression import Expression
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.window import Window
from windloom.plan.physical import PartialSet, Plan
from windloom.rounds.cells import Cells
from windloom.rounds.landmarks import Landmark
from windloom.rounds.state import State


@dataclass(frozen=True, slots=True)
class Late:
    """`partly`: tuples that still count in some window; `dropped`: tuples that count in none of theirs."""

    partly: int = 0
    dropped: int = 0

    def __add__(self, other: Late) -> Late:
        return Late(self.partly + other.partly, self.dropped + other.dropped)


def count_late(one: PartialSet, fresh: Cells, state: State, landmarks: Mapping[str, Landmark]) -> Late:
    """All tuples of a cell are in the same windows, so cells are counted by their COUNT(*), exactly."""
    behind = np.flatnonzero(fresh.starts < state.closed)
    if not len(behind):
        return Late()
    starts, tuples = fresh.starts[behind], fresh.tuples[behind]
    missed, open_ = np.zeros(len(behind), np.bool_), np.zeros(len(behind), np.bool_)
    bounds = {
        (_reported(planned.query.window, planned.name, state), landmarks.get(planned.name), planned.name in state.since)
        for planned in one.queries
    }
    for (window, closed_until, reported_from), landmark, came_later in bounds:
        if landmark is not None:
            # A tuple is in every window from its own stretch on; one before a settled landmark would have moved it.
            held = starts >= landmark.start
            own = (starts - window.offset_ticks) // window.slide_ticks
            missed |= np.where(held, own <= closed_until, not came_later)
            open_ |= held & (state.closed < TICK_MAX)
            continue
        first = (starts - window.offset_ticks - window.range_ticks) // window.slide_ticks + 1
        last = (starts - window.offset_ticks) // window.slide_ticks
        missed |= first <= np.minimum(last, closed_until)
        open_ |= np.maximum(first, reported_from) <= last
    return Late(int(tuples[missed & open_].sum()), int(tuples[missed & ~open_].sum()))


def late_by_stream(plan: Plan, late: Mapping[int, Late]) -> dict[str, Late]:
    """Late tuples of each stream, over all its queries.

    Sets of one predicate hold the same tuples. Of two tuples the later one finds no more windows closed, so of the
    sets' counts one holds the others: late is what is late in the set that has most of these, dropped is what is
    dropped in every set. That is exact unless windows leave gaps (slide > range), where a tuple of a gap may be taken
    for partly late. A tuple that passes several predicates is counted once for each, since partials do not tell which
    of their tuples are the same; one that passes none is in no query and never late.
    """
    members: dict[tuple[str, Expression | None], list[Late]] = {}
    for one in plan.sets:
        members.setdefault((one.stream, one.where), []).append(late.get(one.number, Late()))
    found: dict[str, Late] = {}
    for (stream, _), counts in members.items():
        dropped = min(one.dropped for one in counts)
        any_late = max(one.partly + one.dropped for one in counts)
        found[stream] = found.get(stream, Late()) + Late(any_late - dropped, dropped)
    return found


def _reported(window: Window, name: str, state: State) -> tuple[Window, int, int]:
    """(window, the index up to which its windows are closed, the first index that is still to be reported)."""
    closed_until = (state.closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
    since = state.since.get(name)
    # The first window that starts at or after `since`; with all of history, every window.
    covered_from = TICK_MIN if since is None else -((window.offset_ticks - since) // window.slide_ticks)
    if name in state.fresh:
        closed_until = min(closed_until, covered_from - 1)
    return window, closed_until, max(closed_until + 1, covered_from)
