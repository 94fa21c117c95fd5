"""Counts late tuples: those for which some, or all, of their windows are closed.

A window is closed for a query once the query has reported it, or would have. In the first step of a query that answers
from history, the windows that it is still going to report are open, however long ago they ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from windloom.model.arrays import Mask
from windloom.model.windows import Window
from windloom.plan.plan import PartialSet, Plan, PlannedJoin, PlannedQuery
from windloom.plan.scans import NativeScan, Scan
from windloom.state.frontiers import LateBounds, LateTuples, inputs_of
from windloom.state.state import State
from windloom.state.windows.lifecycle import Landmark, ReportProgress
from windloom.state.windows.registry import life_of
from windloom.state.windows.time import time_lost
from windloom.weave.round_input import RoundInput


@dataclass(frozen=True, slots=True)
class LateCount:
    """`partly`: tuples that still count in some window; `dropped`: tuples that count in none of theirs."""

    partly: int = 0
    dropped: int = 0

    def __add__(self, other: LateCount) -> LateCount:
        return LateCount(self.partly + other.partly, self.dropped + other.dropped)


@dataclass(frozen=True, slots=True)
class Lateness:
    """Late tuples of the streams and queries that had any.

    A tuple counts once for its stream, however many queries want it, and once for each of these queries.
    """

    streams: Mapping[str, LateCount] = field(default_factory=dict)
    queries: Mapping[str, LateCount] = field(default_factory=dict)


def before_round(plan: Plan, state: State) -> dict[str, LateBounds]:
    """Return what decides which tuples of a round are late, by stream."""
    before_by_stream: dict[str, LateBounds] = {}
    for partial_set in plan.sets:
        if partial_set.is_relation:
            continue
        known = before_by_stream.get(partial_set.stream, LateBounds())
        since = tuple(sorted({*known.since, *life_of(partial_set.window).lateness_ticks(partial_set, state)}))
        closed = max(known.closed, *map(state.closed_over, inputs_of(partial_set)))
        before_by_stream[partial_set.stream] = LateBounds(closed, state.closed_over((partial_set.base,)), since)
    for planned in plan.rows:
        for stream in planned.rows.streams:
            known = before_by_stream.get(stream, LateBounds(frontier=state.closed_over((stream,))))
            before_by_stream[stream] = replace(known, closed=max(known.closed, state.closed_over(planned.query.inputs)))
    for store in plan.stores:  # even if no query asks for its tuples yet
        before_by_stream.setdefault(store.stream, LateBounds(frontier=state.closed_over((store.stream,))))
    return before_by_stream


def count_late(
    plan: Plan, behind: Mapping[int, LateTuples], state: State, landmarks: Mapping[str, Landmark]
) -> Lateness:
    """Return the late tuples of a round, by stream and by query; a tuple that no query wants is never late.

    `behind` has, by number of the scan, tuples behind the frontier that their stream had before the round.
    """
    streams: dict[str, LateCount] = {}
    queries: dict[str, LateCount] = {}
    # The joins that each side answers, by name of the side; a join with itself may be there twice.
    joins: dict[str, list[PlannedJoin]] = {}
    for join in plan.joins:
        for place in join.sides:
            joins.setdefault(place.name, []).append(join)
    for scan in plan.scans:
        entries = behind.get(scan.number)
        if entries is None:
            continue
        missed, is_open = np.zeros(len(entries), np.bool_), np.zeros(len(entries), np.bool_)
        # Every set whose late tuples a scan reports, and the bit of its predicate.
        fed = [(feed.number, feed.bit) for feed in scan.feeds]
        for number, bit in fed if isinstance(scan, NativeScan) else [*fed, *scan.watched]:
            wanted = entries.holds(bit)
            for name, window, reported in _asking(plan, plan.sets[number], state, landmarks, joins):
                own_missed, own_open = life_of(window).lost(plan.sets[number], window, reported, entries, state)
                own_missed, own_open = own_missed & wanted, own_open & wanted
                missed |= own_missed
                is_open |= own_open
                if (late_count := _summed(entries, own_missed, own_open)) != LateCount():
                    queries[name] = queries.get(name, LateCount()) + late_count
        for name, own_missed, own_open in _of_rows(plan, scan, entries, state):
            missed |= own_missed
            is_open |= own_open
            if (late_count := _summed(entries, own_missed, own_open)) != LateCount():
                queries[name] = late_count
        if (late_count := _summed(entries, missed, is_open)) != LateCount():
            # An enriched stream has scans of its own, which see the same tuples: the largest count is the stream's.
            base = plan.base_of(scan.stream)
            streams[base] = max(streams.get(base, LateCount()), late_count, key=lambda late: late.partly + late.dropped)
    return Lateness(streams, queries)


def late_from(plan: Plan, round_input: RoundInput) -> dict[str, int]:
    """Return the start of the first slice that holds a late tuple of a round, by stream."""
    first_by_stream: dict[str, int] = {}
    for scan in plan.scans:
        entries = round_input.taken.behind.get(scan.number)
        if entries is not None and len(entries):
            first = int(np.min(entries.starts))
            first_by_stream[scan.stream] = min(first, first_by_stream.get(scan.stream, first))
    return first_by_stream


def _of_rows(plan: Plan, scan: Scan, entries: LateTuples, state: State) -> Iterator[tuple[str, Mask, Mask]]:
    """Yield late entries in a closed window, and those in an open one, for each row query that reads the store."""
    stored = None if isinstance(scan, NativeScan) else scan.kept
    strands: dict[str, list[tuple[Window, int | None]]] = {}
    for name, window, bit in () if stored is None else stored.strands:
        strands.setdefault(name, []).append((window, bit))
    for name, windows in strands.items():
        query = plan.query(name).query
        missed, is_open = np.zeros(len(entries), np.bool_), np.zeros(len(entries), np.bool_)
        for window, bit in windows:
            since = state.since.get(name)
            if since is not None:
                since += query.window.range_ticks - window.range_ticks  # windows pair by their ends
            reported = ReportProgress(state.closed_over(query.inputs), since, name in state.fresh)
            own_missed, own_open = time_lost(window, reported, entries.starts)
            wanted = entries.holds(bit)
            missed |= own_missed & wanted
            is_open |= own_open & wanted
        yield name, missed, is_open


def _asking(
    plan: Plan,
    partial_set: PartialSet,
    state: State,
    landmarks: Mapping[str, Landmark],
    joins: Mapping[str, list[PlannedJoin]],
) -> Iterator[tuple[str, Window, ReportProgress]]:
    """Yield everything that asks a set: names of queries, their windows, and how far they report."""
    for planned in partial_set.queries:
        window, landmark = planned.query.window, landmarks.get(planned.name)
        closed = state.closed_over(planned.query.inputs)
        if isinstance(planned, PlannedQuery):
            name = planned.name
            yield name, window, ReportProgress(closed, state.since.get(name), name in state.fresh, landmark)
            continue
        for join in joins[planned.name]:
            since = state.since.get(join.name)
            if since is not None and landmark is None:
                since += join.query.window.range_ticks - window.range_ticks  # windows pair by their ends
            elif landmark is not None:
                since = state.since.get(planned.name)
            yield join.name, window, ReportProgress(closed, since, join.name in state.fresh, landmark)


def _summed(entries: LateTuples, missed: Mask, is_open: Mask) -> LateCount:
    return LateCount(int(entries.tuples[missed & is_open].sum()), int(entries.tuples[missed & ~is_open].sum()))
