"""The step: merge cells into the open slices, move the frontiers, answer the windows they have passed.

`step(state, round_input, plan)` is pure: no Spark, no clock, no files; the same inputs give the same outputs. The
driver runs it for small states, executors run it shard by shard for large ones, a batch run is one step with every
frontier at +∞, and recovery folds it over the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.plan.physical import PartialSet, Plan
from windloom.rounds.answers import Answers, Span
from windloom.rounds.cells import Cells, keep_from, merge_cells
from windloom.rounds.frontiers import advanced, ahead_of_idle, inputs_of
from windloom.rounds.landmarks import Landmark, first_ticks, fold_behind, landmark_queries, landmarks_of
from windloom.rounds.lateness import Lateness, count_late
from windloom.rounds.positions import keep_open, passed_positions
from windloom.rounds.round_input import RoundInput
from windloom.rounds.state import History, State


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Of one step: tuples and partials taken in, by number of the set, and late tuples."""

    tuples: Mapping[int, int]
    partials: Mapping[int, int]
    late: Lateness = field(default_factory=Lateness)


def step(
    state: State, round_input: RoundInput, plan: Plan, *, history_ticks: int = 0
) -> tuple[State, Answers, StepCounts]:
    """One round. Each set closes windows up to the least frontier of the streams it reads.

    A frontier below where it was closes nothing: time does not run backwards. Cells are kept as long as an open window
    may cover them, and for `history_ticks` behind where their set is closed.
    """
    positions = state.positions if round_input.rows is None else round_input.rows
    moved = _moved(state, round_input, plan)
    after = {one.number: state.closed_of(one) for one in plan.sets}
    until = {one.number: moved.closed_of(one) for one in plan.sets}
    landmarks = landmarks_of(plan, state.since, moved.first, moved.seen, until)
    spans: dict[int, Span] = {}
    cells: dict[int, Cells] = {}
    kept: dict[int, Cells] = {}
    history: dict[int, History] = {}
    tuples: dict[int, int] = {}
    taken: dict[int, int] = {}
    for one in plan.sets:
        current, past, closed = state.cells.get(one.number), state.history_of(one.number), until[one.number]
        fresh = round_input.taken.cells.get(one.number)
        if fresh is not None:
            tuples[one.number], taken[one.number] = int(fresh.tuples.sum()), len(fresh)
            current = fresh if current is None else merge_cells(current, fresh)
        if current is not None and one.counted_by is not None:
            cells[one.number] = current
            spans[one.number] = passed_positions(one, current, state.positions, positions, closed)
            kept[one.number] = keep_open(one, current, positions, closed)
        elif current is not None:
            cells[one.number] = current
            kept[one.number], past = _still_needed(one, current, past, closed, history_ticks, landmarks)
        if past != History():
            history[one.number] = past
    answers = Answers(plan, cells, after, until, _own_after(state, plan), landmarks, spans)
    since = _since(state, plan, until)
    left = replace(moved, cells=kept, since=since, fresh=frozenset(), history=history, positions=positions)
    late = count_late(plan, round_input.taken.behind, state, landmarks)
    return left, answers, StepCounts(tuples, taken, late)


def _moved(state: State, round_input: RoundInput, plan: Plan) -> State:
    """The state with the time of every stream moved on, and all else as it was."""
    frontiers = advanced(state.frontiers, round_input.frontiers)
    return replace(
        state,
        frontiers=frontiers,
        ahead=ahead_of_idle(frontiers, map(inputs_of, plan.sets), round_input.idle, state.ahead),
        seen=advanced(state.seen, round_input.seen),
        first=first_ticks(state.first, round_input.first, state.frontiers),
    )


def _still_needed(
    one: PartialSet,
    cells: Cells,
    history: History,
    closed: int,
    history_ticks: int,
    landmarks: Mapping[str, Landmark],
) -> tuple[Cells, History]:
    """Cells some window that ends after `closed` may cover, or that the configured history holds."""
    ranges = (planned.query.window.range_ticks for planned in one.queries if not planned.query.window.is_landmark)
    needed_from = closed - max(0, history_ticks, *ranges) + 1
    if not len(cells) or int(np.min(cells.starts)) >= needed_from:
        return cells, history
    folded_at = [landmarks[planned.name].start for planned in landmark_queries(one)]
    if folded_at and closed < TICK_MAX:
        return fold_behind(cells, needed_from, folded_at), history.forget(needed_from)
    return keep_from(cells, needed_from), history.forget(needed_from)


def _own_after(state: State, plan: Plan) -> dict[str, int]:
    """Queries whose windows do not begin where the last round ended."""
    own = {}
    for one in plan.sets if state.fresh or state.since else ():
        for planned in one.queries:
            name, window = planned.name, planned.query.window
            if name in state.fresh or name in state.since:
                # What windows of rows have reported is told by positions.
                is_open = name in state.fresh or window.is_rows
                after = TICK_MIN if is_open else state.closed_of(one)
                since = state.since.get(name)
                own[name] = after if since is None else max(after, since + window.range_ticks - 1)
    return own


def _since(state: State, plan: Plan, until: Mapping[int, int]) -> dict[str, int]:
    """Without those that hold nothing back any more: every window that started earlier has ended."""
    since = {}
    for one in plan.sets if state.since else ():
        for planned in one.queries:
            tick, window = state.since.get(planned.name), planned.query.window
            # The landmark of a query that came later is where it is exact: that holds for good.
            is_lasting = window.is_landmark or window.is_rows
            if tick is not None and (is_lasting or tick + window.range_ticks - 1 > until[one.number]):
                since[planned.name] = tick
    return since
