"""Spark's part of the woven intake: it scans, drops unwanted tuples, and evaluates each expression once.

If no scan sees all tuples of a stream, Spark also finds the ticks that they span. Tuples of windows of rows get a
position: their place among all tuples of their stream, or of their key, in order of event time. Tuples of equal time
are ordered by their values, column by column; no query can distinguish tuples that are equal in all columns. So
positions do not depend on partitions, files, or the rounds in which tuples came.
"""

from __future__ import annotations

from collections.abc import Sequence

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.window import Window as Over

from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.plan.scans import WovenScan
from windloom.spark.native import signature_sql, tick_sql
from windloom.weave.weave import Ticks

#: The name of the column of positions.
POSITION = "__position"


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
            span = self._observation.get
        except Py4JJavaError:  # nothing was observed: pyspark cannot read a row without columns
            return None
        return Ticks(span["first"], span["last"], span["untimed"], span["tuples"])


def clock(stream: Stream, frame: DataFrame) -> Ticks:
    """Return the ticks that a stream's tuples span, found by a separate job."""
    row = frame.selectExpr(*_span_sql(stream)).collect()[0]
    return Ticks(row["first"], row["last"], row["untimed"], row["tuples"])


def _span_sql(stream: Stream) -> tuple[str, ...]:
    tick = tick_sql(stream)
    counts = f"count({tick}) AS tuples", f"count(*) - count({tick}) AS untimed"
    return f"min({tick}) AS first", f"max({tick}) AS last", *counts


def with_positions(frame: DataFrame, stream: Stream, keys: Sequence[Expression]) -> DataFrame:
    """Return the frame with a column of positions from 0; NULL for tuples without a usable time, which do not count."""
    tick = tick_sql(stream)
    order = [F.expr(tick).asc_nulls_last()]
    for name, kind in stream.columns.items():
        if name != stream.time:
            sql = Expression.of_column(name).sql
            has_order = not any(word in kind.name for word in ("map<", "variant", "interval"))
            order.append(F.expr(sql if has_order else f"CAST({sql} AS STRING)"))
    counted = Over.partitionBy(*(F.expr(key.sql) for key in keys)).orderBy(*order)
    position = F.when(F.expr(f"{tick} IS NOT NULL"), F.row_number().over(counted).cast("bigint") - 1)
    return frame.withColumn(POSITION, position)


def projected(scan: WovenScan, stream: Stream, frame: DataFrame) -> DataFrame:
    """Return the input of `weave`: `tick`, the position if tuples are counted, `s0…` (the signature), `x0…`.

    Tuples without a usable time pass every condition, so that they can be counted.
    """
    tick, signature = tick_sql(stream), scan.signature
    if signature.where is not None:
        frame = frame.where(f"({signature.where.sql}) OR {tick} IS NULL")
    words = signature_sql(signature.predicates, is_tested=signature.only_signed)
    tuples = frame.selectExpr(
        f"{tick} AS tick",
        *([] if scan.counted_by is None else [f"{POSITION} AS position"]),
        *(f"{word} AS s{i}" for i, word in enumerate(words)),
        *(f"{column.guarded_sql(signature.predicates)} AS x{i}" for i, column in enumerate(scan.columns)),
    )
    if signature.only_signed:
        wanted = [f"(s{i} & {bits}L) <> 0L" for i, bits in enumerate(signature.wanting_bits) if bits]
        tuples = tuples.where(" OR ".join(["tick IS NULL", *wanted]))
    return tuples
