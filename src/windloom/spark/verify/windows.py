"""The tuples once for each of their windows, by Spark alone; answers are verified against these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from windloom.aggregates.registry import aggregator_for
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.spark.frames import quoted
from windloom.spark.native import instant_sql, tick_sql, timestamp_sql
from windloom.spark.projection import POSITION, with_positions


@dataclass(frozen=True, slots=True)
class WindowedFrame:
    """`frame` grouped by `window` (named `__w`) has a window's tuples together; `start` and `end` are over `__w`."""

    frame: DataFrame
    window: Column
    start: Column
    end: Column


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first tick of a stream, and the last tick of all streams that decide where its landmark windows end."""

    first: int | None
    last: int | None


def windowed(query: Query, stream: Stream, frame: DataFrame, bounds: Bounds | None = None) -> WindowedFrame:
    """Return tuples of the query with their windows; without bounds, landmark windows end with the stream itself."""
    if query.window.kind == "landmark":
        return _from_landmark(query, stream, frame, bounds)
    return _KINDS[query.window.kind](query, stream, frame)


def _passing(query: Query, frame: DataFrame) -> DataFrame:
    # Spark's filter does not accept a bare NULL as a condition.
    return frame if query.where is None else frame.where(f"CAST({query.where.sql} AS BOOLEAN)")


def _by_time(query: Query, stream: Stream, frame: DataFrame) -> WindowedFrame:
    window, source = query.window, _passing(query, frame)
    length, slide, offset = (
        f"{ticks} microseconds" for ticks in (window.range_ticks, window.slide_ticks, window.offset_ticks)
    )
    if window.slide_ticks > window.range_ticks:
        # Spark's window() has no gaps: tumbling windows of the slide are used, without the tuples in the gaps.
        within = f"pmod({tick_sql(stream)} - {window.offset_ticks}L, {window.slide_ticks}L)"
        source, length = source.where(f"{within} < {window.range_ticks}L"), slide
    windows = F.window(F.expr(timestamp_sql(stream)), length, slide, offset).alias("__w")
    end = F.expr(f"timestampadd(MICROSECOND, {window.range_ticks}, __w.start)")
    return WindowedFrame(source, windows, F.col("__w.start"), end)


def _by_position(query: Query, stream: Stream, frame: DataFrame) -> WindowedFrame:
    """Return windows of a query over rows: a tuple lies in those that begin at most their number of rows before it.

    Windows that end behind the last tuple of a key are not reported.
    """
    window, keys = query.window, query.window.counted_by or ()
    counted = Over.partitionBy(*(F.expr(key.sql) for key in keys))
    positioned = with_positions(frame, stream, keys).withColumn("__counted", F.count(POSITION).over(counted))
    source = _passing(query, positioned).where(f"{POSITION} IS NOT NULL")
    slide, count = f"{window.slide_ticks}L", window.range_ticks
    last = f"{POSITION} - pmod({POSITION} - {window.offset_ticks}L, {slide})"
    starts = f"transform(sequence(0L, {count // window.slide_ticks}L), i -> {last} - i * {slide})"
    exploded = f"explode(filter({starts}, s -> s > {POSITION} - {count}L AND s + {count}L <= __counted))"
    source = source.withColumn("__s", F.expr(exploded))
    return WindowedFrame(source, F.col("__s").alias("__w"), F.col("__w"), F.expr(f"__w + {count}L"))


def _from_landmark(query: Query, stream: Stream, frame: DataFrame, bounds: Bounds | None) -> WindowedFrame:
    """Return landmark windows: a tuple lies in all that end after it, up to the first end after the last tuple."""
    window, tick = query.window, tick_sql(stream)
    if bounds is None:
        ticks = frame.selectExpr(f"min({tick}) AS first", f"max({tick}) AS last").collect()[0]
        bounds = Bounds(ticks["first"], ticks["last"])
    source = _passing(query, frame)
    first, last = bounds.first or 0, bounds.last or 0
    if bounds.first is None:
        source = source.where("false")
    slide = f"{window.slide_ticks}L"
    own_end = f"{tick} - pmod({tick} - {window.offset_ticks}L, {slide}) + {slide}"
    last_end = window.last_start(last) + window.slide_ticks
    source = source.withColumn("__e", F.expr(f"explode(sequence({own_end}, {last_end}L, {slide}))"))
    start = F.expr(instant_sql(f"{window.last_start(first)}L", stream.window_type))
    return WindowedFrame(source, F.col("__e").alias("__w"), start, F.expr(instant_sql("__w", stream.window_type)))


def _by_period(query: Query, stream: Stream, frame: DataFrame) -> WindowedFrame:
    """Return cumulating windows: a tuple lies in every window of its period that ends after it."""
    window, tick = query.window, tick_sql(stream)
    period, slide = f"{window.restart_ticks}L", f"{window.slide_ticks}L"
    begin = f"{tick} - pmod({tick} - {window.offset_ticks}L, {period})"
    own_end = f"{tick} - pmod({tick} - {window.offset_ticks}L, {slide}) + {slide}"
    ends = f"explode(sequence({own_end}, {begin} + {period}, {slide}))"
    source = _passing(query, frame).select("*", F.expr(f"{begin} AS __b"), F.expr(f"{ends} AS __e"))
    start, end = (F.expr(instant_sql(f"__w.{name}", stream.window_type)) for name in ("__b", "__e"))
    return WindowedFrame(source, F.struct("__b", "__e").alias("__w"), start, end)


def _by_session(query: Query, stream: Stream, frame: DataFrame) -> WindowedFrame:
    """Return the sessions, which are Spark's own.

    Spark counts DISTINCT values before it merges the sessions of single tuples, so it counts a value twice if two of
    these have it. If a query counts DISTINCT values, tuples are therefore put into their sessions first, then counted.
    """
    gap, source = f"{query.window.range_ticks} microseconds", _passing(query, frame)
    windows = F.session_window(F.expr(timestamp_sql(stream)), gap).alias("__w")
    truths = [aggregator_for(aggregate, None).truth_sql(aggregate, tick_sql(stream)) for aggregate in query.aggregates]
    if any("DISTINCT" in sql for sql in truths):
        groups = [F.expr(grouping.expression.sql).alias(f"__k{i}") for i, grouping in enumerate(query.group_by)]
        columns = [F.col(quoted(name)) for name in source.columns]
        sessions = source.groupBy(windows, *groups).agg(F.collect_list(F.struct(*columns)).alias("__t"))
        source = sessions.select("__w", F.explode("__t").alias("__t")).select("__w", "__t.*")
        windows = F.col("__w")
    return WindowedFrame(source, windows, F.col("__w.start"), F.col("__w.end"))


#: By kind of window; landmark windows are not here, because they also need bounds.
_KINDS: dict[str, Callable[[Query, Stream, DataFrame], WindowedFrame]] = {
    "range": _by_time,
    "cumulate": _by_period,
    "rows": _by_position,
    "session": _by_session,
}
