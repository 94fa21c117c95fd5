"""A round: begin, take in, log, step, sinks, commit. In this order, so that a crash between any two changes no result.

The log is the truth: once it is written, a repeated round reads it instead of asking Spark again, and gives the same
rows. Everything else is derived, and idempotent by the round's number.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter

import pyarrow as pa

from windloom.engine.events import events_of
from windloom.engine.streaming.live_queries import LiveQueries
from windloom.engine.streaming.options import StreamOptions
from windloom.engine.streaming.progress import RoundProgress, instant
from windloom.engine.streaming.sinks.sink import Sink, TableInfo
from windloom.engine.streaming.watermark import Watermarks
from windloom.engine.tables import AnswerTables
from windloom.model.stream import Stream
from windloom.model.time import TICK_MAX, TICKS_PER_SECOND
from windloom.plan.physical import Plan, Shape
from windloom.rounds import Answers, State, step
from windloom.rounds.carry import carry
from windloom.rounds.checkpoint import Checkpoint, PlanRecord, RoundLog, recover
from windloom.rounds.lateness import late_by_stream
from windloom.rounds.step import StepCounts
from windloom.spark.api import DataFrame
from windloom.spark.ingest import Ingest
from windloom.spark.round_job import Taken, take_in


class RoundLoop:
    """All that a running loom knows. `lock` is held while a round runs, and while queries change between rounds."""

    def __init__(
        self,
        streams: Mapping[str, Stream],
        queries: LiveQueries,
        checkpoint: Checkpoint,
        sinks: list[Sink],
        tables: AnswerTables,
        options: StreamOptions,
        report: Callable[[RoundProgress], None],
    ) -> None:
        self.lock = threading.RLock()
        self.queries, self.checkpoint, self.options = queries, checkpoint, options
        self._streams, self._sinks, self._tables, self._report = streams, sinks, tables, report
        self._watermarks = Watermarks(time.monotonic, options.idle_seconds)
        found = recover(checkpoint, queries.plan_of)
        self.state = found.state
        # Before the first round there is no plan to carry a state over from.
        self.record, self.plan = found.plan_record, found.plan

    @property
    def next_round(self) -> int:
        return self.checkpoint.last_committed + 1

    def run_batch(self, batch: DataFrame, number: int, ingest: Ingest) -> None:
        """The round of Spark's micro-batch `number`; one that is committed already is not run again."""
        if number <= self.checkpoint.last_batch:
            return
        self._run(number, lambda plan: self._take(plan, ingest.split(batch), batch))

    def run_history(self, frames: Mapping[str, DataFrame]) -> None:
        """The first round: what came before the stream."""
        self._run(None, lambda plan: self._take(plan, frames, None))

    def finish(self) -> None:
        """A last round without tuples, with watermark +∞: every window that is still open is answered."""
        self._run(None, lambda plan: Taken({}, {}, {}), TICK_MAX)

    def _take(self, plan: Plan, frames: Mapping[str, DataFrame], batch: DataFrame | None) -> Taken:
        streams = [self._streams[name] for name in frames]
        return take_in(plan, streams, frames, batch, skip_untimed=self.options.untimed == "skip")

    def _run(self, batch: int | None, take: Callable[[Plan], Taken], watermark: int | None = None) -> None:
        number = self.next_round
        watch = _Stopwatch()
        record = self.checkpoint.begin(number, batch)
        plan, state = self.adopted(record)
        log = self.checkpoint.read_log(number)
        if log is None:
            with watch("partials"):
                taken = take(plan)
            with watch("log"):
                log = self._log(number, record, plan, state, taken, watermark)
                self.checkpoint.write_log(log)
        with watch("step"):
            state, answers, counts = step(
                state, log.partials, log.watermark, plan, seen=log.seen, history_ticks=record.history_ticks
            )
        with watch("answers"):
            rows = self._emit(number, plan, answers)
        with watch("commit"):
            progress = self._progress(number, batch, log, plan, record, state, counts, rows, watch.seconds)
            self.checkpoint.commit(number, progress.as_dict())
        self.state, self.record, self.plan = state, record, plan
        if (number + 1) % self.options.snapshot_rounds == 0:
            with watch("snapshot"):
                self.checkpoint.snapshot(number, state)
                self.checkpoint.retain()
        self._report(replace(progress, seconds=dict(watch.seconds)))

    def adopted(self, record: PlanRecord) -> tuple[Plan, State]:
        """The plan of a record, and the present state as that plan needs it."""
        plan = self.queries.plan_of(record)
        if self.plan is None or plan is self.plan:
            return plan, self.state
        return plan, carry(self.state, self.plan, plan)

    def _log(
        self, number: int, record: PlanRecord, plan: Plan, state: State, taken: Taken, watermark: int | None
    ) -> RoundLog:
        seen = dict(state.seen)
        for stream, tick in taken.largest_ticks.items():
            seen[stream] = max(tick, seen.get(stream, tick))
        self._watermarks.heard(taken.largest_ticks)
        if watermark is None:
            watermark = self._watermarks.of(plan.streams, seen)
        return RoundLog(number, record.version, watermark, seen, taken.partials, dict(taken.untimed))

    def _emit(self, number: int, plan: Plan, answers: Answers) -> int:
        rows = 0

        def pieces() -> Iterator[tuple[str, pa.Table]]:
            nonlocal rows
            for block in answers.blocks():
                table = self._tables.rows(plan, block)
                rows += table.num_rows
                if table.num_rows:
                    yield self._tables.name(plan.shapes[block.shape]), table

        # Answers are made while they are written; several sinks share one making.
        made: Iterable[tuple[str, pa.Table]] = pieces() if len(self._sinks) == 1 else list(pieces())
        tables = self.table_infos(plan)
        for sink in self._sinks:
            sink.write(number, made, tables)
        return rows

    def table_infos(self, plan: Plan) -> dict[str, TableInfo]:
        queries: dict[Shape, dict[str, tuple[str, ...]]] = {}
        for planned in plan.queries:
            groups = tuple(one.name for one in planned.query.group_by)
            queries.setdefault(plan.shapes[planned.shape], {})[planned.name] = groups
        found: dict[str, TableInfo] = {}
        for shape, own in queries.items():
            name = self._tables.name(shape)
            known = found[name].queries if name in found else {}
            found[name] = TableInfo(self._tables.columns(shape), {**known, **own})
        return found

    def _progress(
        self,
        number: int,
        batch: int | None,
        log: RoundLog,
        plan: Plan,
        record: PlanRecord,
        state: State,
        counts: StepCounts,
        rows: int,
        seconds: Mapping[str, float],
    ) -> RoundProgress:
        late = {
            name: {"partly": one.partly, "dropped": one.dropped}
            for name, one in late_by_stream(plan, counts.late).items()
        }
        watermark = instant(state.closed)
        return RoundProgress(
            round=number,
            batch=batch,
            events=events_of(plan, counts.tuples),
            late_partly=sum(one["partly"] for one in late.values()),
            late_dropped=sum(one["dropped"] for one in late.values()),
            untimed=sum(log.untimed.values()),
            partials=sum(counts.partials.values()),
            results=rows,
            watermark=watermark,
            lag=None if watermark is None else round(time.time() - state.closed / TICKS_PER_SECOND, 3),
            seconds=dict(seconds),
            state_bytes=state.nbytes,
            queries=len(record.queries),
            trees=sum(1 for _ in plan.trees),
            plan_version=record.version,
            late=late,
        )


class _Stopwatch:
    """Seconds of each stage of a round."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        begun = perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = perf_counter() - begun
