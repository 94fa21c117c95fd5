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
from windloom.plan.physical import Plan, Scan
from windloom.rounds.cells import Cells, group_of_cells
from windloom.rounds.feeds import holds
from windloom.rounds.landmarks import Landmark
from windloom.rounds.state import State


@dataclass(frozen=True, slots=True)
class Late:
    """`partly`: tuples that still count in some window; `dropped`: tuples that count in none of theirs."""

    partly: int = 0
    dropped: int = 0

    def __add__(self, other: Late) -> Late:
        return Late(self.partly + other.partly, self.dropped + other.dropped)


def count_late(plan: Plan, scan: Scan, fresh: Cells, state: State, landmarks: Mapping[str, Landmark]) -> Late:
    """All tuples of a scan's cell are in the same windows of the same queries, so cells are counted, exactly."""
    closed_of = {fed.number: state.closed_of(plan.sets[fed.number]) for fed in scan.feeds}
    behind = np.flatnonzero(fresh.starts < max(closed_of.values()))
    if not len(behind):
        return Late()
    starts, tuples, groups = fresh.starts[behind], fresh.tuples[behind], group_of_cells(fresh)[behind]
    missed, open_ = np.zeros(len(behind), np.bool_), np.zeros(len(behind), np.bool_)
    bounds = {
        (
            fed.bit,
            closed_of[fed.number],
            _reported(planned.query.window, planned.name, state, closed_of[fed.number]),
            landmarks.get(planned.name),
            planned.name in state.since,
        )
        for fed in scan.feeds
        for planned in plan.sets[fed.number].queries
    }
    for bit, closed, (window, closed_until, reported_from), landmark, came_later in bounds:
        wanted = holds(scan, fresh, bit)
        concerned = True if wanted is None else wanted[groups]
        if landmark is not None:
            # A tuple is in every window from its own stretch on; one before a settled landmark would have moved it.
            held = starts >= landmark.start
            own = (starts - window.offset_ticks) // window.slide_ticks
            missed |= concerned & np.where(held, own <= closed_until, not came_later)
            open_ |= concerned & held & (closed < TICK_MAX)
            continue
        first = (starts - window.offset_ticks - window.range_ticks) // window.slide_ticks + 1
        last = (starts - window.offset_ticks) // window.slide_ticks
        missed |= concerned & (first <= np.minimum(last, closed_until))
        open_ |= concerned & (np.maximum(first, reported_from) <= last)
    return Late(int(tuples[missed & open_].sum()), int(tuples[missed & ~open_].sum()))


_EVERY_TUPLE: frozenset[Expression | None] = frozenset((None,))


def late_by_stream(plan: Plan, late: Mapping[int, Late]) -> dict[str, Late]:
    """Late tuples of each stream, over all its queries: exact where one scan feeds them all.

    Scans of the same predicates hold the same tuples, and so do all that have a set without one. Of two tuples the
    later one finds no more windows closed, so of the scans' counts one holds the others: late is what is late in the
    scan that has most of these, dropped is what is dropped in every one. That is exact unless windows leave gaps
    (slide > range), where a tuple of a gap may be taken for partly late. A tuple that several scans of different
    predicates hold is counted once for each, since partials do not tell which of their tuples are the same; one that no
    query wants is never late.
    """
    members: dict[tuple[str, frozenset[Expression | None]], list[Late]] = {}
    for scan in plan.scans:
        predicates = frozenset(plan.sets[fed.number].where for fed in scan.feeds)
        if None in predicates:
            predicates = _EVERY_TUPLE
        members.setdefault((scan.stream, predicates), []).append(late.get(scan.number, Late()))
    found: dict[str, Late] = {}
    for (stream, _), counts in members.items():
        dropped = min(one.dropped for one in counts)
        any_late = max(one.partly + one.dropped for one in counts)
        found[stream] = found.get(stream, Late()) + Late(any_late - dropped, dropped)
    return found


def _reported(window: Window, name: str, state: State, closed: int) -> tuple[Window, int, int]:
    """(window, the index up to which its windows are closed, the first index that is still to be reported)."""
    closed_until = (closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
    since = state.since.get(name)
    # The first window that starts at or after `since`; with all of history, every window.
    covered_from = TICK_MIN if since is None else -((window.offset_ticks - since) // window.slide_ticks)
    if name in state.fresh:
        closed_until = min(closed_until, covered_from - 1)
    return window, closed_until, max(closed_until + 1, covered_from)
