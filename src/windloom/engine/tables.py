"""Answers as tables to keep: rows of all queries with the same output columns in one table, which carries `query`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from windloom.engine.results import with_utc
from windloom.plan.physical import Plan, Shape
from windloom.rounds import Block
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import arrow_frame, ddl_of, ddl_of_columns, finish, output_types


class AnswerTables:
    """Names, columns and rows of the tables that hold answers; what Spark says of a shape is asked once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._columns: dict[Shape, dict[str, str]] = {}

    def columns(self, shape: Shape) -> dict[str, str]:
        """Names and Spark types, `query` first."""
        if shape not in self._columns:
            self._columns[shape] = {"query": "string", **output_types(self._spark, shape)}
        return self._columns[shape]

    def name(self, shape: Shape) -> str:
        return table_name({name: kind for name, kind in self.columns(shape).items() if name != "query"})

    def rows(self, plan: Plan, block: Block) -> pa.Table:
        """A block as rows of its table; HAVING and expressions over aggregates are evaluated by Spark."""
        shape = plan.shapes[block.shape]
        counts = np.diff(block.bounds)
        query = pa.DictionaryArray.from_arrays(
            pa.array(np.repeat(np.arange(len(counts), dtype=np.int32), counts)), pa.array(block.queries, pa.string())
        )
        table = plain(block.table.add_column(0, "query", query))
        if shape.select is None:
            return table
        with as_windloom_errors(queries_text(block.queries)):
            return self._finished(arrow_frame(self._spark, table, ddl_of(shape, with_query=True)), shape)

    def empty(self, shape: Shape) -> pa.Table:
        return self._finished(self._spark.createDataFrame([], ddl_of(shape, with_query=True)), shape)

    def frame(self, rows: pa.Table, columns: Mapping[str, str]) -> DataFrame:
        return arrow_frame(self._spark, rows, ddl_of_columns(columns))

    def _finished(self, frame: DataFrame, shape: Shape) -> pa.Table:
        return plain(with_utc(finish(frame, shape, keep=("query",)).toArrow()))


def table_name(columns: dict[str, str]) -> str:
    """Readable, safe as a directory, and different for different columns or types."""
    readable = "_".join(name for name in columns if name not in ("window_start", "window_end"))
    slug = re.sub(r"[^a-z0-9]+", "_", readable.lower()).strip("_")[:60] or "windows"
    digest = hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:6]
    return f"{slug}-{digest}"


def queries_text(names: Iterable[str]) -> str:
    listed = sorted(names)
    shown = ", ".join(f"'{name}'" for name in listed[:3])
    return f"query {shown}" if len(listed) == 1 else f"queries {shown}{', …' if len(listed) > 3 else ''}"


def plain(table: pa.Table) -> pa.Table:
    """Dictionaries are only our way of carrying columns; whether a column may be NULL differs between queries."""
    fields = [
        pa.field(one.name, one.type.value_type if pa.types.is_dictionary(one.type) else one.type)
        for one in table.schema
    ]
    return table.cast(pa.schema(fields))
