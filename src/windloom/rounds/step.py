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

from windloom.plan.physical import PartialSet, Plan
from windloom.rounds.answers import Answers
from windloom.rounds.cells import Cells, keep_from, merge_cells, read_partials
from windloom.rounds.lateness import Late, count_late
from windloom.rounds.state import State


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Of one step, by number of the partial set: tuples and partials taken in, late tuples."""

    tuples: Mapping[int, int]
    partials: Mapping[int, int]
    late: Mapping[int, Late]


def step(
    state: State, partials: Mapping[int, pa.Table], watermark: int, plan: Plan
) -> tuple[State, Answers, StepCounts]:
    """One round. `partials` maps a set's number to a table `slice, g0…, component fields`; a missing set had none.

    A watermark below what is already closed closes nothing: time does not run backwards.
    """
    until = max(watermark, state.closed)
    cells: dict[int, Cells] = {}
    kept: dict[int, Cells] = {}
    tuples: dict[int, int] = {}
    rows: dict[int, int] = {}
    late: dict[int, Late] = {}
    for one in plan.sets:
        current = state.cells.get(one.number)
        if one.number in partials:
            table = partials[one.number]
            fresh = read_partials(one, table)
            late[one.number] = count_late(one, fresh, state.closed)
            tuples[one.number] = int(fresh.tuples.sum())
            rows[one.number] = table.num_rows
            current = fresh if current is None else merge_cells(current, fresh)
        if current is not None:
            cells[one.number] = current
            kept[one.number] = _still_needed(one, current, until)
    answers = Answers(plan, cells, state.closed, until)
    return State(kept, until), answers, StepCounts(tuples, rows, late)


def _still_needed(one: PartialSet, cells: Cells, closed: int) -> Cells:
    """Cells some window that ends after `closed` may cover."""
    longest = max(planned.query.window.range_ticks for planned in one.queries)
    if not len(cells) or int(np.min(cells.starts)) > closed - longest:
        return cells
    return keep_from(cells, closed - longest + 1)
