"""The ticks that partials span, and those that Spark finds in tuples if no scan sees all of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.scans import NativeScan
from windloom.rounds.scanned import Ticks
from windloom.spark.intake.native import has_time_sql, slice_starts, tick_sql


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
