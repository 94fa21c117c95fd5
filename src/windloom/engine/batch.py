"""A batch run: partials by Spark in one job, then the final step, on the driver or on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from windloom.engine.events import events_of
from windloom.engine.results import DriverResults, ExecutorResults, Results, RunStats, StoredResults
from windloom.engine.store import ParquetStore
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer import scans_by_grouping
from windloom.plan.physical import Plan
from windloom.plan.statistics import Observed, regularity_of
from windloom.rounds import Block
from windloom.rounds.landmarks import landmark_streams
from windloom.rounds.lateness import Late
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.driver import DriverRun, run_on_driver
from windloom.spark.errors import as_windloom_errors
from windloom.spark.executors import run_on_executors
from windloom.spark.partials import Partials, partials_of
from windloom.spark.placement import check_placement, driver_can_hold, inputs_are_small


@dataclass(frozen=True, slots=True)
class _Run:
    """What both placements need; `store` is None where the answers are kept in memory."""

    spark: SparkSession
    plan: Plan
    store: ParquetStore | None
    planning_seconds: float
    progress: Callable[[str], None]

    def stats(self, placement: str, tuples: Mapping[int, int], partials: Mapping[int, int], rows: int) -> RunStats:
        return RunStats(
            events=events_of(self.plan, tuples),
            partials=sum(partials.values()),
            results=rows,
            late_partly=0,
            late_dropped=0,
            queries=sum(1 for _ in self.plan.queries),
            trees=sum(1 for _ in self.plan.trees),
            strategy=self.plan.strategy,
            placement=placement,
            seconds={"plan": self.planning_seconds},
        )


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
    check_placement(placement, shards)
    streams = " and ".join(f"stream '{stream.name}'" for stream in plan.streams)
    with as_windloom_errors(streams), ExitStack() as scope:
        # Before anything runs: a directory that cannot be written to is known now, not in an hour.
        store = None if out is None else scope.enter_context(ParquetStore(spark, plan, out))
        run = _Run(spark, plan, store, planning_seconds, progress)
        sharded, timed = scans_by_grouping(plan), list(landmark_streams(plan))
        partials = partials_of(plan if placement != "executors" else sharded, frames, timed)
        if placement == "auto" and inputs_are_small(frames):
            placement = "driver"
        elif placement == "auto":
            progress("counting partials to choose a placement")
            measured = partials.frame.persist()
            scope.callback(measured.unpersist)
            placement = "driver" if driver_can_hold(measured.count(), len(measured.columns)) else "executors"
            if placement == "driver" or sharded is plan:
                partials = replace(partials, frame=measured)
            else:
                partials = partials_of(sharded, frames, timed)
        if placement == "driver":
            return _on_driver(run, partials)
        if partials.clocks:
            # Read twice: for the first and last tick of streams, and for the answers.
            scope.callback(partials.frame.persist().unpersist)
        return _on_executors(replace(run, plan=sharded), partials, shards)


def _on_driver(run: _Run, partials: Partials) -> Results:
    run.progress("partial aggregation on Spark")
    made = run_on_driver(run.plan, partials)
    counts = made.counts
    run.progress(f"final aggregation of {sum(counts.partials.values()):,} partials on the driver")
    begun = perf_counter()
    rows = 0

    def counted() -> Iterator[Block]:
        nonlocal rows
        for block in made.answers.blocks():
            rows += block.table.num_rows
            yield block
            if run.store is not None:
                run.progress(f"{rows:,} rows written")

    blocks = list(counted()) if run.store is None else []
    if run.store is not None:
        run.store.write(counted())
    late = sum(counts.late.values(), Late())
    stats = run.stats("driver", counts.tuples, counts.partials, rows)
    seconds = {**stats.seconds, **made.seconds, "answers": perf_counter() - begun}
    stats = replace(stats, late_partly=late.partly, late_dropped=late.dropped, seconds=seconds)
    results: Results = (
        DriverResults(run.spark, run.plan, stats, blocks)
        if run.store is None
        else StoredResults(run.spark, run.plan, stats, run.store.tables)
    )
    results.observed = _observed(run.plan, made)
    return results


def _observed(plan: Plan, made: DriverRun) -> dict[int, Observed]:
    """What later plans are predicted with."""
    found = {}
    for number, cells in made.answers.cells.items():
        if len(cells):
            seconds = float(np.max(cells.starts) - np.min(cells.starts)) / TICKS_PER_SECOND
            tuples, slices = made.counts.tuples[number], plan.sets[number].edges.edges_per_second * seconds
            regularity = regularity_of(tuples, len(cells), cells.groups * slices)
            found[number] = Observed(tuples, cells.groups, seconds, regularity)
    return found


def _on_executors(run: _Run, partials: Partials, shards: int | None) -> Results:
    begun = perf_counter()
    shards = shards or 2 * run.spark.sparkContext.defaultParallelism
    run.progress(f"partial and final aggregation on executors, {shards} shards")
    wide = run_on_executors(run.plan, partials, shards)
    wide.frame.persist()
    with ExitStack() as undo:
        undo.callback(wide.frame.unpersist)
        counts = wide.totals()
        stats = run.stats("executors", counts.tuples, counts.partials, counts.rows)
        seconds = {**stats.seconds, "partials and answers": perf_counter() - begun}
        if run.store is None:
            undo.pop_all()  # the results hold the frame now
            return ExecutorResults(run.spark, run.plan, replace(stats, seconds=seconds), wide)
        begun = perf_counter()
        run.progress(f"writing {counts.rows:,} rows")
        run.store.write_wide(wide, counts.rows)
        seconds["write"] = perf_counter() - begun
        return StoredResults(run.spark, run.plan, replace(stats, seconds=seconds), run.store.tables)
