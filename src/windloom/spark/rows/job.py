"""One Spark job for the rows of all row queries of a round, and its rows as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.aggregates.arrow import arrow_type
from windloom.durable.tuples import TICK
from windloom.model.expression import Expression
from windloom.model.rows import Strand
from windloom.model.stream import Stream
from windloom.plan.physical import Plan, Shape
from windloom.plan.rows import PlannedRows
from windloom.rounds.block import Block
from windloom.rounds.rows.spans import AskedRows, RowSpan
from windloom.spark.intake.collect import collected
from windloom.spark.intake.native import instant_sql, tick_sql
from windloom.spark.rows.ends import ByEnds
from windloom.spark.rows.lifetimes import Lifetimes
from windloom.spark.rows.strands import StrandTuples
from windloom.spark.unions import unite

#: The column that says which query a row of the job belongs to.
_TAG = "part"


def batch_tuples(streams: Mapping[str, Stream], frames: Mapping[str, DataFrame]) -> StrandTuples:
    """The tuples of a batch run, all of which are there."""

    def frame(strand: Strand, begin: int, end: int) -> DataFrame:
        own = (Expression.of_column(name).sql for name in strand.columns)
        found = frames[strand.stream].selectExpr(*own, f"{tick_sql(streams[strand.stream])} AS {TICK}")
        return found.where(f"{TICK} IS NOT NULL")

    return StrandTuples(frame, has_rounds=False)


def rows_frame(planned: PlannedRows, shape: Shape, tuples: StrandTuples, span: RowSpan) -> DataFrame:
    """`window_start`, `window_end`, and the columns of the query."""
    rows = planned.rows

    def instant(ticks: str) -> str:
        return instant_sql(ticks, shape.time)

    made = (Lifetimes if rows.has_lifetimes else ByEnds)(rows, tuples, span, instant).frame(planned.orders)
    names = ["window_start", "window_end", *(name for name, _ in shape.columns)]
    return made.toDF(*names)


def row_blocks(plan: Plan, asked: Sequence[AskedRows], tuples: StrandTuples) -> Iterator[Block]:
    """The rows of all queries that report windows, by one job."""
    if not asked:
        return
    frames = [rows_frame(one.planned, plan.shapes[one.planned.shape], tuples, one.span) for one in asked]
    names = ", ".join(f"'{one.planned.name}'" for one in asked[:3])
    what = f"the rows of {names}"
    if len(frames) == 1:
        for table in collected(frames[0], what):
            if table.num_rows:
                yield _block(plan, asked[0].planned, table)
        return
    united, slots = unite(frames, _TAG)
    for table in collected(united, what):
        for number, one in enumerate(asked):
            mine = table.filter(pc.equal(table[_TAG], number)).select(list(slots[number]))
            if mine.num_rows:
                yield _block(plan, one.planned, mine.rename_columns(frames[number].columns))


def _block(plan: Plan, planned: PlannedRows, table: pa.Table) -> Block:
    """Rows in the types of their shape: Spark returns timestamps in the zone of the session."""
    shape = plan.shapes[planned.shape]
    columns = [("window_start", shape.time), ("window_end", shape.time), *shape.columns]
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns])
    return Block(planned.shape, (planned.name,), np.array([0, table.num_rows], np.int64), table.cast(schema))


def untimed_sql(stream: Stream) -> str:
    """Counts the tuples that have no usable time."""
    return f"count_if({tick_sql(stream)} IS NULL)"


def count_untimed(stream: Stream, frame: DataFrame) -> int:
    row = frame.select(F.expr(untimed_sql(stream)).alias("n")).collect()[0]
    return int(row["n"])
