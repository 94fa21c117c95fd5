"""The step: merges cells into the open slices, moves the frontiers, and answers the windows they have passed.

`step(state, round_input, plan)` is pure: it uses no Spark, clock or files, and equal inputs give equal outputs. The
driver runs it for small states, executors run it shard by shard for large ones, a batch run is one step with every
frontier at +∞, and recovery folds it over the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windloom.plan.physical import Plan
from windloom.rounds.answers import Answers
from windloom.rounds.cells import Cells
from windloom.rounds.frontiers import Inputs, advanced, ahead_of_idle, all_inputs
from windloom.rounds.lateness import Lateness, count_late
from windloom.rounds.round_input import RoundInput
from windloom.rounds.state import History, State
from windloom.rounds.windows.landmark import first_ticks, landmarks_of
from windloom.rounds.windows.life import Span, Turn
from windloom.rounds.windows.registry import life_of


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What one step counted, by number of the set: tuples and partials taken in, and late tuples.

    `held` are the cells from which windows were answered, those of earlier rounds included, and `groups` their groups.
    """

    tuples: Mapping[int, int]
    partials: Mapping[int, int]
    late: Lateness = field(default_factory=Lateness)
    groups: Mapping[int, int] = field(default_factory=dict)
    held: Mapping[int, int] = field(default_factory=dict)


def step(
    state: State, round_input: RoundInput, plan: Plan, *, history_ticks: int = 0
) -> tuple[State, Answers, StepCounts]:
    """Runs one round. Each query closes windows up to the least frontier of its inputs.

    A frontier never moves backwards. Cells are kept as long as an open window
    may cover them, and for `history_ticks` behind where their set is closed.
    """
    positions = state.positions if round_input.rows is None else round_input.rows
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
    after_round = replace(
        advanced_state, cells=kept, since=since, fresh=frozenset(), history=history, positions=positions
    )
    late = count_late(plan, round_input.taken.behind, state, landmarks)
    counted = {number: one for number, one in cells.items() if not plan.sets[number].is_relation}
    groups = {number: one.groups if len(one) else 0 for number, one in counted.items()}
    held = {number: len(one) for number, one in counted.items()}
    return after_round, answers, StepCounts(tuples, taken, late, groups, held)


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
