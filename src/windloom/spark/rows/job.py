"""One Spark job makes the rows of all row queries of a round; the rows become blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from windloom.aggregates.arrow import arrow_type
from windloom.model.rows import Strand
from windloom.model.types import DataType
from windloom.plan.physical import Plan, Shape
from windloom.plan.rows import PlannedRows
from windloom.rounds.block import Block
from windloom.rounds.cells import Cells, merge_all
from windloom.rounds.rows.spans import AskedRows
from windloom.rounds.rows.summaries import summarised
from windloom.spark.intake.collect import collected
from windloom.spark.intake.native import instant_sql
from windloom.spark.intake.slots import slot_names
from windloom.spark.rows.aggregates import answers_sql, partials_sql
from windloom.spark.rows.ends import ends_sql
from windloom.spark.rows.lifetimes import lifetimes_sql
from windloom.spark.rows.strands import Asking

#: The column that says which query a row of the job belongs to.
_TAG = "__query"


@dataclass(slots=True)
class TupleViews:
    """The tuples of the job: temporary views of frames, which exist while the job is analysed.

    `tuples` returns the tuples of a strand with ticks in `[begin, end)`, and a key that is equal for equal tuples.
    """

    spark: SparkSession
    tuples: Callable[[Strand, int, int], tuple[object, Callable[[], DataFrame]]]
    has_rounds: bool
    _made: dict[object, str] = field(default_factory=dict)
    _scope: ExitStack = field(default_factory=ExitStack)

    def view(self, strand: Strand, begin: int, end: int) -> str:
        key, make = self.tuples(strand, begin, end)
        if key not in self._made:
            name = f"__windloom_{uuid4().hex}"
            make().createOrReplaceTempView(name)
            self._scope.callback(self.spark.catalog.dropTempView, name)
            self._made[key] = name
        return self._made[key]

    def analysed(self, text: str) -> DataFrame:
        try:
            return self.spark.sql(text)
        finally:
            self._scope.close()
            self._made = {}


def rows_sql(asked: AskedRows, views: TupleViews, time: DataType | None) -> str:
    """Return the SQL of `window_start`, `window_end`, and the columns of a query as `c0, c1, …`.

    Edges are ticks if `time` is None.
    """

    def instant(ticks: str) -> str:
        return ticks if time is None else instant_sql(ticks, time)

    planned, asking = asked.planned, _asking(asked, views, instant)
    if planned.is_aggregated:
        return answers_sql(asking, planned)
    return (lifetimes_sql if planned.rows.has_lifetimes else ends_sql)(asking, planned.orders)


def _asking(asked: AskedRows, views: TupleViews, instant: Callable[[str], str] = str) -> Asking:
    span = asked.span
    return Asking(asked.planned.rows, span, views.view, instant, follows=views.has_rounds and span.follows)


def row_summaries(plan: Plan, asked: Sequence[AskedRows], views: TupleViews) -> dict[str, Cells]:
    """Return partials of the rows that enter, by the query that aggregates them; there is one job per query."""
    cells_by_query = {}
    for asked_rows in asked:
        frame = views.analysed(partials_sql(_asking(asked_rows, views), asked_rows.planned))
        parts = [
            summarised(asked_rows.planned, plan, table)
            for table in collected(frame, f"the partials of '{asked_rows.planned.name}'")
            if table.num_rows
        ]
        if parts:
            cells_by_query[asked_rows.planned.name] = merge_all(parts)
    return cells_by_query


def row_blocks(plan: Plan, asked: Sequence[AskedRows], views: TupleViews) -> Iterator[Block]:
    """Yield the rows of all queries that report windows, made by one job."""
    if not asked:
        return
    shapes = [plan.shapes[asked_rows.planned.shape] for asked_rows in asked]
    columns = [_columns(shape) for shape in shapes]
    texts = [rows_sql(asked_rows, views, shape.time) for asked_rows, shape in zip(asked, shapes, strict=True)]
    slots = [slot_names(kind for _, kind in columns_of_query) for columns_of_query in columns]
    kinds = {
        slot: kind
        for columns_of_query, names in zip(columns, slots, strict=True)
        for slot, (_, kind) in zip(names, columns_of_query, strict=True)
    }
    parts = [
        _united(number, *columns_of_query, kinds)
        for number, columns_of_query in enumerate(zip(texts, columns, slots, strict=True))
    ]
    frame = views.analysed(" UNION ALL ".join(parts))
    shown = ", ".join(f"'{asked_rows.planned.name}'" for asked_rows in asked[:3])
    for table in collected(frame, f"the rows of {shown}"):
        for number, asked_rows in enumerate(asked):
            mine = table if len(asked) == 1 else table.filter(pc.equal(table[_TAG], number))
            if mine.num_rows:
                yield _block(asked_rows.planned, shapes[number], mine.select(list(slots[number])))


def _columns(shape: Shape) -> list[tuple[str, str]]:
    """Return the names of columns within the text, and their types."""
    edges = [("window_start", shape.time.name), ("window_end", shape.time.name)]
    return [*edges, *((f"c{index}", kind.name) for index, (_, kind) in enumerate(shape.groups + shape.columns))]


def _united(
    number: int, text: str, columns: Sequence[tuple[str, str]], slots: Sequence[str], kinds: Mapping[str, str]
) -> str:
    """Return the rows of one query, with the slots of all queries: columns share slots by type."""
    names_by_slot = {slot: name for slot, (name, _) in zip(slots, columns, strict=True)}
    selected = [
        f"{names_by_slot[slot]} AS {slot}" if slot in names_by_slot else f"CAST(NULL AS {kinds[slot]}) AS {slot}"
        for slot in sorted(kinds)
    ]
    return f"(SELECT {number} AS {_TAG}, {', '.join(selected)} FROM ({text}))"


def _block(planned: PlannedRows, shape: Shape, table: pa.Table) -> Block:
    """Return rows in the types of their shape: Spark returns timestamps in the zone of the session."""
    columns = [("window_start", shape.time), ("window_end", shape.time), *shape.groups, *shape.columns]
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns])
    named = table.rename_columns([name for name, _ in columns]).cast(schema)
    return Block(planned.shape, (planned.name,), np.array([0, table.num_rows], np.int64), named)
