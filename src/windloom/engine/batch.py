"""A batch run: a loop of one round over all tuples at once, with every frontier at +∞ and no checkpoint."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from windloom.answers.blocks import Stopwatch
from windloom.checkpoint.journal import NoJournal
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.recovery import RecoveredState
from windloom.engine.driver import DriverPlacement
from windloom.engine.loop import CompletedRound, Listeners, RoundLoop
from windloom.engine.operator import OperatorPlacement
from windloom.engine.placement import Placement
from windloom.engine.progress import events_of
from windloom.engine.relation_versions import Relations
from windloom.engine.results import DriverResults, Results, RunStats, StoredResults
from windloom.engine.round import RoundTuples
from windloom.engine.row_queries import RowQueries
from windloom.errors import WindloomWarning
from windloom.explain.analysis import MeasuredRun
from windloom.model.formatting import count, parse_size, size_text
from windloom.plan.obstacles import run_obstacle
from windloom.plan.plan import Plan
from windloom.sinks.memory import HeldAnswers
from windloom.sinks.parquet import ParquetStore
from windloom.sinks.tables import AnswerTables
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.errors import as_windloom_errors
from windloom.spark.jobs import SparkBatchJobs, SparkRelationJobs
from windloom.spark.operator.run import usual_buckets
from windloom.spark.placement import check_placement, driver_bytes, inputs_are_small
from windloom.spark.scan import TooLargeError
from windloom.spark.sources.files import LocalFiles
from windloom.spark.untimed import Untimed, check_untimed
from windloom.state.state import State
from windloom.weave.round_input import Watermarks


def run_batch(
    spark: SparkSession,
    plan: Plan,
    frames: Mapping[str, DataFrame],
    versions: Mapping[str, Callable[[], DataFrame]],
    files: Mapping[str, LocalFiles],
    *,
    placement: str,
    buckets: int | None,
    untimed: str,
    out: Path | None,
    memory: str | int | None,
    watch: Stopwatch,
    progress: Callable[[str], None],
) -> Results:
    """Answer all queries of a plan: on the driver or, if asked for or the driver is too small, by the Spark operator.

    `watch` has measured how long planning has taken.
    """
    check_placement(placement, buckets)
    check_untimed(untimed)
    most_bytes = None if memory is None else parse_size(memory)
    left_out = Untimed({stream.name: stream for stream in plan.streams}, untimed == "skip")
    streams = " and ".join(f"stream '{stream.name}'" for stream in plan.streams)
    asked = [planned.query for planned in plan.queries]
    with as_windloom_errors(streams, asked), without_full_collections(), ExitStack() as scope:
        tables = AnswerTables(spark)
        # Opened before anything runs: a directory that cannot be written to is found now, not in an hour.
        store = None if out is None else scope.enter_context(ParquetStore(plan, tables, out))
        relations = Relations(versions, SparkRelationJobs())
        batch = _Batch(spark, plan, relations, tables, store, left_out, watch, progress, HeldAnswers(most_bytes))
        whole = RoundTuples(frames, ends=True)
        if placement != "executors":
            progress("taking in tuples")
            limit = None if placement == "driver" or inputs_are_small(frames) else driver_bytes()
            try:
                return batch.on_driver(whole, SparkBatchJobs(limit, left_out, files))
            except TooLargeError as error:
                progress(f"{error}: going on with executors")
        buckets = buckets or usual_buckets(spark)
        progress(f"partial and final aggregation on executors, in {buckets} buckets")
        _tell_of_rows(plan)
        with ExitStack() as holding:
            return batch.by_operator(whole, buckets, holding)


def _tell_of_rows(plan: Plan) -> None:
    """Warn, in one line, that the operator does not answer some queries."""
    found = [(planned.name, why) for planned in plan.queries if (why := run_obstacle(planned)) is not None]
    if found:
        name, why = found[0]
        more = f" and {count(len(found) - 1, 'other query', 'other queries')} are" if len(found) > 1 else " is"
        warnings.warn(f"query '{name}'{more} answered in process: {why}", WindloomWarning, stacklevel=4)


class _Collections:
    """How many runs hold back full collections, and how often there were to be some before the first of them."""

    lock = threading.Lock()
    runs = 0
    before = gc.get_threshold()


@contextmanager
def without_full_collections() -> Iterator[None]:
    """Put off full garbage collections: each looks at everything that Spark, Numba and the user's program hold.

    What a run drops is freed at once, or by collections of young objects, which continue.
    """
    with _Collections.lock:
        if not _Collections.runs:
            _Collections.before = gc.get_threshold()
            gc.set_threshold(*_Collections.before[:2], 1 << 30)
        _Collections.runs += 1
    try:
        yield
    finally:
        with _Collections.lock:
            _Collections.runs -= 1
            if not _Collections.runs:
                gc.set_threshold(*_Collections.before)


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch run on either placement; `store` is None if the answers are kept in memory."""

    spark: SparkSession
    plan: Plan
    relations: Relations
    tables: AnswerTables
    store: ParquetStore | None
    untimed: Untimed
    watch: Stopwatch
    progress: Callable[[str], None]
    held: HeldAnswers

    def on_driver(self, whole: RoundTuples, jobs: SparkBatchJobs) -> Results:
        placement = DriverPlacement(jobs, self._journal, self._watermarks, RowQueries(jobs), self.relations)
        listeners = Listeners(
            lambda outcome: self.progress(
                f"final aggregation of {sum(outcome.counts.partials.values()):,} partials on the driver"
            ),
            self._made,
        )
        done = self._loop(placement, listeners).run(whole)
        seconds = done.progress.seconds
        partials = seconds["partials"] + seconds.get("rows", 0.0)
        return self._results(done, {"partials": partials, "merge": seconds["step"], "answers": seconds["answers"]})

    def by_operator(self, whole: RoundTuples, buckets: int, holding: ExitStack) -> Results:
        # What is written, or must not be larger than the memory that is given, comes to the driver in portions.
        scope = holding if self.store is not None or self.held.is_bounded else None
        rows = RowQueries(SparkBatchJobs(None, self.untimed))
        placement = OperatorPlacement(buckets, self._watermarks, rows, self.relations, self.untimed, scope)
        done = self._loop(placement, Listeners(made=self._made)).run(whole)
        seconds = done.progress.seconds
        tasks = seconds["partials"] + seconds["operator"]
        return self._results(done, {"partials and answers": tasks, "answers": seconds["answers"]})

    def _made(self, rows: int) -> None:
        if self.store is not None:
            self.progress(f"{rows:,} rows written")
        else:
            self.progress(f"{rows:,} rows in memory, {size_text(self.held.nbytes)}")

    def _results(self, done: CompletedRound, seconds: Mapping[str, float]) -> Results:
        stats = self._stats(done, seconds)
        results: Results = (
            DriverResults(self.spark, self.plan, stats, self.held.blocks, done.outcome.state)
            if self.store is None
            else StoredResults(self.spark, self.plan, stats, self.store.tables)
        )
        results.observed, results.untimed = done.outcome.observed, self._untimed_of(done)
        counts = done.outcome.counts
        results.measured = MeasuredRun(
            os.cpu_count() or 1,
            {**self.watch.seconds, **done.progress.seconds},
            {**self.watch.processor, **done.processor},
            counts.tuples,
            counts.partials,
            counts.groups,
            done.outcome.took,
        )
        results.relations, results.versions = dict(self.relations.read), done.outcome.state.versions
        return results

    def _loop(self, placement: Placement, listeners: Listeners) -> RoundLoop:
        sinks = {"run": self.held if self.store is None else self.store}
        recovered = RecoveredState(State(), None, None, 0)
        return RoundLoop(
            lambda _: self.plan, self._journal, recovered, placement, sinks, self.tables, listeners=listeners
        )

    @property
    def _journal(self) -> NoJournal:
        return NoJournal(PlanRecord(0, 0, {planned.name: planned.query.text for planned in self.plan.queries}))

    @property
    def _watermarks(self) -> Watermarks:
        return Watermarks({stream.name: stream for stream in self.plan.streams}, perf_counter, None)

    def _untimed_of(self, done: CompletedRound) -> dict[str, int]:
        return {**done.outcome.untimed, **self.untimed.left_out}

    def _stats(self, done: CompletedRound, seconds: Mapping[str, float]) -> RunStats:
        counts = done.outcome.counts
        return RunStats(
            events=events_of(self.plan, counts.tuples),
            partials=sum(counts.partials.values()),
            results=done.made,
            late_partly=0,
            late_dropped=0,
            untimed=sum(self._untimed_of(done).values()),
            queries=sum(1 for _ in self.plan.queries),
            trees=sum(1 for _ in self.plan.trees),
            strategy=self.plan.strategy,
            placement=done.progress.placement,
            seconds={**self.watch.seconds, **seconds},
        )
