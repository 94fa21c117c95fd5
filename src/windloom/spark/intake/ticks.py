"""The ticks that tuples span: found in tuples on the driver, or by Spark if no scan sees all tuples."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.scans import NativeScan
from windloom.spark.intake.native import has_time_sql, slice_starts, tick_sql


@dataclass(frozen=True, slots=True)
class Ticks:
    """The smallest and the largest event tick of some tuples, and how many have none.

    `tuples` counts the tuples with a tick, if that was asked for.
    """

    first: int | None = None
    last: int | None = None
    untimed: int = 0
    tuples: int | None = None

    def __add__(self, other: Ticks) -> Ticks:
        firsts = [tick for tick in (self.first, other.first) if tick is not None]
        lasts = [tick for tick in (self.last, other.last) if tick is not None]
        counted = [count for count in (self.tuples, other.tuples) if count is not None]
        untimed = self.untimed + other.untimed
        return Ticks(min(firsts, default=None), max(lasts, default=None), untimed, sum(counted) if counted else None)


def timed_tuples(table: pa.Table) -> tuple[pa.Table, Ticks]:
    """The tuples that have a tick, and the ticks that all tuples span."""
    untimed = table.column(0).null_count
    if untimed:
        table = table.filter(pc.is_valid(table.column(0)))
    return table, _spanned(table.column(0), table.column(0), untimed)


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
    told = _spanned(table.column("first"), table.column("seen"), untimed)
    return table.drop_columns(["first", "seen"]), told


def _spanned(first: pa.ChunkedArray, last: pa.ChunkedArray, untimed: int) -> Ticks:
    return Ticks(pc.min(first).as_py(), pc.max(last).as_py(), untimed)


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
    """The same, found by a separate job."""
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
