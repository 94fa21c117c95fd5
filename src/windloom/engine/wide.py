"""Wide tables: one row per key, the answers of many queries as columns, all as of one common watermark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windloom.aggregates.arrow import as_array
from windloom.engine.results import unknown_query
from windloom.errors import WindloomError
from windloom.model.emission import ADDED_COLUMNS
from windloom.model.query import Query
from windloom.rounds.groups import concat_keys, number_groups


@dataclass(frozen=True, slots=True)
class WideTable:
    """`by` are the grouping columns, which all queries have."""

    name: str
    by: tuple[str, ...]
    queries: tuple[Query, ...]

    @classmethod
    def of(cls, name: str, by: str | Sequence[str], names: Sequence[str], known: Mapping[str, Query]) -> WideTable:
        keys = (by,) if isinstance(by, str) else tuple(by)
        if not names:
            raise WindloomError(f"the table '{name}' has no queries", hint="name them: queries=['avg_1h', 'max_1d']")
        for query in names:
            if query not in known:
                raise unknown_query(query, list(known))
            _check(name, keys, known[query])
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise WindloomError(f"the table '{name}' names query '{twice}' twice", hint="name it once")
        table = cls(name, keys, tuple(known[query] for query in names))
        columns = ["watermark", *keys, *(column for query in table.queries for column in table.columns(query).values())]
        for column in columns:
            if columns.count(column) > 1:
                raise WindloomError(
                    f"the table '{name}' would have two columns '{column}'",
                    hint="give the query or its column another name",
                )
        return table

    def columns(self, query: Query) -> dict[str, str]:
        """Return the query's output columns, and their names in the table; a single column is named after it."""
        names = [output.name for output in query.outputs]
        return {name: query.name if len(names) == 1 else f"{query.name}_{name}" for name in names}

    def rows(self, answers: Callable[[str], pa.Table], watermark: int | None = None) -> pa.Table:
        """Return the table as of `watermark`, a tick: for every query, the window that ends last at or before it.

        A key is in the table if it has an answer in one of these windows; for a query without an answer there is NULL.
        The default watermark is the latest start of a window that holds a tuple: no tuple before it is missing.
        """
        tables = {query.name: answers(query.name) for query in self.queries}
        if watermark is None:
            starts = [pc.max(table["window_start"].cast(pa.int64())).as_py() for table in tables.values()]
            watermark = max((start for start in starts if start is not None), default=0)
        windows = []
        for query in self.queries:
            rows, window = tables[query.name], query.window
            end = window.last_start(watermark - window.range_ticks) + window.range_ticks
            windows.append(rows.filter(pc.equal(rows["window_end"].cast(pa.int64()), end)))
        return self._joined(windows, watermark, next(iter(tables.values())).schema.field("window_end").type)

    def _joined(self, tables: Sequence[pa.Table], watermark: int, instant: pa.DataType) -> pa.Table:
        # Arrow's join is not used: for it, NULL and NaN never equal themselves.
        keys = [[as_array(table[name]) for name in self.by] for table in tables]
        together = keys[0]
        for more in keys[1:]:
            together = concat_keys(together, more)
        numbers, distinct = number_groups(together, sum(table.num_rows for table in tables))
        count = len(distinct[0]) if distinct else int(any(table.num_rows for table in tables))
        arrays = [pa.array(np.full(count, watermark, np.int64)).cast(instant), *distinct]
        names = ["watermark", *self.by]
        first = 0
        for query, table in zip(self.queries, tables, strict=True):
            row_of_group = np.full(count, -1, np.int64)
            row_of_group[numbers[first : first + table.num_rows]] = np.arange(table.num_rows)
            first += table.num_rows
            indices = pa.array(row_of_group, mask=row_of_group < 0)
            for column, name in self.columns(query).items():
                arrays.append(as_array(table[column]).take(indices))
                names.append(name)
        return pa.Table.from_arrays(arrays, names=names)


def _check(name: str, by: tuple[str, ...], query: Query) -> None:
    groups = tuple(grouping.name for grouping in query.group_by)
    if sorted(groups) != sorted(by):
        raise WindloomError(
            f"query '{query.name}' cannot be part of the table '{name}'",
            f"it is grouped by {', '.join(groups) or 'nothing'}, the table by {', '.join(by) or 'nothing'}",
            "a row of the table is a group of each of its queries, so group them by the same columns",
        )
    if query.emission.kind in ADDED_COLUMNS:
        raise WindloomError(
            f"query '{query.name}' cannot be part of the table '{name}'",
            f"with {query.emission}, a window does not have one row of every group",
            "use the same query without EMIT",
        )
    if query.window.wide_obstacle is not None:
        raise WindloomError(
            f"query '{query.name}' cannot be part of the table '{name}'",
            query.window.wide_obstacle,
            "use windows of time",
        )
