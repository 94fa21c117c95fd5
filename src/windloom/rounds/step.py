"""The step: merges cells into the open slices, moves the frontiers, and answers the windows they have passed.

`step(state, round_input, plan)` is pure: it uses no Spark, clock or files, and equal inputs give equal outputs. The
driver runs it for small states, executors run it shard by shard for large ones, a batch run is one step with every
frontier at +∞, and recovery folds it over the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windloom.plan.links import LinkRound
from windloom.plan.physical import Plan
from windloom.rounds.answers import Answers
from windloom.rounds.carry import rows_since
from windloom.rounds.cells import Cells, merge_all
from windloom.rounds.frontiers import Inputs, advanced, ahead_of_idle, all_inputs
from windloom.rounds.joins.keyed import count_links
from windloom.rounds.lateness import Lateness, count_late
from windloom.rounds.round_input import RoundInput
from windloom.rounds.rows.kept import KeptTuples, kept_with, needs_after
from windloom.rounds.rows.spans import AskedRows, asked_rows
from windloom.rounds.rows.summaries import left_after
from windloom.rounds.state import History, State
from windloom.rounds.windows.landmark import first_ticks, landmarks_of
from windloom.rounds.windows.life import Span, Turn
from windloom.rounds.windows.registry import life_of


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What one step counted, by number of the set: tuples and partials taken in, and late tuples.

    `held` are the cells from which windows were answered, those of earlier rounds included, and `groups` their groups.
    `links` are of joins, by their place in the plan and the number of the link.
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
    """Runs one round. Each query closes windows up to the least frontier of its inputs.

    A frontier never moves backwards. Cells are kept as long as an open window
    may cover them, and for `history_ticks` behind where their set is closed.
    """
    positions = state.positions if round_input.rows is None else round_input.rows
    state = without_lost(state, round_input, plan)
    advanced_state = moved(state, round_input, plan)
    after = {inputs: state.closed_over(inputs) for inputs in all_inputs(plan)}
    until = {inputs: advanced_state.closed_over(inputs) for inputs in after}
    landmarks = landmarks_of(plan, state.since, advanced_state.first, advanced_state.seen, until)
    turn = Turn(state, until, positions, landmarks, history_ticks)
    spans: dict[int, Span] = {}
    cells: dict[int, Cells] = {}
    kept: dict[int, Cells] = {}
    history: dict[int, History] = {}
    tuples: dict[int, int] = {}
    taken: dict[int, int] = {}
    for one in plan.sets:
        current, past = state.cells.get(one.number), state.history_of(one.number)
        fresh = round_input.taken.cells.get(one.number)
        if fresh is not None:
            if not one.is_relation:
                tuples[one.number], taken[one.number] = int(fresh.tuples.sum()), len(fresh)
            current = fresh if current is None else life_of(one.window).merged(current, fresh)
            current = life_of(one.window).joined(one, current, state.closed_of(one))
        if current is not None:
            left = life_of(one.window).close(one, current, past, turn)
            cells[one.number], kept[one.number], past = current, left.cells, left.history
            if left.span is not None:
                spans[one.number] = left.span
        if past != History():
            history[one.number] = past
    answers = Answers(plan, cells, after, until, _own_after(state, plan), landmarks, spans, state.since)
    since = _since(state, plan, until)
    asked = list(asked_rows(plan, answers.interval, after, state.reported))
    summaries = _summaries(state, round_input, plan)
    answers = replace(answers, rows=tuple((one, summaries.get(one.planned.name)) for one in asked))
    reported = {one.planned.name: round_input.round for one in asked}
    after_round = replace(
        advanced_state,
        cells=kept,
        since=since,
        fresh=frozenset(),
        history=history,
        positions=positions,
        reported={**state.reported, **reported},
        kept=_left(state, round_input, plan, advanced_state, until),
        summaries=_still_standing(summaries, plan, until),
    )
    late = count_late(plan, round_input.taken.behind, state, landmarks)
    counted = {number: one for number, one in cells.items() if not plan.sets[number].is_relation}
    groups = {number: one.groups if len(one) else 0 for number, one in counted.items()}
    held = {number: len(one) for number, one in counted.items()}
    return after_round, answers, StepCounts(tuples, taken, late, groups, held, count_links(plan, cells))


def asked_before(state: State, round_input: RoundInput, plan: Plan) -> list[AskedRows]:
    """The row queries that a round reports windows of, and which: known once its frontiers are."""
    state = without_lost(state, round_input, plan)
    advanced_state = moved(state, round_input, plan)
    after = {inputs: state.closed_over(inputs) for inputs in all_inputs(plan)}
    until = {inputs: advanced_state.closed_over(inputs) for inputs in after}
    answers = Answers(plan, {}, after, until, _own_after(state, plan))
    return list(asked_rows(plan, answers.interval, after, state.reported))


def without_lost(state: State, round_input: RoundInput, plan: Plan) -> State:
    """The state when kept tuples are gone: row queries do not report the windows that would need them."""
    if not any(one.lost for one in round_input.kept.values()):
        return state
    kept = kept_with(state.kept, round_input.kept, plan)
    since = dict(state.since)
    summaries = dict(state.summaries)
    for planned in plan.rows:
        streams = set(planned.rows.streams)
        if any(one.lost and name in streams for name, one in round_input.kept.items()):
            for name, tick in rows_since(planned, kept).items():
                since[name] = max(tick, since.get(name, tick))
            summaries.pop(planned.name, None)  # rows that enter are made again, from what is there
    return replace(state, since=since, summaries=summaries)


def _summaries(state: State, round_input: RoundInput, plan: Plan) -> dict[str, Cells]:
    """What aggregates over rows are answered from."""
    found = {}
    for planned in plan.rows:
        parts = [one[planned.name] for one in (state.summaries, round_input.summaries) if planned.name in one]
        if parts:
            found[planned.name] = merge_all(parts)
    return found


def _still_standing(summaries: Mapping[str, Cells], plan: Plan, until: Mapping[Inputs, int]) -> dict[str, Cells]:
    found = {}
    for planned in plan.rows:
        cells = summaries.get(planned.name)
        left = None if cells is None else left_after(cells, until[planned.query.inputs])
        if left is not None:
            found[planned.name] = left
    return found


def _left(
    state: State, round_input: RoundInput, plan: Plan, after: State, until: Mapping[Inputs, int]
) -> Mapping[str, KeptTuples]:
    """The files of tuples that are needed after the round."""
    if not plan.stores:
        return {}
    needs = needs_after(plan, until, after.seen, after.frontiers)
    return needs.left_of(kept_with(state.kept, round_input.kept, plan))


def moved(state: State, round_input: RoundInput, plan: Plan) -> State:
    """The state with the frontier of every stream moved, and the versions of the round; everything else unchanged."""
    frontiers = advanced(state.frontiers, round_input.frontiers)
    return replace(
        state,
        frontiers=frontiers,
        ahead=ahead_of_idle(frontiers, all_inputs(plan), round_input.idle, state.ahead),
        seen=advanced(state.seen, round_input.seen),
        first=first_ticks(state.first, round_input.first, state.frontiers),
        versions={**state.versions, **round_input.versions},
    )


def _own_after(state: State, plan: Plan) -> dict[str, int]:
    """Queries whose windows do not begin where the last round ended."""
    own = {}
    for planned in plan.queries if state.fresh or state.since else ():
        if planned.name in state.fresh or planned.name in state.since:
            life = life_of(planned.query.window)
            own[planned.name] = life.own_after(planned, state, state.closed_over(planned.query.inputs))
    return own


def _since(state: State, plan: Plan, until: Mapping[Inputs, int]) -> dict[str, int]:
    """Without the queries for which it no longer matters, because every earlier window has ended."""
    since = {}
    sides = (planned for one in plan.sets for planned in one.queries if planned.query.is_side)
    for planned in (*plan.queries, *sides) if state.since else ():
        tick, window = state.since.get(planned.name), planned.query.window
        if tick is not None and life_of(window).holds_back(window, tick, until[planned.query.inputs]):
            since[planned.name] = tick
    return since
