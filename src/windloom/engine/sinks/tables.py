"""Answers as tables: the rows of all queries with the same output columns are one table, with a column `query`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from windloom.durable.shards.pieces import with_query
from windloom.engine.sinks.finishing import Finishing
from windloom.engine.sinks.sink import TableInfo
from windloom.model.query import Query
from windloom.plan.physical import Plan, Shape
from windloom.rounds import Block
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.frames import arrow_frame, ddl_of_columns


class AnswerTables:
    """The names, columns and rows of the tables that hold answers."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._finishing = Finishing(spark)

    def columns(self, shape: Shape) -> dict[str, str]:
        """Return names and Spark types of the columns, `query` first."""
        return {"query": "string", **self._finishing.types(shape)}

    def name(self, shape: Shape) -> str:
        return table_name(dict(self._finishing.types(shape)))

    def pieces(self, plan: Plan, blocks: Iterable[Block]) -> Iterator[tuple[Shape, pa.Table]]:
        """Yield every block as rows of its shape's table; blocks that need Spark come later, many from one job."""
        waiting = self._finishing.portion(with_query=True)
        for block in blocks:
            shape = plan.shapes[block.shape]
            table = with_query(block)
            rows = self._finishing.here(shape, table, keep=("query",))
            if rows is not None:
                yield shape, rows
            else:
                waiting.add(shape, table, block.queries)
                if waiting.is_full:
                    yield from waiting.take()
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

    def without_spark(self, plan: Plan) -> tuple[str | None, ...]:
        """Return the table of each shape, by its number, if its rows may be finished without Spark; otherwise None."""
        return tuple(self.name(shape) if self._finishing.may_be_apart(shape) else None for shape in plan.shapes)

    def empty(self, shape: Shape) -> pa.Table:
        return self._finishing.empty(shape, with_query=True)

    def frame(self, rows: pa.Table, columns: Mapping[str, str]) -> DataFrame:
        return arrow_frame(self._spark, rows, ddl_of_columns(columns))


def table_name(columns: dict[str, str]) -> str:
    """Return a name that is readable, safe as a directory, and different for different columns or types."""
    readable = "_".join(name for name in columns if name not in ("window_start", "window_end"))
    slug = re.sub(r"[^a-z0-9]+", "_", readable.lower()).strip("_")[:60] or "windows"
    digest = hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:6]
    return f"{slug}-{digest}"
