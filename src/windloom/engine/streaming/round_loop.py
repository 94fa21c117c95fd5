"""A round: begin, take in, log, step, sinks, commit. In this order, so that a crash between any two changes no result.

The log is the truth: once it is written, a repeated round reads it instead of asking Spark again, and gives the same
rows. Everything else is derived, and idempotent by the round's number. Taking in, logging and stepping are the
placement's: what is logged depends on where the step runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pyarrow as pa

from windloom.durable import Checkpoint, PlanRecord, RoundLog, recover
from windloom.engine.events import events_of
from windloom.engine.streaming.live_queries import LiveQueries
from windloom.engine.streaming.options import StreamOptions
from windloom.engine.streaming.placement.placement import Intake, Outcome, Placement, Round, Stopwatch
from windloom.engine.streaming.progress import RoundProgress, frontier_ticks, instant
from windloom.engine.streaming.sinks.sink import Sink, TableInfo
from windloom.engine.tables import AnswerTables
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.physical import PartialSet, Plan, Shape
from windloom.rounds import Block, State
from windloom.rounds.backfill import LoggedRound, woven_again
from windloom.rounds.carry import carry, find_set
from windloom.rounds.cells import Cells
from windloom.rounds.lateness import Late
from windloom.rounds.state import History
from windloom.spark.api import DataFrame
from windloom.spark.intake.ingest import Ingest


class RoundLoop:
    """All that a running loom knows. `lock` is held while a round runs, and while queries change between rounds."""

    def __init__(
        self,
        queries: LiveQueries,
        checkpoint: Checkpoint,
        placement: Placement,
        sinks: list[Sink],
        tables: AnswerTables,
        options: StreamOptions,
        report: Callable[[RoundProgress], None],
    ) -> None:
        self.lock = threading.RLock()
        self.queries, self.checkpoint, self.options = queries, checkpoint, options
        self.placement, self._sinks, self._tables, self._report = placement, sinks, tables, report
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
        self._run(number, Intake(ingest.split(batch), batch))

    def run_history(self, frames: Mapping[str, DataFrame]) -> None:
        """The first round: what came before the stream."""
        self._run(None, Intake(frames))

    def finish(self) -> None:
        """A last round without tuples, with every frontier at +∞: all windows that are still open are answered."""
        self._run(None, Intake(finishes=True))

    def _run(self, batch: int | None, intake: Intake) -> None:
        number = self.next_round
        watch = Stopwatch()
        record = self.checkpoint.begin(number, batch)
        plan, state = self.adopted(record)
        if plan is not self.plan and number > 0:
            # What a new query's past is made from may be gone when the round is replayed: it is kept before it counts.
            self._keep_past(number - 1, record, plan, state)
        round = Round(number, record, plan, state, self.plan, self.state)
        outcome = self.placement.run(round, intake, watch)
        with watch("answers"):
            rows = self._emit(number, plan, outcome.blocks)
        with watch("commit"):
            progress = self._progress(round, batch, outcome, rows, watch.seconds)
            self.checkpoint.commit(number, progress.as_dict())
        self.state, self.record, self.plan = outcome.state, record, plan
        self.placement.committed(number, self.state)
        if (number + 1) % self.options.snapshot_rounds == 0:
            with watch("snapshot"):
                self.checkpoint.snapshot(number, self.state)
                self.checkpoint.retain()
        self._report(replace(progress, seconds=dict(watch.seconds)))

    @contextmanager
    def kept(self) -> Iterator[tuple[Plan | None, Iterable[State]]]:
        """The plan of the last round, and the state it left, in parts; rounds wait only if the parts need that."""
        with ExitStack() as held:
            held.enter_context(self.lock)
            plan = self.plan
            parts = [] if plan is None else self.placement.parts(self.state, plan)
            if self.placement.parts_outlive_rounds:
                held.close()
            yield plan, parts

    def adopted(self, record: PlanRecord) -> tuple[Plan, State]:
        """The plan of a record, and the present state as that plan needs it."""
        plan = self.queries.plan_of(record)
        return plan, self.carried(plan)

    def carried(self, plan: Plan) -> State:
        """The present state as a plan needs it; called while the lock is held."""
        if self.plan is None or plan is self.plan:
            return self.state
        return carry(self.state, self.plan, plan, self.past)

    def past(self, one: PartialSet) -> tuple[Cells | None, History] | None:
        """What the logged tuples of past rounds make of a set; called while the lock is held."""
        return woven_again(one, self._logged_rounds())

    def _logged_rounds(self) -> Iterator[LoggedRound]:
        """Newest first, as long as tuples were logged."""
        newer: RoundLog | None = None
        for log in self.checkpoint.logged():
            if newer is not None:
                yield LoggedRound(self._plan_of(newer), newer.tuples, log.input.seen)
            newer = log
        if newer is not None and newer.round == 0:
            yield LoggedRound(self._plan_of(newer), newer.tuples, {})

    def _plan_of(self, log: RoundLog) -> Plan:
        return self.queries.plan_of(self.checkpoint.plan(log.plan_version))

    def _keep_past(self, round: int, record: PlanRecord, plan: Plan, state: State) -> None:
        is_new = (one for one in plan.sets if self.plan is not None and find_set(self.plan, one) is None)
        if any(one.number in state.cells for one in is_new):
            self.checkpoint.snapshot(round, state, record.version)

    def _emit(self, number: int, plan: Plan, blocks: Iterable[Block]) -> int:
        rows = 0

        def pieces() -> Iterator[tuple[str, pa.Table]]:
            nonlocal rows
            for shape, table in self._tables.pieces(plan, blocks):
                rows += table.num_rows
                if table.num_rows:
                    yield self._tables.name(shape), table

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
        self, round: Round, batch: int | None, outcome: Outcome, rows: int, seconds: Mapping[str, float]
    ) -> RoundProgress:
        counts, state = outcome.counts, outcome.state
        late = {stream.name: _told(counts.late.streams.get(stream.name, Late())) for stream in round.plan.streams}
        ticks = frontier_ticks(round.plan, state)
        frontiers, lags = {name: instant(tick) for name, tick in ticks.items()}, _lags(ticks)
        behind = min(ticks, key=lambda name: ticks[name])
        return RoundProgress(
            round=round.number,
            batch=batch,
            events=events_of(round.plan, counts.tuples),
            late_partly=sum(one["partly"] for one in late.values()),
            late_dropped=sum(one["dropped"] for one in late.values()),
            untimed=sum(outcome.untimed.values()),
            partials=sum(counts.partials.values()),
            results=rows,
            watermark=frontiers[behind],
            lag=lags[behind],
            seconds=dict(seconds),
            state_bytes=outcome.state_bytes,
            queries=len(round.record.queries),
            trees=sum(1 for _ in round.plan.trees),
            plan_version=round.record.version,
            late=late,
            late_queries={name: _told(one) for name, one in sorted(counts.late.queries.items())},
            frontiers=frontiers,
            lags=lags,
            placement=self.placement.description,
        )


def _told(late: Late) -> dict[str, int]:
    return {"partly": late.partly, "dropped": late.dropped}


def _lags(ticks: Mapping[str, int]) -> dict[str, float | None]:
    """By how many seconds ticks are behind the clock; None where they are no instants."""
    now = time.time()
    return {
        name: None if instant(tick) is None else round(now - tick / TICKS_PER_SECOND, 3) for name, tick in ticks.items()
    }
