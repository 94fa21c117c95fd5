"""The step of one bucket: facts and segments of the round before, what all tasks have sent, and the answers.

`step_bucket` calls the same step as the driver, but only with the cells that windows which close now can cover. What
the round brings is added as segments; a round in which no window of a set closes reads nothing of that set.

All buckets of a round have equal facts (frontiers, ticks, coverage), because these follow from what every task tells
every bucket, and never from the cells that a bucket happens to hold.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from windloom.answers.answers import Answers
from windloom.answers.blocks import Block
from windloom.checkpoint.frames import frame_bytes, read_frame
from windloom.checkpoint.state_codec import decode, encode
from windloom.errors import WindloomError
from windloom.model.time import TICK_MIN
from windloom.operator.parts import Part
from windloom.operator.segments import BucketSegments, Catalogue, SegmentStore
from windloom.plan.division import division_of
from windloom.plan.plan import PartialSet, Plan
from windloom.rounds.closing import closing_sets, closing_windows
from windloom.rounds.lateness import LateCount, Lateness, before_round, count_late
from windloom.rounds.step import intervals_of, moved, step
from windloom.state.cells import Cells, keep_from
from windloom.state.frontiers import LateTuples, all_inputs
from windloom.state.plan_change import migrate
from windloom.state.segments import Segment, stretch_ticks
from windloom.state.state import CellCoverage, State
from windloom.state.windows.landmark import landmarks_of
from windloom.state.windows.lifecycle import RoundBounds
from windloom.state.windows.registry import life_of
from windloom.weave.round_input import RoundInput, ScanResult, Watermarks

#: Names in the store of a bucket, beside those of segments.
HEAD, PLAN = "head", "plan"

_DAMAGED = "restore the checkpoint of the streaming query from a copy, or start over with a new one"


@dataclass(frozen=True)
class OperatorPlan:
    """A plan as tasks carry it: its bytes, which buckets keep beside their segments, and a key of what they mean.

    Two plans with the same key cut and summarise streams alike and answer the same queries. Plans that mean the same
    may have different keys: segments are then carried from one to the other, which changes nothing.
    """

    plan: Plan
    blob: bytes

    @cached_property
    def key(self) -> str:
        plan = self.plan
        sets = [(each.identity, each.edges, [planned.component for planned in each.components]) for each in plan.sets]
        queries = [planned.query for planned in plan.queries]
        return hashlib.sha256(repr((sets, queries)).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class BucketRound:
    """The outcome of a round in one bucket. `late` and `events` are counted in the first bucket, for the whole round.

    `answers` are made while they are read; everything that outlives the round is in the store already. `began` are the
    facts with which the round began, in terms of its plan.
    """

    answers: Answers | None
    began: State
    late: Lateness = field(default_factory=Lateness)
    events: int = 0
    untimed: int = 0
    frontiers: Mapping[str, int] = field(default_factory=dict)

    def blocks(self) -> Iterator[Block]:
        return iter(()) if self.answers is None else self.answers.blocks()

    @property
    def late_total(self) -> LateCount:
        return sum(self.late.streams.values(), LateCount())


#: Decides the frontiers of a round: from the facts before it, the largest and the smallest ticks, by stream.
Frontiers = Callable[[State, Mapping[str, int], Mapping[str, int]], RoundInput]


def by_delay(plan: Plan) -> Frontiers:
    """Return frontiers that follow event time at the delay of each stream; no stream is ever idle."""
    return Watermarks({stream.name: stream for stream in plan.streams}, lambda: 0.0, None).after


def at_the_end(plan: Plan) -> Frontiers:
    """Return frontiers behind which every window is closed: those of a batch run."""
    return Watermarks({stream.name: stream for stream in plan.streams}, lambda: 0.0, None).ended


def step_bucket(
    planned: OperatorPlan,
    store: SegmentStore,
    part: Part,
    frontiers: Frontiers,
    *,
    is_first: bool,
    history_ticks: int = 0,
) -> BucketRound:
    """Run a round of one bucket, and leave facts and segments in its store; `is_first` is the first bucket."""
    plan = planned.plan
    facts, segments, is_carried = _read_head(planned, store, part.buckets)
    largest = {name: seen.last for name, seen in part.ticks.items() if seen.last is not None}
    smallest = {name: seen.first for name, seen in part.ticks.items() if seen.first is not None}
    given = frontiers(facts, largest, smallest)
    advanced = moved(facts, given, plan)
    intervals = intervals_of(facts, given, plan)
    closing = closing_sets(plan, intervals)
    loaded: dict[int, Cells] = {}
    for number, tick in closing.items():
        cells = segments.since(number, tick, closing_windows(plan.sets[number], intervals, advanced))
        if cells is not None:
            loaded[number] = cells
    fresh = {number: cells for number, cells in part.cells.items() if number in closing}
    after, answers = advanced, None
    if closing:
        state = replace(facts, cells=loaded)
        after, answers, _ = step(state, given.taking(ScanResult(fresh)), plan, history_ticks=history_ticks)
    behind = _behind(plan, facts, part.passed) if is_first else {}
    until = {inputs: advanced.closed_over(inputs) for inputs in all_inputs(plan)}
    landmarks = landmarks_of(plan, facts.since, advanced.first, advanced.seen, until)
    late = count_late(plan, behind, facts, landmarks) if behind else Lateness()
    turn = RoundBounds(facts, until, after.positions, landmarks, history_ticks)
    history: dict[int, CellCoverage] = {}
    for partial_set in plan.sets:
        number, needed_from = partial_set.number, life_of(partial_set.window).needed_from(partial_set, turn)
        if life_of(partial_set.window).folds(partial_set):
            if number in closing:  # what it keeps is not what it was given: cells are folded
                segments.drop_all(number)
                if number in after.cells:
                    segments.add(number, after.cells[number])
        else:
            segments.drop(number, needed_from)
            if number in part.cells:
                segments.add(number, keep_from(part.cells[number], needed_from))
        coverage = facts.history_of(number)
        # The first tick of a stream is settled once the frontier has passed it; a late tuple may be earlier.
        ticks = [ticks[partial_set.base] for ticks in (advanced.first, smallest) if partial_set.base in ticks]
        if ticks and needed_from > _first_start(partial_set, coverage, min(ticks)):
            coverage = coverage.forget(needed_from)
        if coverage != CellCoverage():
            history[number] = coverage
    segments.compact()
    left = replace(after, cells={}, owed={}, history=history)
    _write_head(planned, store, part.buckets, left, segments, writes_plan=is_carried)
    if not is_first:
        return BucketRound(answers, facts)
    events = sum(seen.tuples or 0 for seen in part.ticks.values())
    untimed = sum(seen.untimed for seen in part.ticks.values())
    return BucketRound(answers, facts, late, events, untimed, left.frontiers)


def _first_start(partial_set: PartialSet, coverage: CellCoverage, first: int) -> int:
    """Return the earliest tick at which the slice of the tick `first` may begin, now or in earlier slicings."""
    slicings = (partial_set.edges, *(cut.edges for cut in coverage.cuts))
    return min(int(edges.last_edge(np.array([first], np.int64))[0]) for edges in slicings)


def _behind(plan: Plan, facts: State, passed: Mapping[int, LateTuples]) -> dict[int, LateTuples]:
    """Return the tuples that lie behind where some query was closed before the round, by scan."""
    bounds = before_round(plan, facts)
    behind = {}
    for number, entries in passed.items():
        late = entries.starts < bounds[plan.scans[number].stream].closed
        if late.any():
            words = tuple(word[late] for word in entries.words)
            behind[number] = LateTuples(entries.starts[late], words, entries.tuples[late])
    return behind


# The head: the facts of a bucket and the catalogue of its segments.


def _read_head(planned: OperatorPlan, store: SegmentStore, buckets: int) -> tuple[State, BucketSegments, bool]:
    """Return facts and segments in terms of the plan, and whether the plan is new to the bucket."""
    blob = store.get(HEAD)
    if blob is None:
        return State(), BucketSegments(store, planned.plan, {}, 0), True
    frame = read_frame("head", "the state of a bucket", blob, _DAMAGED)
    facts, body = decode(bytes(frame.blobs["facts"])), frame.body
    if body["buckets"] != buckets:
        raise WindloomError(
            f"the checkpoint divides its state into {body['buckets']} buckets, and not into {buckets}",
            "the bucket of a group depends on their number",
            f"start the query again with it: loom.answers(…, buckets={body['buckets']})",
        )
    catalogue = read_catalogue(body)
    if body["plan"] == planned.key:
        return facts, BucketSegments(store, planned.plan, catalogue, body["next"]), False
    written = store.get(PLAN)
    assert written is not None, "the plan is written with the first head"
    try:
        # Written by this operator, into the checkpoint from which it also takes its state.
        old: Plan = pickle.loads(written)
    except (AttributeError, ImportError, TypeError) as error:
        raise WindloomError(
            "the operator's checkpoint was written by another version of Windloom, with other queries",
            str(error),
            "start once with that version and the new queries, or start with a new checkpoint",
        ) from None
    return *_carried(facts, catalogue, body["next"], old, planned.plan, store), True


def read_catalogue(body: Mapping[str, Any]) -> Catalogue:
    """Return the catalogue that the body of a head holds."""
    return {
        int(number): tuple(Segment.of_figures(figures) for figures in segments)
        for number, segments in body["sets"].items()
    }


def _carried(
    facts: State, catalogue: Catalogue, next_number: int, old: Plan, new: Plan, store: SegmentStore
) -> tuple[State, BucketSegments]:
    """Return facts and segments in terms of the new plan; segments of sets that are as before stay as they are."""
    known, before, after = new.by_identity, division_of(old), division_of(new)
    for each in old.sets:
        if each.identity in known and before.of(each.number) != after.of(known[each.identity].number):
            raise WindloomError(
                "the operator's checkpoint divides groups by other columns than the new queries need",
                f"joins that were added or removed change how '{each.text}' is divided into buckets",
                "start the queries with a new checkpoint",
            )
    alike = {
        each.number: known[each.identity].number
        for each in old.sets
        if each.identity in known
        and known[each.identity].edges == each.edges
        and known[each.identity].components == each.components
        and stretch_ticks(known[each.identity]) == stretch_ticks(each)
    }
    stay = {alike[number]: segments for number, segments in catalogue.items() if number in alike}
    held_before = BucketSegments(store, old, catalogue, next_number)
    changed = [number for number in catalogue if number not in alike]
    cells = {number: held for number in changed if (held := held_before.since(number, TICK_MIN)) is not None}
    state = migrate(replace(facts, cells=cells), old, new)
    for number in changed:
        held_before.drop_all(number)
    segments = BucketSegments(store, new, stay, held_before.next_number)
    for number, held in state.cells.items():
        segments.add(number, held)
    return replace(state, cells={}), segments


def _write_head(
    planned: OperatorPlan,
    store: SegmentStore,
    buckets: int,
    facts: State,
    segments: BucketSegments,
    *,
    writes_plan: bool,
) -> None:
    sets = {str(number): [each.figures for each in held] for number, held in segments.catalogue.items()}
    body = {"plan": planned.key, "buckets": buckets, "next": segments.next_number, "sets": sets}
    store.put(HEAD, frame_bytes("head", body, {"facts": encode(facts)}))
    if writes_plan:
        store.put(PLAN, planned.blob)
