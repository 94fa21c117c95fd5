"""A batch run: partials by Spark in one job, then the final step, on the driver or on executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from windloom.engine.results import DriverResults, ExecutorResults, Results, RunStats, StoredResults
from windloom.engine.store import ParquetStore, check_empty
from windloom.plan.physical import Plan
from windloom.rounds import Block
from windloom.rounds.lateness import Late
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.driver import run_on_driver
from windloom.spark.errors import as_windloom_errors
from windloom.spark.executors import run_on_executors
from windloom.spark.partials import Partials, partials_of
from windloom.spark.placement import check_placement, driver_can_hold, inputs_are_small


def run_batch(
    spark: SparkSession,
    plan: Plan,
    frames: Mapping[str, DataFrame],
    *,
    placement: str,
    shards: int | None,
    out: Path | None,
    planning_seconds: float,
    progress: Callable[[str], None],
) -> Results:
    check_placement(placement)
    if out is not None:
        check_empty(out)
    with as_windloom_errors():
        partials = partials_of(plan, frames)
    measured = None
    if placement == "auto":
        if inputs_are_small(frames):
            placement = "driver"
        else:
            progress("counting partials to choose a placement")
            measured = partials.frame.persist()
            with as_windloom_errors():
                rows = measured.count()
            placement = "driver" if driver_can_hold(rows, len(measured.columns)) else "executors"
            partials = Partials(measured, partials.slots)
    try:
        run = _on_driver if placement == "driver" else _on_executors
        return run(spark, plan, partials, shards, out, planning_seconds, progress)
    finally:
        if measured is not None and placement == "driver":
            measured.unpersist()


def _on_driver(
    spark: SparkSession,
    plan: Plan,
    partials: Partials,
    shards: int | None,
    out: Path | None,
    planning_seconds: float,
    progress: Callable[[str], None],
) -> Results:
    progress("partial aggregation on Spark")
    run = run_on_driver(plan, partials)
    progress(f"final aggregation of {sum(run.counts.partials.values()):,} partials on the driver")
    begun = perf_counter()
    blocks: list[Block] = []
    tables: Mapping[int, str] = {}
    rows = 0
    if out is None:
        for block in run.answers.blocks():
            rows += block.table.num_rows
            blocks.append(block)
    else:
        with ParquetStore(spark, plan, out) as store:
            for block in run.answers.blocks():
                rows += block.table.num_rows
                store.write(block)
                progress(f"{rows:,} rows written")
        tables = store.tables
    late = sum(run.counts.late.values(), Late())
    stats = RunStats(
        events=_events(plan, run.counts.tuples),
        partials=sum(run.counts.partials.values()),
        results=rows,
        late_partly=late.partly,
        late_dropped=late.dropped,
        queries=len(list(plan.queries)),
        trees=len(list(plan.trees)),
        strategy=plan.strategy,
        placement="driver",
        seconds={"plan": planning_seconds, **run.seconds, "answers": perf_counter() - begun},
    )
    if out is None:
        return DriverResults(spark, plan, stats, blocks)
    return StoredResults(spark, plan, stats, tables)


def _on_executors(
    spark: SparkSession,
    plan: Plan,
    partials: Partials,
    shards: int | None,
    out: Path | None,
    planning_seconds: float,
    progress: Callable[[str], None],
) -> Results:
    begun = perf_counter()
    shards = shards or 2 * spark.sparkContext.defaultParallelism
    progress(f"partial and final aggregation on executors, {shards} shards")
    wide = run_on_executors(plan, partials, shards)
    wide.frame.persist()
    with as_windloom_errors():
        counts = wide.totals()
    stats = RunStats(
        events=_events(plan, counts.tuples),
        partials=sum(counts.partials.values()),
        results=counts.rows,
        late_partly=0,
        late_dropped=0,
        queries=len(list(plan.queries)),
        trees=len(list(plan.trees)),
        strategy=plan.strategy,
        placement="executors",
        seconds={"plan": planning_seconds, "partials and answers": perf_counter() - begun},
    )
    if out is None:
        return ExecutorResults(spark, plan, stats, wide)
    begun = perf_counter()
    try:
        with ParquetStore(spark, plan, out) as store:
            store.write_wide(wide)
    finally:
        wide.frame.unpersist()
    stats = replace(stats, seconds={**stats.seconds, "write": perf_counter() - begun})
    return StoredResults(spark, plan, stats, store.tables)


def _events(plan: Plan, tuples: Mapping[int, int]) -> int:
    """Tuples of each stream, counted in the set that took most of them: sets of one stream read the same tuples."""
    most: dict[str, int] = {}
    for one in plan.sets:
        most[one.stream] = max(most.get(one.stream, 0), tuples.get(one.number, 0))
    return sum(most.values())
