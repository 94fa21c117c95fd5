"""EMIT CHANGES: rows that are new or different since the window before, and groups that have vanished.

For every query and group, the rows of consecutive windows are compared. A row after a window without one is an insert,
a row that differs from the one before is an update, and the first window without a row after one with a row is a
delete. A window that HAVING leaves out has no row. A row that was reported last and has not vanished is *standing*: it
is kept for the next round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.model.clauses import CHANGE
from windloom.model.time import TICK_MIN
from windloom.model.types import as_array
from windloom.plan.plan import Planned
from windloom.state.cells import number_groups
from windloom.state.state import State

RowIndexes = NDArray[np.int64]


def same_rows(column: pa.Array, left: RowIndexes, right: RowIndexes) -> NDArray[np.bool_]:
    """Return whether row `left[i]` has the value of row `right[i]`; NULL is a value, and NaN equals NaN."""
    nulls = np.asarray(column.is_null(), np.bool_)
    both = nulls[left] & nulls[right]
    same = both | (~nulls[left] & ~nulls[right])
    if nulls.all() or not len(left):
        return same
    kind = column.type
    if pa.types.is_struct(kind):
        for field in column.flatten():  # which has the NULLs of the struct too
            same &= same_rows(field, left, right)
        return same
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return both | (same & _same_lists(column, left, right))
    values = [column.take(pa.array(rows)) for rows in (left, right)]
    equal = pc.fill_null(pc.equal(*values), False)
    if pa.types.is_floating(kind):
        equal = pc.or_(equal, pc.fill_null(pc.and_(*(pc.is_nan(value) for value in values)), False))
    return both | (same & np.asarray(equal, np.bool_))


def _same_lists(column: pa.Array, left: RowIndexes, right: RowIndexes) -> NDArray[np.bool_]:
    if pa.types.is_map(column.type):
        kind = column.type
        entries = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        column = column.cast(pa.list_(entries))
    offsets = column.offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    same: NDArray[np.bool_] = sizes[left] == sizes[right]
    pairs = np.flatnonzero(same & (sizes[left] > 0))
    if len(pairs):
        counts = sizes[left[pairs]]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        first = np.repeat(offsets[left[pairs]], counts) + within
        second = np.repeat(offsets[right[pairs]], counts) + within
        same_values = same_rows(column.values, first, second)
        differs = np.bincount(np.repeat(np.arange(len(pairs)), counts), weights=~same_values, minlength=len(pairs))
        same[pairs] = differs == 0
    return same


#: Columns before the grouping columns: query, window_start, window_end.
LEADING = 3


@dataclass(frozen=True, slots=True)
class ReportCadence:
    """How the windows of a query follow each other, and the tick up to which all of them are reported.

    No window is reported that begins after the last tuple of the streams. `grows`: all windows begin at a landmark.
    """

    slide_ticks: int
    until: int
    grows: bool = False


def paces_of(asked: Iterable[Planned], state: State) -> dict[str, ReportCadence]:
    """Return the paces of queries after a round that left this state."""
    paces = {}
    for planned in asked:
        window, inputs = planned.query.window, planned.query.inputs
        # When a stream has ended, every window is closed, even those that begin after its last tuple.
        latest = max((state.seen[input_] for input_ in inputs if input_ in state.seen), default=TICK_MIN)
        until = min(state.answered_by(planned.query), window.last_start(latest) + window.range_ticks)
        paces[planned.name] = ReportCadence(window.slide_ticks, until, window.extent_ticks is None)
    return paces


@dataclass(frozen=True, slots=True)
class RowSeries:
    """Rows of a table by query and group. `order` are rows, series after series, each in the order of window ends.

    By row: `series` is the number of its series, `starts` and `ends` the edges of its window, `slide`, `until` and
    `grows` the pace of its query. By place in `order`: `follows` says whether the row's window comes right after that
    of the row before it.
    """

    order: NDArray[np.int64]
    series: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    slide: NDArray[np.int64]
    until: NDArray[np.int64]
    grows: NDArray[np.bool_]
    follows: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: pa.Table, groups: int, paces: Mapping[str, ReportCadence]) -> RowSeries:
        queries = as_array(rows[0])
        keys = [queries, *(as_array(rows.column(LEADING + i)) for i in range(groups))]
        starts, ends = (as_array(rows.column(index)).cast(pa.int64()).to_numpy() for index in (1, 2))
        if rows.num_columns == LEADING + groups:
            # Rows without values may be in a window several times: the first continues the first of the window before,
            # and so on.
            keys.append(pa.array(_occurrences([*keys, pa.array(ends)], rows.num_rows)))
        series, _ = number_groups(keys, rows.num_rows)
        order = np.lexsort((ends, series))
        encoded = queries.dictionary_encode()
        paces_of_queries = [paces[name] for name in encoded.dictionary.to_pylist()]
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        slide = np.array([pace.slide_ticks for pace in paces_of_queries], np.int64)[codes]
        follows = np.zeros(len(order), np.bool_)
        if len(order):
            later, earlier = order[1:], order[:-1]
            follows[1:] = (series[later] == series[earlier]) & (ends[later] == ends[earlier] + slide[later])
        until = np.array([pace.until for pace in paces_of_queries], np.int64)[codes]
        grows = np.array([pace.grows for pace in paces_of_queries], np.bool_)[codes]
        return cls(order, series, starts, ends, slide, until, grows, follows)


def _occurrences(keys: list[pa.Array], rows: int) -> NDArray[np.int64]:
    """Return for each row the number of rows before it that have the same keys."""
    numbers, _ = number_groups(keys, rows)
    order = np.argsort(numbers, kind="stable")
    sorted_numbers = numbers[order]
    firsts = np.flatnonzero(np.append(True, sorted_numbers[1:] != sorted_numbers[:-1])[:rows])
    counts = np.diff(np.append(firsts, rows))
    occurrences = np.empty(rows, np.int64)
    occurrences[order] = np.arange(rows) - np.repeat(firsts, counts)
    return occurrences


def with_earlier(earlier: pa.Table | None, rows: pa.Table) -> pa.Table:
    """Return rows of earlier rounds, then those of this one."""
    return (rows if earlier is None else pa.concat_tables([earlier.cast(rows.schema), rows])).combine_chunks()


# Not an Arrow array: making the first one imports pandas, which takes longer than a plan.
_KINDS = ("insert", "update", "delete")
_INSERT, _UPDATE, _DELETE = range(3)


def changes(
    standing: pa.Table | None, rows: pa.Table, groups: int, paces: Mapping[str, ReportCadence]
) -> tuple[pa.Table, pa.Table]:
    """Return (the changes, the rows that stand after them); the first table has a further column, `change`.

    The columns of all tables are `query`, `window_start`, `window_end`, `groups` grouping columns, and the others.
    Changes come in the order of windows, so that they can be applied one after another.
    """
    known = 0 if standing is None else standing.num_rows
    every = with_earlier(standing, rows)
    every_series = RowSeries.of(every, groups, paces)
    order, ends = every_series.order, every_series.ends
    # A row is compared with that of the window right before it.
    later = np.flatnonzero(every_series.follows)
    before, after = every_series.order[later - 1], every_series.order[later]
    same = np.ones(len(later), np.bool_)
    for column in range(LEADING + groups, every.num_columns):
        same &= same_rows(as_array(every.column(column)), before, after)
    differs = np.ones(len(every_series.order), np.bool_)
    differs[later[same]] = False
    changed = differs & (order >= known)
    is_last = ~np.append(every_series.follows[1:], False)[: len(order)]
    passed = ends[order] <= every_series.until[order] - every_series.slide[order]
    gone, left = order[is_last & passed], order[is_last & ~passed]
    reported = order[changed]
    kinds = np.concatenate([np.where(every_series.follows[changed], _UPDATE, _INSERT), np.full(len(gone), _DELETE)])
    at = np.concatenate([ends[reported], ends[gone] + every_series.slide[gone]])
    by_window = np.lexsort((every_series.series[np.concatenate([reported, gone])], at))
    # A group that has vanished is missing from the window after that of its last row.
    moved_starts = every_series.starts[gone] + np.where(every_series.grows[gone], 0, every_series.slide[gone])
    vanished = moved_rows(every, gone, moved_starts, ends[gone] + every_series.slide[gone])
    vanished = rows_without_values(vanished, np.arange(len(gone)), groups)
    table = pa.concat_tables([every.take(pa.array(reported)), vanished])
    table = table.append_column(CHANGE, pa.array(_KINDS, pa.string()).take(pa.array(kinds)))
    return table.take(pa.array(by_window)).combine_chunks(), every.take(pa.array(np.sort(left)))


def rows_without_values(every: pa.Table, rows: NDArray[np.int64], groups: int) -> pa.Table:
    """Return some rows with their windows and keys, and NULL for everything else."""
    taken = every.take(pa.array(rows))
    arrays = taken.columns[: LEADING + groups]
    arrays += [pa.nulls(len(rows), field.type) for field in list(every.schema)[LEADING + groups :]]
    return pa.Table.from_arrays(arrays, schema=every.schema)


def moved_rows(
    every: pa.Table, rows: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> pa.Table:
    """Return some rows, with the edges of their windows set to `starts` and `ends`."""
    table = every.take(pa.array(rows))
    for index, edges in ((1, starts), (2, ends)):
        field = every.schema.field(index)
        table = table.set_column(index, field, pa.array(edges).cast(field.type))
    return table
