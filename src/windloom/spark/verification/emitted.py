"""The rows of windows, from what a query with a clause EMIT has reported in a batch run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.model.emission import ADDED_COLUMNS, CHANGE, REPORT, Emits
from windloom.model.query import Query


def rows_of_windows(query: Query, reported: pa.Table, expected: pa.Table) -> pa.Table:
    """Return the rows of windows, with the columns of `expected` up to the outputs of the query.

    With EMIT EARLY these are the final rows. Changes are applied one after another, up to the last window that is
    expected to have a row.
    """
    if query.emission.kind is Emits.EARLY:
        return reported.filter(pc.equal(reported[REPORT], "final")).drop_columns(list(ADDED_COLUMNS[Emits.EARLY]))
    return _applied(query, reported, _ticks(expected[1])) if query.emission.kind is Emits.CHANGES else reported


def _applied(query: Query, changes: pa.Table, expected_ends: NDArray[np.int64]) -> pa.Table:
    """Return the rows of windows: a change stands in its window, and in those that follow up to its group's next
    change.
    """
    slide, ends = query.window.slide_ticks, _ticks(changes["window_end"])
    keys = [changes[2 + index].to_pylist() for index in range(len(query.group_by))]
    texts = list(map(repr, zip(*keys, strict=True))) if keys else [""] * changes.num_rows
    _, groups = np.unique(np.array(texts, object).astype(str), return_inverse=True)
    order = np.lexsort((ends, groups))
    last = int(max(expected_ends.max(initial=0), ends.max(initial=0))) if len(expected_ends) else 0
    following = np.append(ends[order][1:], 0)[: len(order)]
    is_last = np.append(groups[order][1:] != groups[order][:-1], True)[: len(order)]
    upto = np.where(is_last, last + slide, following)
    is_gone = np.asarray(pc.equal(changes[CHANGE], "delete"), np.bool_)[order]
    windows = np.where(is_gone, 0, np.maximum(1, (upto - ends[order]) // slide))
    rows = np.repeat(order, windows)
    moved = slide * (np.arange(len(rows)) - np.repeat(np.cumsum(windows) - windows, windows))
    table = changes.drop_columns(CHANGE).take(pa.array(rows))
    edges = (1,) if query.window.extent_ticks is None else (0, 1)  # landmark windows begin together
    for index in edges:
        field = table.schema.field(index)
        shifted = pa.array(_ticks(changes[index])[rows] + moved).cast(field.type)
        table = table.set_column(index, field, shifted)
    return table


def _ticks(column: pa.ChunkedArray) -> NDArray[np.int64]:
    kind = column.type if pa.types.is_integer(column.type) else pa.timestamp("us", column.type.tz)
    ticks: NDArray[np.int64] = column.cast(kind).cast(pa.int64()).to_numpy()
    return ticks
