"""Answers as tables: the rows of all queries with the same output columns are one table, with a column `query`.

HAVING and expressions over aggregates are evaluated here if the result is certain to equal Spark's, otherwise by Spark:
such rows are collected and evaluated in portions, one job per portion, whatever the number of queries and shapes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from windloom.answers.blocks import Block
from windloom.answers.finish import answer_rows, output_kinds
from windloom.errors import WindloomError
from windloom.expressions.arithmetic import DeclinedError
from windloom.model.clauses import added_types
from windloom.model.query import Query
from windloom.model.types import DataType, arrow_type
from windloom.plan.plan import Plan, Shape
from windloom.sinks.sink import TableInfo
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import (
    arrow_frame,
    ddl_of,
    ddl_of_columns,
    finish,
    finish_together,
    has_usual_meaning,
    session_zone,
)

#: The most rows that one Spark job gets, unless a single block has more.
PORTION_ROWS = 1 << 20
#: The most shapes that one Spark job gets: more would make its plan too long to read.
PORTION_SHAPES = 50


class RowFinisher:
    """Turns the columns of the step into answers; the column types of a shape are found out once."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._types: dict[Shape, Mapping[str, str]] = {}

    @property
    def zone(self) -> str:
        """The zone of the session."""
        return session_zone(self.spark)

    @cached_property
    def _is_usual(self) -> bool:
        return has_usual_meaning(self.spark)

    def types(self, shape: Shape) -> Mapping[str, str]:
        """Return names and Spark types of the answer columns."""
        if shape not in self._types:
            kinds = output_kinds(shape) if self.may_be_here(shape) else None
            types = {name: kind.name for name, kind in (kinds or {}).items()}
            if not types:  # from Spark's analyzer
                types = dict(finish(self.spark.createDataFrame([], ddl_of(shape)), shape).dtypes)
            self._types[shape] = {**types, **added_types(shape.emits, shape.time.name)}
        return self._types[shape]

    def may_be_here(self, shape: Shape) -> bool:
        """Return whether the settings of the session allow evaluating the shape without Spark."""
        return shape.select is None or self._is_usual

    def here(self, shape: Shape, table: pa.Table, keep: tuple[str, ...] = ()) -> pa.Table | None:
        """Return the answer, evaluated without Spark; None if Spark must evaluate it."""
        if not self.may_be_here(shape):
            return None
        try:
            return answer_rows(shape, table, keep)
        except DeclinedError:
            return None

    def by_spark(self, asked: Mapping[str, tuple[Shape, pa.Table]]) -> dict[str, pa.Table]:
        """Return the answers of some queries, evaluated by Spark in one job."""
        with as_windloom_errors(queries_text(asked)):
            finished = finish_together(self.spark, [(shape, plain(table)) for shape, table in asked.values()])
        return {
            name: self.described(shape, rows) for (name, (shape, _)), rows in zip(asked.items(), finished, strict=True)
        }

    def empty(self, shape: Shape) -> pa.Table:
        """Return the table of the shape's answers, with the column `query`, without rows."""
        columns = [("window_start", shape.time), ("window_end", shape.time), *shape.groups, *shape.columns]
        fields = [("query", pa.string()), *((name, arrow_type(kind)) for name, kind in columns)]
        table = pa.schema(fields).empty_table()
        finished = self.here(shape, table, ("query",))
        if finished is None:
            (finished,) = finish_together(self.spark, [(shape, table)], with_query=True)
        finished = self.described(shape, finished)
        for name, kind in added_types(shape.emits, shape.time.name).items():
            finished = finished.append_column(name, pa.nulls(0, arrow_type(DataType.parse(kind))))
        return finished

    def described(self, shape: Shape, table: pa.Table) -> pa.Table:
        """Return the rows that Spark made, in the form in which the evaluator makes them.

        Spark returns timestamps in the zone of the session, marks expressions that cannot be NULL and names the
        elements of arrays differently; answers must not depend on any of it.
        """
        kinds = {"query": "string", **self.types(shape)}
        fields = []
        for column in table.schema:
            try:
                kind = arrow_type(DataType.parse(kinds[column.name]))
            except KeyError:  # a type that only Spark computes, such as a map
                has_zone = pa.types.is_timestamp(column.type) and column.type.tz
                kind = pa.timestamp("us", tz="UTC") if has_zone else column.type
            fields.append(pa.field(column.name, kind))
        return table.cast(pa.schema(fields))


