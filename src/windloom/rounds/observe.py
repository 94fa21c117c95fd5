"""The observations of a round about its streams and sets, from the counts of its step: statistics for later plans."""

from __future__ import annotations

import numpy as np

from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import NativeScan, Scan
from windloom.rounds.step import StepCounts
from windloom.state.state import State
from windloom.statistics.observations import RoundObserved, SetRound, StreamRound
from windloom.weave.round_input import RoundInput
from windloom.weave.weave import ScanCounts


def observe(plan: Plan, before: State, round_input: RoundInput, counts: StepCounts) -> RoundObserved:
    """Return what a round has observed.

    `before` is the state that the round began with, `round_input` what its step was called with.
    """
    read = (*plan.streams, *plan.enriched)
    streams = {stream.name: _stream(plan, stream.name, before, round_input, counts) for stream in read}
    sets = {}
    for partial_set in plan.sets:
        if partial_set.is_relation:
            continue
        pace = _positions_per_second(partial_set, streams[partial_set.stream], counts)
        sets[partial_set.identity] = SetRound(
            counts.tuples.get(partial_set.number, 0),
            counts.partials.get(partial_set.number, 0),
            counts.groups.get(partial_set.number, 0),
            counts.held.get(partial_set.number, 0),
            partial_set.edges.edges_per_second * streams[partial_set.stream].seconds * pace,
        )
    joins = {
        join.name: tuple(counts.links[index, number] for number in range(len(join.join.links)))
        for index, join in enumerate(plan.joins)
        if (index, 0) in counts.links
    }
    return RoundObserved(streams, sets, joins)


def _stream(plan: Plan, name: str, before: State, round_input: RoundInput, counts: StepCounts) -> StreamRound:
    sets = [partial_set for partial_set in plan.sets if partial_set.stream == name]
    # If no scan sees all tuples, and nobody has counted them, the count of the largest set is the best that is known.
    taken = [
        counts.tuples.get(partial_set.number, 0)
        for partial_set in sets
        if partial_set.counted_by is None or partial_set.number in counts.tuples
    ]
    tuples = round_input.events.get(name, max(taken, default=0))
    scanned = next(
        (round_input.taken.scanned[scan.number] for scan in plan.scans if _tells(scan, name, round_input)), ScanCounts()
    )
    conditions = dict(scanned.conditions)
    for partial_set in sets:
        if partial_set.predicate is not None and partial_set.counted_by is None:
            conditions[partial_set.predicate.sql] = counts.tuples.get(partial_set.number, 0)
    seconds, span = _passed(sets, plan.base_of(name), before, round_input)
    return StreamRound(tuples, seconds, span, conditions, scanned.signatures)


def _tells(scan: Scan, name: str, round_input: RoundInput) -> bool:
    """Return whether this is the scan of the stream that has slices of time and shows how far the stream has come."""
    timed = scan.tells if isinstance(scan, NativeScan) else scan.counted_by is None
    return scan.stream == name and timed and scan.number in round_input.taken.scanned


def _passed(sets: list[PartialSet], name: str, before: State, round_input: RoundInput) -> tuple[float, float]:
    """Return the event time by which the stream has advanced, and within which its tuples lie."""
    last, first = round_input.seen.get(name), round_input.first.get(name)
    if last is not None and first is not None:
        passed = last - before.seen.get(name, first)
        return max(0, passed) / TICKS_PER_SECOND, (last - first) / TICKS_PER_SECOND
    spans = [0.0]
    for partial_set in sets:
        cells = round_input.taken.cells.get(partial_set.number)
        if cells is not None and len(cells) and partial_set.counted_by is None:
            # From the first slice to the end of the last one, if that is of mean length.
            starts = int(np.max(cells.starts)) - int(np.min(cells.starts))
            spans.append(starts / TICKS_PER_SECOND + 1 / partial_set.edges.edges_per_second if starts else 0.0)
    return max(spans), max(spans)


def _positions_per_second(partial_set: PartialSet, stream: StreamRound, counts: StepCounts) -> float:
    """Return how many million positions pass per second, of one key if keys are counted separately."""
    if partial_set.counted_by is None:
        return 1.0
    if stream.seconds <= 0:
        return 0.0
    keys = max(1, counts.groups.get(partial_set.number, 1)) if partial_set.counted_by else 1
    return counts.tuples.get(partial_set.number, 0) / keys / TICKS_PER_SECOND / stream.seconds
