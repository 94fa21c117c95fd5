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
from windloom.rounds.cells import Cells, merge_cells
from windloom.rounds.frontiers import advanced, ahead_of_idle, inputs_of
from windloom.rounds.lateness import Lateness, count_late
from windloom.rounds.round_input import RoundInput
from windloom.rounds.state import History, State
from windloom.rounds.windows.landmark import first_ticks, landmarks_of
from windloom.rounds.windows.life import Span, Turn
from windloom.rounds.windows.registry import life_of


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What one step counted: tuples and partials taken in, by number of the set, and late tuples."""

    tuples: Mapping[int, int]
    partials: Mapping[int, int]
    late: Lateness = field(default_factory=Lateness)


def step(
    state: State, round_input: RoundInput, plan: Plan, *, history_ticks: int = 0
) -> tuple[State, Answers, StepCounts]:
    """Runs one round. Each set closes windows up to the least frontier of the streams it reads.

    A frontier never moves backwards. Cells are kept as long as an open window
    may cover them, and for `history_ticks` behind where their set is closed.
    """
    positions = state.positions if round_input.rows is None else round_input.rows
    moved = _moved(state, round_input, plan)
    after = {one.number: state.closed_of(one) for one in plan.sets}
    until = {one.number: moved.closed_of(one) for one in plan.sets}
    landmarks = landmarks_of(plan, state.since, moved.first, moved.seen, until)
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
            tuples[one.number], taken[one.number] = int(fresh.tuples.sum()), len(fresh)
            current = fresh if current is None else merge_cells(current, fresh)
            current = life_of(one.window).joined(one, current, after[one.number])
        if current is not None:
            left = life_of(one.window).close(one, current, past, turn)
            cells[one.number], kept[one.number], past = current, left.cells, left.history
            if left.span is not None:
                spans[one.number] = left.span
        if past != History():
            history[one.number] = past
    answers = Answers(plan, cells, after, until, _own_after(state, plan), landmarks, spans, state.since)
    since = _since(state, plan, until)
    after_round = replace(moved, cells=kept, since=since, fresh=frozenset(), history=history, positions=positions)
    late = count_late(plan, round_input.taken.behind, state, landmarks)
    return after_round, answers, StepCounts(tuples, taken, late)


def _moved(state: State, round_input: RoundInput, plan: Plan) -> State:
    """The state with the frontier of every stream moved, and everything else unchanged."""
    frontiers = advanced(state.frontiers, round_input.frontiers)
    return replace(
        state,
        frontiers=frontiers,
        ahead=ahead_of_idle(frontiers, map(inputs_of, plan.sets), round_input.idle, state.ahead),
        seen=advanced(state.seen, round_input.seen),
        first=first_ticks(state.first, round_input.first, state.frontiers),
    )


def _own_after(state: State, plan: Plan) -> dict[str, int]:
    """Queries whose windows do not begin where the last round ended."""
    own = {}
    for one in plan.sets if state.fresh or state.since else ():
        for planned in one.queries:
            if planned.name in state.fresh or planned.name in state.since:
                life = life_of(planned.query.window)
                own[planned.name] = life.own_after(planned, state, state.closed_of(one))
    return own


def _since(state: State, plan: Plan, until: Mapping[int, int]) -> dict[str, int]:
    """Without the queries for which it no longer matters, because every earlier window has ended."""
    since = {}
    for one in plan.sets if state.since else ():
        for planned in one.queries:
            tick, window = state.since.get(planned.name), planned.query.window
            if tick is not None and life_of(window).holds_back(window, tick, until[one.number]):
                since[planned.name] = tick
    return since
