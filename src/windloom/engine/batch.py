"""A batch run: one round over tuples that are all there, with every frontier at +∞, on the driver or on executors."""

from __future__ import annotations

import os
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
from windloom.plan.physical import Plan
from windloom.plan.statistics import Observed, regularity_of
from windloom.rounds import Answers, Block, RoundInput, State, step
from windloom.rounds.frontiers import all_closed
from windloom.rounds.step import StepCounts
from windloom.rounds.taken import take_together
from windloom.rounds.windows.landmark import landmark_streams
from windloom.spark.answers.executors import run_on_executors
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.errors import as_windloom_errors
from windloom.spark.intake.rows import take_all_rows
from windloom.spark.intake.shards import refuse_untimed, shard_cells, told, with_clocks
from windloom.spark.intake.take import TooLargeError, take_in
from windloom.spark.placement import check_placement, driver_bytes, inputs_are_small


@dataclass(frozen=True, slots=True)
class _Run:
    """What both placements need; `store` is None where the answers are kept in memory."""

    spark: SparkSession
    plan: Plan
    frames: Mapping[str, DataFrame]
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
        run = _Run(spark, plan, frames, store, planning_seconds, progress)
        if placement != "executors":
            limit = None if placement == "driver" or inputs_are_small(frames) else driver_bytes()
            try:
                return _on_driver(run, limit)
            except TooLargeError as error:
                progress(f"{error}: going on with executors")
        return _on_executors(run, shards)


def _on_driver(run: _Run, limit: int | None) -> Results:
    plan = run.plan
    run.progress("taking in tuples with Spark")
    begun = perf_counter()
    found = take_in(plan, run.frames, {}, timed=landmark_streams(plan), limit=limit)
    taken = take_together([found.taken, take_all_rows(plan, run.frames)])
    collected = perf_counter()
    ended = RoundInput(taken, all_closed(plan.streams), found.largest_ticks, found.smallest_ticks)
    _, answers, counts = step(State(), ended, plan)
    run.progress(f"final aggregation of {sum(counts.partials.values()):,} partials on the driver")
    seconds = {"partials": collected - begun, "merge": perf_counter() - collected}
    begun = perf_counter()
    rows = 0

    def counted() -> Iterator[Block]:
        nonlocal rows
        for block in answers.blocks(threads=os.cpu_count() or 1):
            rows += block.table.num_rows
            yield block
            if run.store is not None:
                run.progress(f"{rows:,} rows written")

    blocks = list(counted()) if run.store is None else []
    if run.store is not None:
        run.store.write(counted())
    stats = run.stats("driver", counts.tuples, counts.partials, rows)
    stats = replace(stats, seconds={**stats.seconds, **seconds, "answers": perf_counter() - begun})
    results: Results = (
        DriverResults(run.spark, plan, stats, blocks)
        if run.store is None
        else StoredResults(run.spark, plan, stats, run.store.tables)
    )
    results.observed = _observed(plan, answers, counts)
    return results


def _observed(plan: Plan, answers: Answers, counts: StepCounts) -> dict[int, Observed]:
    """What later plans are predicted with."""
    found = {}
    for number, cells in answers.cells.items():
        if len(cells):
            seconds = float(np.max(cells.starts) - np.min(cells.starts)) / TICKS_PER_SECOND
            tuples, slices = counts.tuples[number], plan.sets[number].edges.edges_per_second * seconds
            regularity = regularity_of(tuples, len(cells), cells.groups * slices)
            found[number] = Observed(tuples, cells.groups, seconds, regularity)
    return found


def _on_executors(run: _Run, shards: int | None) -> Results:
    begun, plan = perf_counter(), run.plan
    shards = shards or 2 * run.spark.sparkContext.defaultParallelism
    run.progress(f"partial and final aggregation on executors, {shards} shards")
    with ExitStack() as undo:
        with ExitStack() as taking:
            cells, _ = shard_cells(plan, run.frames, {}, shards)
            # Read twice: for what the tasks tell of the streams, and for the answers.
            taking.callback(cells.persist().unpersist)
            seen = with_clocks(told(plan, cells), plan, run.frames, landmark_streams(plan))
            refuse_untimed(plan, seen)
            wide = run_on_executors(plan, cells, seen, shards)
            undo.callback(wide.frame.persist().unpersist)
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
