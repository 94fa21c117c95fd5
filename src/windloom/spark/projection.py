"""Spark's part of the woven intake: it scans, drops unwanted tuples, and evaluates each expression once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from windloom.errors import WindloomError
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.plan.scans import NativeScan, WovenScan
from windloom.spark.native import has_time_sql, signature_sql, slice_starts, tick_sql
from windloom.weave.weave import Ticks

# The ticks that partials span, and those that Spark finds in tuples if no scan sees all of them.


def timed_partials(scan: NativeScan, table: pa.Table) -> tuple[pa.Table, Ticks]:
    """The partials whose slice is known, with its start and without their ticks, and the ticks that all span."""
    table = table.set_column(0, "slice", slice_starts(scan.slice_id, table.column(0)))
    untimed = 0
    if table.column(0).null_count:
        known = pc.is_valid(table.column(0))
        untimed = pc.sum(table.filter(pc.invert(known)).column(1 + len(scan.key_types))).as_py()
        table = table.filter(known)
    if "seen" not in table.column_names:
        return table, Ticks(untimed=untimed)
    told = Ticks.between(table.column("first"), table.column("seen"), untimed)
    return table.drop_columns(["first", "seen"]), told


class Clock:
    """The ticks that a stream's tuples span, including tuples that no query wants, observed by the action that scans.

    Nothing is observed by an action that fetches portions, or by one whose result Spark finds to be empty before it has
    read all tuples: then `clock` finds the ticks in a separate job.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream, self._observation = stream, Observation()

    def watching(self, frame: DataFrame) -> DataFrame:
        return frame.observe(self._observation, *(F.expr(text) for text in _span_sql(self._stream)))

    def observed(self) -> Ticks | None:
        try:
            told = self._observation.get
        except Py4JJavaError:  # nothing was observed: pyspark cannot read a row without columns
            return None
        return Ticks(told["first"], told["last"], told["untimed"], told["tuples"])


def clock(stream: Stream, frame: DataFrame) -> Ticks:
    """Return the ticks that a stream's tuples span, found by a separate job."""
    row = frame.selectExpr(*_span_sql(stream)).collect()[0]
    return Ticks(row["first"], row["last"], row["untimed"], row["tuples"])


def _span_sql(stream: Stream) -> tuple[str, ...]:
    tick = tick_sql(stream)
    counts = f"count({tick}) AS tuples", f"count(*) - count({tick}) AS untimed"
    return f"min({tick}) AS first", f"max({tick}) AS last", *counts


def without_time(stream: Stream, tuples: int) -> WindloomError:
    return WindloomError(
        f"stream '{stream.name}' has tuples without a usable time",
        f"column '{stream.time}' ({stream.columns[stream.time]}) is NULL, unreadable or out of range"
        f" in {tuples:,} of its rows",
        f'filter them out before loom.stream(…), for example df.where("{has_time_sql(stream)}")',
    )


# Positions: the place of a tuple among all tuples of its stream, or of its key, in order of event time.
#
# Tuples of equal time are ordered by their values, column by column; no query can distinguish tuples that are equal in
# all columns. So positions do not depend on partitions, files, or the rounds in which tuples came.

#: The name of the column of positions.
POSITION = "__position"


def with_positions(frame: DataFrame, stream: Stream, keys: Sequence[Expression]) -> DataFrame:
    """The frame with a column of positions from 0 on; NULL for tuples without a usable time, which are not counted."""
    tick = tick_sql(stream)
    order = [F.expr(tick).asc_nulls_last(), *(F.expr(sql) for sql in order_sql(stream))]
    counted = Over.partitionBy(*(F.expr(key.sql) for key in keys)).orderBy(*order)
    position = F.when(F.expr(f"{tick} IS NOT NULL"), F.row_number().over(counted).cast("bigint") - 1)
    return frame.withColumn(POSITION, position)


def order_sql(stream: Stream) -> list[str]:
    """The order of tuples of equal time: by every other column; as text, if Spark has no order for its type."""
    return [
        _ordered(Expression.of_column(name).sql, kind) for name, kind in stream.columns.items() if name != stream.time
    ]


def _ordered(sql: str, kind: DataType) -> str:
    has_order = not any(word in kind.name for word in ("map<", "variant", "interval"))
    return sql if has_order else f"CAST({sql} AS STRING)"


def projected(scan: WovenScan, stream: Stream, frame: DataFrame) -> DataFrame:
    """The input of `weave.tuples`: `tick`, the position if tuples are counted, `s0…` (the signature), `x0…`.

    Tuples without a usable time pass every condition, so that they can be counted.
    """
    tick, signature = tick_sql(stream), scan.signature
    if signature.where is not None:
        frame = frame.where(f"({signature.where.sql}) OR {tick} IS NULL")
    words = signature_sql(signature.predicates, is_tested=signature.only_signed)
    found = frame.selectExpr(
        f"{tick} AS tick",
        *([] if scan.counted_by is None else [f"{POSITION} AS position"]),
        *(f"{word} AS s{i}" for i, word in enumerate(words)),
        *(f"{column.guarded_sql(signature.predicates)} AS x{i}" for i, column in enumerate(scan.columns)),
    )
    if signature.only_signed:
        wanted = [f"(s{i} & {bits}L) <> 0L" for i, bits in enumerate(signature.wanting_bits) if bits]
        found = found.where(" OR ".join(["tick IS NULL", *wanted]))
    return found
