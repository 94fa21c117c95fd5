"""The step: merges cells into the open slices, moves the frontiers, and answers the windows they have passed.

`step(state, round_input, plan)` is pure: it uses no Spark, clock or files, and equal inputs give equal outputs. The
driver runs it for all groups, tasks of the Spark operator run it bucket by bucket, a batch run is one step with every
frontier at +∞, and recovery folds it over the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windloom.answers.answers import Answers
from windloom.answers.emission.early import early_turns
from windloom.answers.joins.key_counts import count_links
from windloom.answers.rows.row_queries import asked_rows, rows_turn, without_lost
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.plan.plan import PartialSet, Plan
from windloom.rounds.closing import closing_sets, closing_windows
from windloom.rounds.lateness import Lateness, count_late
from windloom.state.cells import Cells
from windloom.state.frontiers import Inputs, advanced, ahead_of_idle, all_inputs
from windloom.state.held import HeldSegments, HeldSets, held_after, is_divided
from windloom.state.pending import (
    AnswerPass,
    CellVersions,
    Intervals,
    can_wait,
    left_owing,
    lineage_of,
    members_behind,
    passes_of,
    readers_of,
    sets_asked,
)
from windloom.state.state import CellCoverage, PendingWindows, State
from windloom.state.tuple_store import ReportedWindows
from windloom.state.windows.landmark import first_ticks, landmarks_of
from windloom.state.windows.lifecycle import Landmark, RoundBounds, Span
from windloom.state.windows.registry import life_of
from windloom.statistics.observations import LinkRound
from windloom.weave.round_input import RoundInput
from windloom.weave.sorted_tuples import KeyedSides


@dataclass(frozen=True, slots=True)
class StepCounts:
    """The counts of one step, by number of the set: its tuples, its new partials, and late tuples.

    `held` are the cells from which windows were answered, those of earlier rounds included, and `groups` their groups.
    `links` counts the links of joins, by place of the join in the plan and number of the link.
    """

    tuples: Mapping[int, int]
    partials: Mapping[int, int]
    late: Lateness = field(default_factory=Lateness)
    groups: Mapping[int, int] = field(default_factory=dict)
    held: Mapping[int, int] = field(default_factory=dict)
    links: Mapping[tuple[int, int], LinkRound] = field(default_factory=dict)


def step(
    state: State, round_input: RoundInput, plan: Plan, *, history_ticks: int = 0
) -> tuple[State, Answers, StepCounts]:
    """Return the state after a round, its answers, and its counts.

    Each query closes windows up to the least frontier of its inputs; a frontier never moves backwards. Cells are kept
    as long as an open window may cover them, and for `history_ticks` behind where their set is closed.
    """
    positions = state.positions if round_input.rows is None else round_input.rows
    state = without_lost(state, round_input, plan)
    advanced_state = moved(state, round_input, plan)
    until = {inputs: advanced_state.closed_over(inputs) for inputs in all_inputs(plan)}
    landmarks = landmarks_of(plan, state.since, advanced_state.first, advanced_state.seen, until)
    answered = _answered(state, plan, until, round_input.postponed)
    turn = RoundBounds(state, until, positions, landmarks, history_ticks)
    intervals = _intervals(state, plan, until, answered)
    asked, landmarks_now = intervals, landmarks
    early = [name for name, turn in early_turns(plan, state, advanced_state).items() if turn.is_due]
    if early:
        # Their open windows are answered too, as if the streams ended here: one without tuples has no row.
        ended = dict.fromkeys(all_inputs(plan), TICK_MAX)
        landmarks_now = landmarks_of(plan, state.since, advanced_state.first, advanced_state.seen, ended)
        asked = {**intervals, **{name: (intervals[name][0], TICK_MAX) for name in early}}
    owing = replace(turn, behind=members_behind(plan, answered))
    sets = _Sets(plan, state, advanced_state, round_input, turn, owing, answered, asked)
    for partial_set in plan.sets:
        sets.take(partial_set)
    rows = rows_turn(state, round_input, plan, advanced_state, until, intervals)
    answers = sets.answers(asked, landmarks_now)
    answers = replace(answers, rows=rows.answered, keyed=round_input.taken.keyed)
    since = _since(state, plan, until, answered)
    after_round = replace(
        advanced_state,
        cells=held_after(sets.kept, sets.divided, plan) if isinstance(state.cells, HeldSets) else sets.kept,
        since=since,
        fresh=frozenset(),
        history=sets.history,
        positions=positions,
        answered=answered,
        owed=sets.owed,
        reported=rows.reported,
        kept=rows.kept,
        summaries=rows.summaries,
    )
    late = count_late(plan, round_input.taken.behind, state, landmarks)
    counted = {number: held for number, held in sets.cells.items() if not plan.sets[number].is_relation}
    groups = {number: held.groups if len(held) else 0 for number, held in counted.items()}
    cells = {number: len(held) for number, held in counted.items()}
    groups |= {number: held.groups for number, held in sets.divided.items()}
    cells |= {number: held.count for number, held in sets.divided.items()}
    tuples = KeyedSides(plan, round_input.taken.keyed)
    for place, keyed_set in tuples.sets:
        # Counted as if cells had been made of them.
        number, grouped = keyed_set.number, tuples.grouped(place, keyed_set.number)
        sets.tuples[number], groups[number] = tuples.count(place), int(grouped.groups.sum())
        sets.partials[number] = cells[number] = grouped.cells
    links = count_links(plan, sets.cells, tuples)
    return after_round, answers, StepCounts(sets.tuples, sets.partials, late, groups, cells, links)


class _Sets:
    """The sets of a plan in a round: the cells that each is answered from, those that it keeps, its pending windows."""

    def __init__(
        self,
        plan: Plan,
        state: State,
        advanced_state: State,
        given: RoundInput,
        now: RoundBounds,
        owing: RoundBounds,
        answered: Mapping[str, int],
        asked: Intervals,
    ) -> None:
        self._plan, self._state, self._given, self._now, self._owing = plan, state, given, now, owing
        self._advanced, self._answered, self._asked = advanced_state, answered, asked
        self._closing = closing_sets(plan, asked) if isinstance(state.cells, HeldSets) and state.cells.segments else {}
        self.spans: dict[int, Span] = {}
        self.cells: dict[int, Cells] = {}
        self.kept: dict[int, Cells] = {}
        self.divided: dict[int, HeldSegments] = {}
        self.history: dict[int, CellCoverage] = {}
        self.tuples: dict[int, int] = {}
        self.partials: dict[int, int] = {}
        self.lineages: dict[int, CellVersions] = {}
        self.owed: dict[int, PendingWindows] = {}

    def take(self, partial_set: PartialSet) -> None:
        """Merge new cells into those of a set, and keep the cells that are still needed."""
        number, state = partial_set.number, self._state
        if self._take_segments(partial_set):
            return
        before, past = state.cells.get(number), state.history_of(number)
        fresh, current = self._given.taken.cells.get(number), before
        if fresh is not None:
            if not partial_set.is_relation:
                self.tuples[number], self.partials[number] = int(fresh.tuples.sum()), len(fresh)
            current = fresh if before is None else life_of(partial_set.window).merged(before, fresh)
            current = life_of(partial_set.window).joined(partial_set, current, state.closed_of(partial_set))
        if current is not None:
            left = life_of(partial_set.window).close(partial_set, current, past, self._now)
            self.cells[number], self.kept[number], past = current, left.cells, left.history
            if left.span is not None:
                self.spans[number] = left.span
        if past != CellCoverage():
            self.history[number] = past
        owed = state.owed.get(number)
        if owed is not None:
            self.lineages[number] = lineage_of(partial_set, owed, before, fresh, current, state, self._plan)
        names = {
            planned.name: self._answered[planned.name]
            for planned in (readers_of(self._plan, number) if self._answered else ())
            if planned.name in self._answered
        }
        if names:
            lineage = self.lineages.get(number) or CellVersions(current)
            self.owed[number] = left_owing(partial_set, lineage, names, self._now, self._owing)

    def _take_segments(self, partial_set: PartialSet) -> bool:
        """Do what `take` does for a set in segments, and return whether it is: only what the round changes is touched.

        A set that owes windows is read whole.
        """
        number, state = partial_set.number, self._state
        held = state.cells.of(number) if isinstance(state.cells, HeldSets) else None
        owes = self._answered and any(each.name in self._answered for each in readers_of(self._plan, number))
        if held is None or number in state.owed or owes or not is_divided(self._plan, partial_set):
            return False
        fresh = self._given.taken.cells.get(number)
        if fresh is not None:
            self.tuples[number], self.partials[number] = int(fresh.tuples.sum()), len(fresh)
        needed_from = life_of(partial_set.window).needed_from(partial_set, self._now)
        closing = closing_windows(partial_set, self._asked, self._advanced)
        firsts = [held.first, int(fresh.starts.min()) if fresh is not None and len(fresh) else None]
        self.divided[number], cells = held.after_round(fresh, self._closing.get(number), closing, needed_from)
        if cells is not None:
            self.cells[number] = cells
        past = state.history_of(number)
        if any(first is not None and first < needed_from for first in firsts):
            past = past.forget(needed_from)
        if past != CellCoverage():
            self.history[number] = past
        return True

    def answers(self, intervals: Intervals, landmarks: Mapping[str, Landmark]) -> Answers:
        """Return the answers, in several passes if late tuples came; a set is merged only if a pass needs it."""
        *earlier, last = passes_of(self._plan, self.lineages, intervals)
        before = tuple(self._pass(each, landmarks) for each in earlier)
        return replace(self._pass(last, landmarks), spans=self.spans, earlier=before)

    def _pass(self, turn: AnswerPass, landmarks: Mapping[str, Landmark]) -> Answers:
        cells = {number: cells for number, cells in self.cells.items() if number not in self.lineages}
        asked = sets_asked(self._plan, turn.intervals) if self.lineages else set()
        for number, count in turn.rounds:
            view = self.lineages[number].view(count) if number in asked else None
            if view is not None:
                cells[number] = view
        return Answers(self._plan, cells, turn.intervals, landmarks, since=self._state.since)


def moved(state: State, round_input: RoundInput, plan: Plan) -> State:
    """Return the state with the new frontiers and versions of the round; everything else is unchanged."""
    frontiers = advanced(state.frontiers, round_input.frontiers)
    return replace(
        state,
        frontiers=frontiers,
        ahead=ahead_of_idle(frontiers, all_inputs(plan), round_input.idle, state.ahead),
        seen=advanced(state.seen, round_input.seen),
        first=first_ticks(state.first, round_input.first, state.frontiers),
        versions={**state.versions, **round_input.versions},
    )


def intervals_of(state: State, round_input: RoundInput, plan: Plan) -> Intervals:
    """Return the interval `(after, until]` of the ends of the windows that each query reports in a round."""
    advanced_state = moved(state, round_input, plan)
    until = {inputs: advanced_state.closed_over(inputs) for inputs in all_inputs(plan)}
    return _intervals(state, plan, until, {})


def asked_before(state: State, round_input: RoundInput, plan: Plan) -> list[ReportedWindows]:
    """Return the row queries of which a round reports windows, and which windows, from its frontiers alone."""
    state = without_lost(state, round_input, plan)
    return asked_rows(plan, intervals_of(state, round_input, plan), state)


def _answered(state: State, plan: Plan, until: Mapping[Inputs, int], postponed: Mapping[str, int]) -> dict[str, int]:
    """Return up to which tick queries are answered after the round, of those that are closed further."""
    ticks_by_query = {}
    for planned in plan.queries if postponed else ():
        query = planned.query
        closed = until[query.inputs]
        if planned.name in postponed and closed < TICK_MAX and can_wait(planned):
            before = TICK_MIN if planned.name in state.fresh else state.answered_by(query)
            tick = max(postponed[planned.name], before)
            if tick < closed:
                ticks_by_query[planned.name] = tick
    return ticks_by_query


def _intervals(state: State, plan: Plan, until: Mapping[Inputs, int], answered: Mapping[str, int]) -> Intervals:
    """Return the interval `(after, until]` of the ends of the windows that each query reports."""
    intervals = {}
    for planned in plan.queries:
        query, life = planned.query, life_of(planned.query.window)
        last = answered.get(planned.name, until[query.inputs])
        after = life.own_after(planned, state, state.answered_by(query))
        intervals[planned.name] = after, life.interval(after, last)[1]
    return intervals


def _since(state: State, plan: Plan, until: Mapping[Inputs, int], answered: Mapping[str, int]) -> dict[str, int]:
    """Return `since` of the queries for which it still matters: they have not passed all earlier windows."""
    since = {}
    sides = (planned for partial_set in plan.sets for planned in partial_set.queries if planned.query.is_side)
    for planned in (*plan.queries, *sides) if state.since else ():
        tick, window = state.since.get(planned.name), planned.query.window
        last = answered.get(planned.name, until[planned.query.inputs])
        if tick is not None and life_of(window).holds_back(window, tick, last):
            since[planned.name] = tick
    return since
