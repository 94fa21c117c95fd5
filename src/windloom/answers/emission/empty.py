"""EMIT EMPTY: a row for every window of a group that is known, also for windows in which it has no tuple.

A group is known from its first window with a tuple on; a query without GROUP BY has one group. In a window without
tuples, counts are 0, lists are empty and every other aggregate is NULL, as SQL has it for no rows. HAVING and
expressions over aggregates are evaluated over these rows as over any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windloom.answers.blocks import Block
from windloom.answers.emission.changes import LEADING, ReportCadence, RowSeries, moved_rows, with_earlier
from windloom.model.aggregate import OF_NOTHING
from windloom.model.types import arrow_type, as_array
from windloom.plan.plan import Planned, Shape


def group_rows(block: Block, shape: Shape) -> pa.Table:
    """Return windows in which each group has a row: `query`, `window_start`, `window_end` and the grouping columns."""
    counts = np.diff(block.bounds)
    queries = pa.array(block.queries, pa.string()).take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    arrays = [queries, *(as_array(block.table.column(index)) for index in range(2 + len(shape.groups)))]
    arrays = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays]
    return pa.Table.from_arrays(arrays, schema=group_schema(shape))


def group_schema(shape: Shape) -> pa.Schema:
    edges = [("window_start", arrow_type(shape.time)), ("window_end", arrow_type(shape.time))]
    return pa.schema([("query", pa.string()), *edges, *((name, arrow_type(kind)) for name, kind in shape.groups)])


def missing_rows(
    known: pa.Table | None, rows: pa.Table, paces: Mapping[str, ReportCadence]
) -> tuple[pa.Table, pa.Table]:
    """Return the windows without tuples of known groups, and each group's last window, in columns of `group_rows`."""
    every = with_earlier(known, rows)
    every_series = RowSeries.of(every, every.num_columns - LEADING, paces)
    order, series = every_series.order, every_series.series[every_series.order]
    ends, slide, until = every_series.ends[order], every_series.slide[order], every_series.until[order]
    is_last = np.append(series[1:] != series[:-1], True)[: len(order)]
    following = np.append(ends[1:], 0)[: len(order)]
    missing = np.where(is_last, np.maximum(until - ends, 0) // slide, (following - ends) // slide - 1)
    within = np.arange(missing.sum()) - np.repeat(np.cumsum(missing) - missing, missing) + 1
    # Missing windows follow the one before them; the last window of a group is the last of those, if there are any.
    tables = []
    for rows_before, ticks in (
        (np.repeat(order, missing), within * np.repeat(slide, missing)),
        (order[is_last], (missing * slide)[is_last]),
    ):
        starts, moved_ends = every_series.starts[rows_before] + ticks, every_series.ends[rows_before] + ticks
        tables.append(moved_rows(every, rows_before, starts, moved_ends))
    return tables[0], tables[1]


def empty_block(number: int, shape: Shape, queries: Sequence[Planned], missing: pa.Table) -> Block:
    """Return windows without tuples as a block of answers."""
    codes = pc.index_in(as_array(missing["query"]), value_set=pa.array([query.name for query in queries], pa.string()))
    places = codes.to_numpy(zero_copy_only=False)
    missing = missing.take(pa.array(np.argsort(places, kind="stable")))
    counts = np.bincount(places, minlength=len(queries))
    arrays = [missing.column(index) for index in range(1, missing.num_columns)]
    names = [missing.schema.field(index).name for index in range(1, missing.num_columns)]
    for column, (name, kind) in enumerate(shape.columns):
        pieces = []
        for planned, count in zip(queries, counts, strict=True):
            value = OF_NOTHING.get(planned.query.aggregates[planned.columns[column]].function)
            pieces.append(pa.repeat(pa.scalar(value, arrow_type(kind)), int(count)))
        arrays.append(pa.concat_arrays(pieces))
        names.append(name)
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Block(number, tuple(query.name for query in queries), bounds, pa.Table.from_arrays(arrays, names=names))
