"""The step: merge partials into the open slices, move the watermark, answer the windows it has passed.

`step(state, partials, watermark, plan)` is pure: no Spark, no clock, no files; the same inputs give the same outputs.
The driver runs it for small states, executors run it shard by shard for large ones, a batch run is one step with
watermark +∞, and recovery folds it over the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.plan.physical import PartialSet, Plan
from windloom.rounds.answers import Answers, Span
from windloom.rounds.cells import Cells, keep_from, merge_cells, read_partials
from windloom.rounds.feeds import feed_sets
from windloom.rounds.landmarks import Landmark, first_ticks, fold_behind, landmark_queries, landmarks_of
from windloom.rounds.lateness import Late, count_late
from windloom.rounds.positions import RowIntake, keep_open, passed_positions
from windloom.rounds.state import History, State


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Of one step: tuples taken in by number of the set, partials and late tuples by number of the scan."""

    tuples: Mapping[int, int]
    partials: Mapping[int, int]
    late: Mapping[int, Late]


def step(
    state: State,
    partials: Mapping[int, pa.Table],
    watermark: int,
    plan: Plan,
    *,
    seen: Mapping[str, int] | None = None,
    first: Mapping[str, int] | None = None,
    rows: RowIntake | None = None,
    history_ticks: int = 0,
) -> tuple[State, Answers, StepCounts]:
    """One round. `partials` maps a scan's number to a table `slice, keys…, component fields`; a missing one had none.

    A watermark below what is already closed closes nothing: time does not run backwards. `seen` is the largest event
    tick of each stream, of tuples that no query wants included; without it no query can be added later. `first` is the
    smallest of the round; landmark queries need both. `rows` is what the round did to the positions of tuples, which
    the partials of sets that count them are by. Cells are kept as long as an open window may cover them, and for
    `history_ticks` behind the watermark.
    """
    until = max(watermark, state.closed)
    seen = _largest(state.seen, seen or {})
    first = first_ticks(state.first, first or {}, state.closed)
    landmarks = landmarks_of(plan, state.since, first, seen, until)
    rows = rows or RowIntake(state.positions)
    spans: dict[int, Span] = {}
    cells: dict[int, Cells] = {}
    kept: dict[int, Cells] = {}
    history: dict[int, History] = {}
    tuples: dict[int, int] = {}
    taken: dict[int, int] = {}
    late: dict[int, Late] = {}
    fed: dict[int, Cells] = {}
    for scan in plan.scans:
        if scan.number in partials:
            table = partials[scan.number]
            read = read_partials(scan, table)
            if scan.counted_by is None:
                late[scan.number] = count_late(plan, scan, read, state, landmarks)
            taken[scan.number] = table.num_rows
            fed |= feed_sets(plan, scan, read)
        if scan.counted_by is not None:
            late[scan.number] = Late(0, rows.late.get(scan.number, 0))
    for one in plan.sets:
        current, past = state.cells.get(one.number), state.history_of(one.number)
        if one.number in fed:
            fresh = fed.pop(one.number)
            tuples[one.number] = int(fresh.tuples.sum())
            current = fresh if current is None else merge_cells(current, fresh)
        if current is not None and one.counted_by is not None:
            cells[one.number] = current
            spans[one.number] = passed_positions(one, current, state.positions, rows.positions, until)
            kept[one.number] = keep_open(one, current, rows.positions, until)
        elif current is not None:
            cells[one.number] = current
            kept[one.number], past = _still_needed(one, current, past, until, history_ticks, landmarks)
        if past != History():
            history[one.number] = past
    answers = Answers(plan, cells, state.closed, until, _own_after(state, plan), landmarks, spans)
    after = State(kept, until, seen, _since(state, plan, until), frozenset(), history, first, rows.positions)
    return after, answers, StepCounts(tuples, taken, late)


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
    for planned in plan.queries if state.fresh or state.since else ():
        if planned.name in state.fresh or planned.name in state.since:
            # What windows of rows have reported is told by positions.
            is_open = planned.name in state.fresh or planned.query.window.is_rows
            after = TICK_MIN if is_open else state.closed
            since = state.since.get(planned.name)
            own[planned.name] = after if since is None else max(after, since + planned.query.window.range_ticks - 1)
    return own


def _since(state: State, plan: Plan, closed: int) -> dict[str, int]:
    """Without those that hold nothing back any more: every window that started earlier has ended."""
    since = {}
    for planned in plan.queries if state.since else ():
        tick = state.since.get(planned.name)
        window = planned.query.window
        # The landmark of a query that came later is where it is exact: that holds for good.
        if tick is not None and (window.is_landmark or window.is_rows or tick + window.range_ticks - 1 > closed):
            since[planned.name] = tick
    return since


def _largest(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {stream: max(left.get(stream, TICK_MIN), right.get(stream, TICK_MIN)) for stream in {**left, **right}}
