"""Makes the cells of windows of rows: tuples whose position is final are counted and woven, others wait.

In a round this follows the job that finds the frontiers. Among the tuples that waited and those that came, the ones
that the frontier of their stream has passed are ripe. There is one job per way to count, which fetches ripe tuples, and
one per stream, which fetches those that still wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windloom.model.stream import Stream
from windloom.model.time import TICK_MIN
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.spark.collect import collected
from windloom.spark.frames import arrow_frame, ddl_of_columns
from windloom.spark.native import tick_sql
from windloom.spark.projection import POSITION, projected, with_positions
from windloom.spark.untimed import Untimed
from windloom.state.positions import (
    Counting,
    PositionCounts,
    Positions,
    counted_scans,
    counted_tuples,
    counting_of,
    key_types,
)
from windloom.state.state import State
from windloom.weave.round_input import ScanResult, take_together, take_tuples
from windloom.weave.weave import timed_tuples

#: The column that says whether a tuple came in this round, and did not wait.
_FRESH = "__fresh"


@dataclass(frozen=True, slots=True)
class TakenRows:
    """The cells of tuples that have a position now, and the new positions."""

    taken: ScanResult
    positions: Positions


def take_all_rows(plan: Plan, frames: Mapping[str, DataFrame], untimed: Untimed) -> TakenRows:
    """Return the cells of a batch run, in which all tuples that have a time have a position."""
    parts = []
    counts: dict[Counting, PositionCounts] = {}
    for scan in counted_scans(plan):
        stream = plan.stream(scan.stream)
        # All tuples are counted, whether they satisfy WHERE or not: a window of rows is taken before WHERE.
        frame = with_positions(frames[scan.stream], stream, scan.counted_by or ())
        missing = 0
        for table in collected(projected(scan, stream, frame), f"what is counted of stream '{stream.name}'"):
            table, ticks = timed_tuples(table)
            missing += ticks.untimed
            parts.append(take_tuples(plan, scan, table))
            counted = counts.get(counting_of(scan), PositionCounts())
            counts[counting_of(scan)] = counted.plus(counted_tuples(plan, scan, table))
        untimed.add(stream.name, missing)
    return TakenRows(take_together(parts) if parts else ScanResult(), Positions({}, counts))


def take_rows(
    spark: SparkSession, plan: Plan, frames: Mapping[str, DataFrame], state: State, frontiers: Mapping[str, int]
) -> TakenRows:
    """Return the cells of a round. `frontiers` are those after it; tuples behind the earlier frontier are late."""
    parts: list[ScanResult] = []
    counts: dict[Counting, PositionCounts] = {}
    waiting: dict[str, pa.Table] = {}
    with ExitStack() as scope:
        for name in dict.fromkeys(scan.stream for scan in counted_scans(plan)):
            stream = plan.stream(name)
            tick, frontier = tick_sql(stream), frontiers.get(name, TICK_MIN)
            closed = state.frontiers.get(name, TICK_MIN)
            is_in_time = f"({tick} >= {closed}L OR NOT {_FRESH})"
            source = _source(spark, stream, frames.get(name), state.positions.waiting.get(name))
            own = [scan for scan in counted_scans(plan) if scan.stream == name]
            counts |= {counting_of(scan): state.positions.counts_of(scan) for scan in own}
            if source is None:
                continue
            scope.callback(source.persist().unpersist)
            for scan in own:
                before = counts[counting_of(scan)]
                ripe = source.where(f"{tick} > {before.after}L AND {tick} < {frontier}L AND {is_in_time}")
                positioned = projected(scan, stream, _positioned(plan, ripe, stream, scan, before))
                for table in collected(positioned, f"what is counted of stream '{name}'"):
                    parts.append(take_tuples(plan, scan, table))
                    counts[counting_of(scan)] = counts[counting_of(scan)].plus(counted_tuples(plan, scan, table))
            waits = source.where(f"{tick} >= {frontier}L AND {is_in_time}").drop(_FRESH)
            waiting[name] = pa.concat_tables(collected(waits, f"what waits of stream '{name}'"))
    return TakenRows(take_together(parts) if parts else ScanResult(), Positions(waiting, counts))


def _source(spark: SparkSession, stream: Stream, fresh: DataFrame | None, waiting: pa.Table | None) -> DataFrame | None:
    """Return the tuples that waited and those that came, with a column that distinguishes them."""
    came = None if fresh is None else fresh.withColumn(_FRESH, F.lit(True))
    if waiting is None or not waiting.num_rows:
        return came
    session = spark if came is None else came.sparkSession  # a micro-batch has a session of its own
    ddl = ddl_of_columns({name: kind.name for name, kind in stream.columns.items()})
    waited = arrow_frame(session, waiting, ddl).withColumn(_FRESH, F.lit(False))
    return waited if came is None else came.unionAll(waited.select(*came.columns))


def _positioned(plan: Plan, ripe: DataFrame, stream: Stream, scan: WovenScan, counts: PositionCounts) -> DataFrame:
    """Return the ripe tuples with positions that continue from the earlier counts."""
    keys = scan.counted_by or ()
    positioned = with_positions(ripe, stream, keys)
    if counts.table is None or not counts.table.num_rows:
        return positioned
    if not keys:
        return positioned.withColumn(POSITION, F.expr(f"{POSITION} + {counts.most}L"))
    kinds = {f"__k{i}": kind for i, kind in enumerate(key_types(plan, scan, keys))}
    table = counts.table.rename_columns([*kinds, "__counted"])
    ddl = ddl_of_columns({**{name: kind.name for name, kind in kinds.items()}, "__counted": "bigint"})
    known = F.broadcast(arrow_frame(ripe.sparkSession, table, ddl))
    same = [F.expr(f"{key.sql} <=> __k{i}") for i, key in enumerate(keys)]
    joined = positioned.join(known, on=same, how="left")
    position = F.expr(f"{POSITION} + coalesce(__counted, 0L)")
    return joined.withColumn(POSITION, position).drop(*kinds, "__counted")
