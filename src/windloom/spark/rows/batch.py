"""The tuples of strands in a batch run: read by Spark or, if they are few, fetched once for all queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.durable.tuples import TICK
from windloom.model.expression import Expression
from windloom.model.rows import Strand
from windloom.model.stream import Stream
from windloom.rounds.rows.spans import AskedRows
from windloom.spark.frames import arrow_frame
from windloom.spark.intake.collect import estimated_bytes
from windloom.spark.intake.native import tick_sql
from windloom.spark.intake.ticks import without_time
from windloom.spark.rows.job import TupleViews
from windloom.spark.rows.session import FEW_TUPLES, JobSessions

#: Streams may have few tuples if Spark estimates all of them together at less than this.
_FEW_BYTES = 16 << 20


def batch_views(
    streams: Mapping[str, Stream], frames: Mapping[str, DataFrame], asked: Sequence[AskedRows]
) -> TupleViews:
    """Return views of all tuples; raise if a tuple has no time."""
    wanted: dict[str, set[str]] = {}
    for asked_rows in asked:
        for strand in asked_rows.planned.rows.strands:
            wanted.setdefault(strand.stream, set()).update(strand.columns)
    projected = {name: _projected(streams[name], frames[name], sorted(columns)) for name, columns in wanted.items()}
    fetched = _fetched(projected)
    if fetched is None:
        for name in wanted:
            row = frames[name].select(F.expr(f"count_if({tick_sql(streams[name])} IS NULL)").alias("n")).collect()[0]
            _check_times(streams[name], int(row["n"]))
        session = next(iter(projected.values())).sparkSession
        return TupleViews(session, lambda strand, begin, end: _of(strand, projected), has_rounds=False)
    session = JobSessions(next(iter(projected.values())).sparkSession).of(is_few=True)
    fetched_frames = {}
    for name, table in fetched.items():
        _check_times(streams[name], table.column(TICK).null_count)
        ddl = ", ".join(f"{Expression.of_column(columns).sql} {kind}" for columns, kind in projected[name].dtypes)
        fetched_frames[name] = arrow_frame(session, table, ddl).coalesce(1)
    return TupleViews(session, lambda strand, begin, end: _of(strand, fetched_frames), has_rounds=False)


def _of(strand: Strand, frames: Mapping[str, DataFrame]) -> tuple[object, Callable[[], DataFrame]]:
    return strand.stream, lambda: frames[strand.stream]


def _projected(stream: Stream, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    selected = (Expression.of_column(name).sql for name in columns)
    return frame.selectExpr(*selected, f"{tick_sql(stream)} AS {TICK}")


def _fetched(frames: Mapping[str, DataFrame]) -> dict[str, pa.Table] | None:
    """Return the tuples of all streams; None if they may be many."""
    sizes = [estimated_bytes(frame) for frame in frames.values()]
    if any(size is None for size in sizes) or sum(size or 0 for size in sizes) > _FEW_BYTES:
        return None
    tables, left = {}, FEW_TUPLES
    for name, frame in frames.items():
        tables[name] = frame.limit(left + 1).toArrow()  # Spark's estimate may be far off
        left -= tables[name].num_rows
        if left < 0:
            return None
    return tables


def _check_times(stream: Stream, untimed: int) -> None:
    if untimed:
        raise without_time(stream, untimed)