class Portion:
    """Tables with a column `query` that wait for one Spark job."""

    def __init__(self, finishing: RowFinisher, spark: SparkSession) -> None:
        self._finishing, self.spark = finishing, spark
        self._waiting: dict[Shape, list[pa.Table]] = {}
        self._queries: dict[Shape, set[str]] = {}
        self._rows = 0

    def add(self, shape: Shape, table: pa.Table, queries: Iterable[str]) -> Iterator[tuple[Shape, pa.Table]]:
        """Add a table; yield the answers of all waiting tables if these are enough for a job."""
        self._waiting.setdefault(shape, []).append(plain(table))
        self._queries.setdefault(shape, set()).update(queries)
        self._rows += table.num_rows
        if self._rows >= PORTION_ROWS or len(self._waiting) >= PORTION_SHAPES:
            yield from self.take()

    def take(self) -> Iterator[tuple[Shape, pa.Table]]:
        """Yield the answers of all waiting tables, evaluated by Spark; afterwards no table waits."""
        parts = [(shape, pa.concat_tables(tables)) for shape, tables in self._waiting.items()]
        queries = self._queries
        self._waiting, self._queries, self._rows = {}, {}, 0
        if parts:
            for (shape, _), rows in zip(parts, self._finished(parts, queries), strict=True):
                yield shape, self._finishing.described(shape, rows)

    def _finished(self, parts: list[tuple[Shape, pa.Table]], queries: Mapping[Shape, set[str]]) -> list[pa.Table]:
        try:
            with as_windloom_errors(queries_text(chain.from_iterable(queries.values()))):
                return finish_together(self.spark, parts, with_query=True)
        except WindloomError:
            if len(parts) == 1:
                raise
        # Repeated shape by shape, to name the queries at fault.
        return [rows for part in parts for rows in self._finished([part], {part[0]: queries[part[0]]})]


def queries_text(names: Iterable[str]) -> str:
    listed = sorted(names)
    shown = ", ".join(f"'{name}'" for name in listed[:3])
    return f"query {shown}" if len(listed) == 1 else f"queries {shown}{', …' if len(listed) > 3 else ''}"


def plain(table: pa.Table) -> pa.Table:
    """Return the table without dictionary-encoded columns, which are only an internal form."""
    fields = [
        pa.field(column.name, column.type.value_type if pa.types.is_dictionary(column.type) else column.type)
        for column in table.schema
    ]
    return table.cast(pa.schema(fields))


class AnswerTables(RowFinisher):
    """The names, columns and rows of the tables that hold answers."""

    def columns(self, shape: Shape) -> dict[str, str]:
        """Return names and Spark types of the columns, `query` first."""
        return {"query": "string", **self.types(shape)}

    def name(self, shape: Shape) -> str:
        return table_name(dict(self.types(shape)))

    def pieces(self, plan: Plan, blocks: Iterable[Block]) -> Iterator[tuple[Shape, pa.Table]]:
        """Yield every block as rows of its shape's table; blocks that need Spark come later, many from one job."""
        waiting = Portion(self, self.spark)
        for block in blocks:
            shape = plan.shapes[block.shape]
            table = with_query(block)
            rows = self.here(shape, table, keep=("query",))
            if rows is not None:
                yield shape, rows
            else:
                yield from waiting.add(shape, table, block.queries)
        yield from waiting.take()

    def infos(self, plan: Plan) -> dict[str, TableInfo]:
        """Return every table that a plan may fill, by name."""
        queries: dict[Shape, dict[str, Query]] = {}
        for planned in plan.queries:
            queries.setdefault(plan.shapes[planned.shape], {})[planned.name] = planned.query
        of_rows = {planned.name: planned.rows for planned in plan.rows if not planned.is_aggregated}
        infos: dict[str, TableInfo] = {}
        for shape, queries_of_shape in queries.items():
            name = self.name(shape)
            asked = {**infos[name].asked, **queries_of_shape} if name in infos else queries_of_shape
            groups = {query_name: tuple(group.name for group in query.group_by) for query_name, query in asked.items()}
            pairs = frozenset(query for query, rows in of_rows.items() if rows.within and query in asked)
            infos[name] = TableInfo(self.columns(shape), groups, frozenset(of_rows.keys() & groups), pairs, asked)
        return infos

    def frame(self, rows: pa.Table, columns: Mapping[str, str]) -> DataFrame:
        return arrow_frame(self.spark, rows, ddl_of_columns(columns))


def with_query(block: Block) -> pa.Table:
    """Return the rows of a block with the name of their query as the first column."""
    counts = np.diff(block.bounds)
    query = pa.DictionaryArray.from_arrays(
        pa.array(np.repeat(np.arange(len(counts), dtype=np.int32), counts)), pa.array(block.queries, pa.string())
    )
    return block.table.add_column(0, "query", query)


def table_name(columns: dict[str, str]) -> str:
    """Return a name that is readable, safe as a directory, and different for different columns or types."""
    readable = "_".join(name for name in columns if name not in ("window_start", "window_end"))
    slug = re.sub(r"[^a-z0-9]+", "_", readable.lower()).strip("_")[:60] or "windows"
    digest = hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:6]
    return f"{slug}-{digest}"
