"""The observations of a round about its streams and sets, from the counts of its step: statistics for later plans."""

from __future__ import annotations

import numpy as np

from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import NativeScan
from windloom.rounds.step import StepCounts
from windloom.state.state import State
from windloom.statistics.observations import RoundObserved, StreamRound
from windloom.statistics.set_statistics import SetRound
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
        number, seconds, pace = partial_set.number, streams[partial_set.stream].seconds, 1.0
        tuples, groups = counts.tuples.get(number, 0), counts.groups.get(number, 0)
        if partial_set.counted_by is not None:
            # How many million positions pass per second, of one key if keys are counted separately.
            keys = max(1, counts.groups.get(number, 1)) if partial_set.counted_by else 1
            pace = 0.0 if seconds <= 0 else tuples / keys / TICKS_PER_SECOND / seconds
        sets[partial_set.identity] = SetRound(
            tuples,
            counts.partials.get(number, 0),
            groups,
            counts.held.get(number, 0),
            partial_set.edges.edges_per_second * seconds * pace,
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
    # The scan of the stream that has slices of time shows how far the stream has come.
    timed = (
        scan.number
        for scan in plan.scans
        if scan.stream == name and (scan.tells if isinstance(scan, NativeScan) else scan.counted_by is None)
    )
    scanned_by = round_input.taken.scanned
    scanned = next((scanned_by[number] for number in timed if number in scanned_by), ScanCounts())
    conditions = dict(scanned.conditions)
    for partial_set in sets:
        if partial_set.predicate is not None and partial_set.counted_by is None:
            conditions[partial_set.predicate.sql] = counts.tuples.get(partial_set.number, 0)
    seconds, span = _passed(sets, plan.base_of(name), before, round_input)
    return StreamRound(tuples, seconds, span, conditions, scanned.signatures)


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
