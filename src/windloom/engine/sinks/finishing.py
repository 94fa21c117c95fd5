"""HAVING and expressions over aggregates: evaluated here if the result is certain to equal Spark's, otherwise by Spark.

Rows that need Spark are collected and evaluated in portions, one job per portion, whatever the number of queries and
shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import pyarrow as pa

from windloom.aggregates.arrow import arrow_type
from windloom.errors import WindloomError
from windloom.model.emission import Emits, added_types
from windloom.model.types import DataType
from windloom.plan.physical import Shape
from windloom.rounds.evaluate import DeclinedError, answer_rows, output_kinds
from windloom.spark.answers.finish import finish_together, has_usual_meaning
from windloom.spark.api import SparkSession
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import output_types

#: The most rows that one Spark job gets, unless a single block has more.
PORTION_ROWS = 1 << 20
#: The most shapes that one Spark job gets: more would make its plan too long to read.
PORTION_SHAPES = 50


class Finishing:
    """Turns the columns of the step into answers; the column types of a shape are found out once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._types: dict[Shape, Mapping[str, str]] = {}

    @cached_property
    def _is_usual(self) -> bool:
        return has_usual_meaning(self._spark)

    def types(self, shape: Shape) -> Mapping[str, str]:
        """Return names and Spark types of the answer columns."""
        if shape not in self._types:
            kinds = output_kinds(shape) if shape.select is None or self._is_usual else None
            known = None if kinds is None else {name: kind.name for name, kind in kinds.items()}
            added = added_types(shape.emits, shape.time.name)
            self._types[shape] = {**(known or output_types(self._spark, shape)), **added}
        return self._types[shape]

    def may_be_here(self, shape: Shape) -> bool:
        """Return whether the settings of the session allow evaluating the shape without Spark."""
        return shape.select is None or self._is_usual

    def may_be_apart(self, shape: Shape) -> bool:
        """Return whether a part of the rows can be finished without knowing the others, and without Spark."""
        return shape.emits is Emits.FINAL and self.may_be_here(shape)

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
            finished = finish_together(self._spark, [(shape, plain(table)) for shape, table in asked.values()])
        shapes = [shape for shape, _ in asked.values()]
        return {
            name: self.described(*shape_and_rows)
            for name, shape_and_rows in zip(asked, zip(shapes, finished, strict=True), strict=True)
        }

    def portion(self, *, with_query: bool) -> Portion:
        return Portion(self, self._spark, with_query)

    def empty(self, shape: Shape, *, with_query: bool) -> pa.Table:
        columns = [("window_start", shape.time), ("window_end", shape.time), *shape.groups, *shape.columns]
        fields = [pa.field(name, arrow_type(kind)) for name, kind in columns]
        if with_query:
            fields.insert(0, pa.field("query", pa.string()))
        table = pa.schema(fields).empty_table()
        empty_table = self.here(shape, table, ("query",) if with_query else ())
        if empty_table is None:
            (empty_table,) = finish_together(self._spark, [(shape, table)], with_query=with_query)
        empty_table = self.described(shape, empty_table)
        for name, kind in added_types(shape.emits, shape.time.name).items():
            empty_table = empty_table.append_column(name, pa.nulls(0, arrow_type(DataType.parse(kind))))
        return empty_table

    def described(self, shape: Shape, table: pa.Table) -> pa.Table:
        """Return the rows that Spark made, in the form in which the evaluator makes them.

        Spark returns timestamps in the zone of the session, marks expressions that cannot be NULL and names the
        elements of arrays differently; answers must not depend on any of it.
        """
        kinds = {"query": "string", **self.types(shape)}
        fields = [pa.field(column.name, _plain(column.type, kinds[column.name])) for column in table.schema]
        return table.cast(pa.schema(fields))


class Portion:
    """Tables that wait for one Spark job."""

    def __init__(self, finishing: Finishing, spark: SparkSession, with_query: bool) -> None:
        self._finishing, self._spark, self._with_query = finishing, spark, with_query
        self._waiting: dict[Shape, list[pa.Table]] = {}
        self._queries: dict[Shape, set[str]] = {}
        self._rows = 0

    def add(self, shape: Shape, table: pa.Table, queries: Iterable[str]) -> None:
        self._waiting.setdefault(shape, []).append(plain(table))
        self._queries.setdefault(shape, set()).update(queries)
        self._rows += table.num_rows

    @property
    def is_full(self) -> bool:
        return self._rows >= PORTION_ROWS or len(self._waiting) >= PORTION_SHAPES

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
            with as_windloom_errors(
                queries_text(name for names_of_shape in queries.values() for name in names_of_shape)
            ):
                return finish_together(self._spark, parts, with_query=self._with_query)
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


def _plain(arrow: pa.DataType, kind: str) -> pa.DataType:
    try:
        return arrow_type(DataType.parse(kind))
    except KeyError:  # a type that only Spark computes, such as a map
        return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(arrow) and arrow.tz else arrow
