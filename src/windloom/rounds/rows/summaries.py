"""Aggregates over rows: rows are summarised by the first and the last end at which they stand, then summed over ends.

The cells of a row query have groups of (last end, grouping columns) and begin where their rows enter. A round adds
cells of the rows that enter in it, answers every end from the cells that stand there, and drops those that have left.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windloom.aggregates import lift, lower
from windloom.aggregates.arrow import arrow_type, as_array, as_integers
from windloom.aggregates.lifted import AnyLifted, Combined, Lifted
from windloom.model.arrays import Ints
from windloom.model.time import TICK_MAX
from windloom.plan.physical import Plan
from windloom.plan.rows import PlannedRows
from windloom.rounds.block import Block, group_column, out_of_range
from windloom.rounds.cells import Cells, CellsBuilder, group_of_cells, keep_groups
from windloom.rounds.groups import describe_group, number_groups
from windloom.rounds.rows.spans import RowSpan

#: About this many rows are answered at a time.
BLOCK_ROWS = 1 << 20


def summarised(planned: PlannedRows, plan: Plan, table: pa.Table) -> Cells:
    """Return cells from partials as Spark makes them: `__first`, `__last`, grouping columns, then each component's
    fields.
    """
    kinds = [kind for _, kind in plan.shapes[planned.shape].groups]
    columns = [as_array(column).cast(arrow_type(kind)) for column, kind in zip(table.columns[2:], kinds, strict=False)]
    keys = [as_array(table.column(1)).cast(pa.int64()), *columns]
    fields = iter(table.columns[2 + len(kinds) :])
    return CellsBuilder.of_rows(keys, as_integers(table.column(0))).build(
        lift(planned_component, [next(fields) for _ in planned_component.fields])
        for planned_component in planned.components
    )


def lasts_of(cells: Cells) -> Ints:
    """Return the last end of every group."""
    return as_integers(cells.keys[0])


def left_after(cells: Cells, closed: int) -> Cells | None:
    """Return the cells of rows that stand at an end after `closed`; None if there are none."""
    if not len(cells) or closed == TICK_MAX:
        return None
    stays = lasts_of(cells) > closed
    return keep_groups(cells, stays) if stays.any() else None


def standing_cells(cells: Cells, span: RowSpan, slide: int) -> Cells:
    """Return one cell for every end of a span and group that has rows there: it begins at that end."""
    last = lasts_of(cells)[group_of_cells(cells)]
    begin = cells.starts if span.first is None else np.maximum(cells.starts, span.first)
    until = last if span.last is None else np.minimum(last, span.last)
    counts = np.maximum(0, (until - begin) // slide + 1)
    places = np.repeat(np.arange(len(cells), dtype=np.int64), counts)
    first_of = np.cumsum(counts) - counts
    ends = begin[places] + (np.arange(len(places), dtype=np.int64) - first_of[places]) * slide
    number_of, distinct = number_groups(cells.keys[1:], cells.groups)
    numbers = number_of[group_of_cells(cells)][places]
    return CellsBuilder.of_groups(numbers, distinct, ends, places).build(cells.lifted)


def summary_blocks(plan: Plan, planned: PlannedRows, cells: Cells, span: RowSpan) -> Iterator[Block]:
    """Yield the answers of a span, a stretch of ends at a time."""
    window = planned.query.window
    for part in _stretches(cells, span, window.slide_ticks):
        standing = standing_cells(cells, part, window.slide_ticks)
        if len(standing):
            yield _Lowering(plan, planned, standing).block()


def _stretches(cells: Cells, span: RowSpan, slide: int) -> Iterator[RowSpan]:
    """Yield spans that together make up the whole one, of about `BLOCK_ROWS` cells each."""
    if not len(cells):
        return
    first = int(cells.starts.min()) if span.first is None else max(span.first, int(cells.starts.min()))
    last = int(lasts_of(cells).max()) if span.last is None else min(span.last, int(lasts_of(cells).max()))
    if last < first:
        return
    ends = (last - first) // slide + 1
    standing = float(np.sum((lasts_of(cells)[group_of_cells(cells)] - cells.starts) // slide + 1))
    step = max(1, int(ends * BLOCK_ROWS / max(1.0, standing)))
    for begin in range(first, last + 1, step * slide):
        yield RowSpan(begin, min(last, begin + (step - 1) * slide))


class _Lowering:
    """Cells that begin at the end of their window, as rows of answers."""

    def __init__(self, plan: Plan, planned: PlannedRows, cells: Cells) -> None:
        self._shape, self._planned, self._cells = plan.shapes[planned.shape], planned, cells
        self._starts = cells.starts - planned.query.window.range_ticks

    def block(self) -> Block:
        shape, cells, query = self._shape, self._cells, self._planned.query
        instant = arrow_type(shape.time)
        arrays = [pa.array(self._starts).view(instant), pa.array(cells.starts).view(instant)]
        arrays += [group_column(keys, cells.group_bounds) for keys in cells.keys]
        for index, (_, kind) in zip(self._planned.columns, shape.columns, strict=True):
            aggregate = query.aggregates[index]
            components = [planned_component.component for planned_component in self._planned.components]
            places = [components.index(component) for component in aggregate.components]
            argument = self._planned.components[places[0]].argument_type
            combined = [_combined(cells.lifted[position]) for position in places]
            arrays.append(lower(aggregate, argument, combined, self._refuse).cast(arrow_type(kind)))
        names = ["window_start", "window_end", *(name for name, _ in shape.groups + shape.columns)]
        table = pa.Table.from_arrays(arrays, names=names)
        return Block(self._planned.shape, (self._planned.name,), np.array([0, table.num_rows], np.int64), table)

    def _refuse(self, row: int, value: str) -> None:
        group_index = int(np.searchsorted(self._cells.group_bounds, row, side="right")) - 1
        group = describe_group(self._cells.keys, group_index)
        edges = int(self._starts[row]), int(self._cells.starts[row])
        raise out_of_range(self._planned.query, edges, group, value)


def _combined(lifted: AnyLifted) -> Combined:
    assert isinstance(lifted, Lifted), "lists are not summarised"
    return Combined(lifted.limbs, None if lifted.valid is None else lifted.valid.value > 0, lifted.dictionary)
