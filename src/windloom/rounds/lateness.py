"""Counting late tuples: those that find some, or all, of their windows closed.

A window is closed for a query once the query has reported it, or would have: in the first step of a query that answers
from history, windows it is still going to report are open, however long ago they ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.window import Window
from windloom.plan.physical import PartialSet, Plan, PlannedQuery
from windloom.plan.scans import NativeScan, Scan
from windloom.rounds.landmarks import Landmark
from windloom.rounds.state import State
from windloom.rounds.taken import Before, Behind, Mask


@dataclass(frozen=True, slots=True)
class Late:
    """`partly`: tuples that still count in some window; `dropped`: tuples that count in none of theirs."""

    partly: int = 0
    dropped: int = 0

    def __add__(self, other: Late) -> Late:
        return Late(self.partly + other.partly, self.dropped + other.dropped)


@dataclass(frozen=True, slots=True)
class Lateness:
    """Late tuples of the streams and queries that had any.

    A tuple counts once for its stream, however many queries want it, and once for each of these queries.
    """

    streams: Mapping[str, Late] = field(default_factory=dict)
    queries: Mapping[str, Late] = field(default_factory=dict)


def before_round(plan: Plan, state: State) -> dict[str, Before]:
    """By stream, what decides which of a round's tuples are late."""
    found: dict[str, Before] = {}
    for one in plan.sets:
        known = found.get(one.stream, Before())
        since = known.since
        if one.counted_by is not None and (after := state.positions.counts_of(one).after) > TICK_MIN:
            since = tuple(sorted({*since, after + 1}))
        found[one.stream] = Before(max(known.closed, state.closed_of(one)), since)
    return found


def count_late(plan: Plan, behind: Mapping[int, Behind], state: State, landmarks: Mapping[str, Landmark]) -> Lateness:
    """`behind` has, by number of the scan, tuples behind the frontier that their stream had before the round.

    A tuple that no query wants is never late.
    """
    streams: dict[str, Late] = {}
    queries: dict[str, Late] = {}
    for scan in plan.scans:
        held = behind.get(scan.number)
        if held is None:
            continue
        missed, is_open = np.zeros(len(held), np.bool_), np.zeros(len(held), np.bool_)
        for number, bit in _bits(scan):
            wanted = held.holds(bit)
            for planned in plan.sets[number].queries:
                own_missed, own_open = _lost(plan.sets[number], planned, held, state, landmarks)
                own_missed, own_open = own_missed & wanted, own_open & wanted
                missed |= own_missed
                is_open |= own_open
                found = _summed(held, own_missed, own_open)
                if found != Late():
                    queries[planned.name] = found
        found = _summed(held, missed, is_open)
        if found != Late():
            streams[scan.stream] = streams.get(scan.stream, Late()) + found
    return Lateness(streams, queries)


def _bits(scan: Scan) -> list[tuple[int, int | None]]:
    """Every set whose late tuples a scan tells, and the bit of its predicate."""
    fed = [(one.number, one.bit) for one in scan.feeds]
    return fed if isinstance(scan, NativeScan) else [*fed, *scan.watched]


def _summed(held: Behind, missed: Mask, is_open: Mask) -> Late:
    return Late(int(held.tuples[missed & is_open].sum()), int(held.tuples[missed & ~is_open].sum()))


def _lost(
    one: PartialSet, planned: PlannedQuery, held: Behind, state: State, landmarks: Mapping[str, Landmark]
) -> tuple[Mask, Mask]:
    """Which entries find a window of the query closed, and which one that is still open."""
    window, closed, starts = planned.query.window, state.closed_of(one), held.starts
    if one.counted_by is not None:
        # A tuple that comes behind the frontier has no position; those from before anybody asked were not to have one.
        # Where nobody came later every such tuple was: also in a scan without slices of time, where none has a start.
        after = state.positions.counts_of(one).after
        missed = np.ones(len(held), np.bool_) if after == TICK_MIN else starts > after
        return missed, np.zeros(len(held), np.bool_)
    closed_until, reported_from = _reported(window, planned.name, state, closed)
    landmark = landmarks.get(planned.name)
    if landmark is not None:
        # A tuple is in every window from its own stretch on; one before a settled landmark would have moved it.
        is_held = starts >= landmark.start
        own = (starts - window.offset_ticks) // window.slide_ticks
        missed = np.where(is_held, own <= closed_until, planned.name not in state.since)
        return missed, is_held & (closed < TICK_MAX)
    first = (starts - window.offset_ticks - window.range_ticks) // window.slide_ticks + 1
    last = (starts - window.offset_ticks) // window.slide_ticks
    return first <= np.minimum(last, closed_until), np.maximum(first, reported_from) <= last


def _reported(window: Window, name: str, state: State, closed: int) -> tuple[int, int]:
    """The index up to which its windows are closed, and the first one that is still to be reported."""
    closed_until = (closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
    since = state.since.get(name)
    # The first window that starts at or after `since`; with all of history, every window.
    covered_from = TICK_MIN if since is None else -((window.offset_ticks - since) // window.slide_ticks)
    if name in state.fresh:
        closed_until = min(closed_until, covered_from - 1)
    return closed_until, max(closed_until + 1, covered_from)
