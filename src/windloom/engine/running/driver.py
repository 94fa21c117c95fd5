"""The step on the driver: what a round takes in comes over as Arrow and is its log; the state stays in memory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from typing import Protocol

from windloom.durable import RoundLog
from windloom.durable.journal import Journal
from windloom.durable.tuples import TupleFolder
from windloom.engine.running.placement import Intake, Outcome, Round, Stopwatch
from windloom.engine.running.relations import Relations
from windloom.engine.running.watermark import Watermarks
from windloom.model.relation import Version
from windloom.plan.physical import Plan
from windloom.rounds import Block, RoundInput, State, step
from windloom.rounds.cells import Cells
from windloom.rounds.lateness import late_from
from windloom.rounds.observe import observe
from windloom.rounds.positions import counted_scans
from windloom.rounds.rows.kept import BroughtTuples, Kept, files_of, kept_with
from windloom.rounds.rows.spans import AskedRows
from windloom.rounds.step import asked_before
from windloom.rounds.timer import Timer
from windloom.spark.api import DataFrame
from windloom.spark.intake.rows import TakenRows
from windloom.spark.intake.take import TakenIn, TupleKeeper


class DriverJobs(Protocol):
    """What makes cells of the tuples of a round: Spark, or in tests plain Python."""

    def take_in(
        self,
        plan: Plan,
        frames: Mapping[str, DataFrame],
        batch: DataFrame | None,
        state: State,
        keeper: TupleKeeper | None = None,
    ) -> TakenIn: ...

    def take_rows(
        self, plan: Plan, frames: Mapping[str, DataFrame], state: State, frontiers: Mapping[str, int]
    ) -> TakenRows: ...

    def row_summaries(
        self, plan: Plan, asked: Sequence[AskedRows], frames: Mapping[str, DataFrame], kept: Kept
    ) -> Mapping[str, Cells]: ...

    def row_blocks(
        self, plan: Plan, asked: Sequence[AskedRows], frames: Mapping[str, DataFrame], kept: Kept
    ) -> Iterable[Block]: ...


class DriverPlacement:
    description = "driver"
    counts_rows = True

    def __init__(
        self,
        jobs: DriverJobs,
        journal: Journal,
        watermarks: Watermarks,
        tuples: TupleFolder | None = None,
        relations: Relations | None = None,
    ) -> None:
        """`tuples` is where tuples are kept; None for a batch run, which keeps none."""
        self._jobs, self._journal, self._watermarks, self._tuples = jobs, journal, watermarks, tuples
        self.relations = relations or Relations({})

    def run(self, round: Round, intake: Intake, watch: Stopwatch) -> Outcome:
        log = self._amended(self._journal.read_log(round.number))
        if log is None:
            log = self._take(round, intake, watch)
            if any(counted_scans(round.plan)) and not intake.only_answers:
                with watch("rows"):
                    log = self._with_rows(log, round, intake)
            log = replace(log, input=replace(log.input, postponed=round.decide(log.input)))
            with watch("log"):
                self._journal.write_log(log.smaller(round.plan))
        with watch("step"):
            history_ticks = round.record.history_ticks
            given = log.complete(round.plan, round.state)
            state, answers, counts = step(round.state, given, round.plan, history_ticks=history_ticks)
        with watch("observe"):
            observed = observe(round.plan, round.state, given, counts)
        asked = [asked_rows for asked_rows, _ in answers.rows if not asked_rows.planned.is_summarised]
        kept = kept_with(round.state.kept, given.kept, round.plan)
        timer = Timer(round.give_way)

        def rows() -> Iterator[Block]:
            return self._row_blocks(round, asked, intake, kept)

        def blocks() -> Iterable[Block]:
            made = answers.blocks(threads=os.cpu_count() or 1, timed=timer)
            return chain(made, timer(asked[0].planned.name, rows)) if asked else made

        lost = sorted(name for brought in given.kept.values() for name in brought.lost)
        late = late_from(round.plan, given)
        return Outcome(
            state, state.nbytes, counts, observed, log.untimed, blocks, lost=lost, took=timer.seconds, late_from=late
        )

    def moved_sets(self, old: Plan, new: Plan) -> Collection[int]:
        return ()

    def _row_blocks(self, round: Round, asked: Sequence[AskedRows], intake: Intake, kept: Kept) -> Iterator[Block]:
        with self._naming_damage(kept):
            yield from self._jobs.row_blocks(round.plan, asked, intake.frames, kept)

    def _naming_damage(self, kept: Kept) -> AbstractContextManager[None]:
        return nullcontext() if self._tuples is None else self._tuples.naming_damage(kept)

    def _amended(self, log: RoundLog | None) -> RoundLog | None:
        """The log of a round that was interrupted, and of which tuple files have been lost since."""
        if log is None or self._tuples is None or not self._tuples.lost:
            return log
        kept = dict(log.input.kept)
        for stream, lost in self._tuples.lost.items():
            kept[stream] = replace(kept.get(stream, BroughtTuples()), lost=lost)
        log = replace(log, input=replace(log.input, kept=kept))
        self._journal.write_log(log)
        return log

    def committed(self, round: int, state: State) -> None:
        """The cells need no file of their own: they are made again from snapshot and log."""
        if self._tuples is not None:
            self._tuples.keep_only(files_of(state.kept))
            self._tuples.lost = {}

    @contextmanager
    def kept(self, state: State, plan: Plan) -> Iterator[Iterable[State]]:
        with ExitStack() as scope:
            if self._tuples is not None:
                scope.enter_context(self._tuples.pinned(files_of(state.kept)))
            yield [state]  # which no round changes

    def _take(self, round: Round, intake: Intake, watch: Stopwatch) -> RoundLog:
        """The log of a round, but for windows of rows."""
        if intake.only_answers:
            nothing = RoundInput(round=round.number)
            return RoundLog(round.number, round.record.version, nothing, only_answers=True)
        found, brought, versions = TakenIn(), dict[str, BroughtTuples](), dict[str, Version]()
        if intake.brings_tuples:
            with watch("partials"):
                frames, versions = self.relations.enriched(round, intake.frames)
                try:
                    found, brought = self._taken_in(round, frames, intake.batch)
                finally:
                    self.relations.release()
        decide = self._watermarks.ended if intake.ends else self._watermarks.after
        given = decide(round.state, found.largest_ticks, found.smallest_ticks).taking(found.taken, found.events)
        given = replace(given, round=round.number, kept=brought)
        given = self.relations.with_versions(round, given, watch, versions)
        if any(planned_rows.is_summarised for planned_rows in round.plan.rows):
            with watch("rows"):
                given = replace(given, summaries=self._summaries(given, round, intake))
        return RoundLog(round.number, round.record.version, given, dict(found.untimed), tuples=found.tuples)

    def _summaries(self, given: RoundInput, round: Round, intake: Intake) -> Mapping[str, Cells]:
        """Partials of the rows that enter in a round, by query that aggregates them."""
        asked = [
            asked_rows
            for asked_rows in asked_before(round.state, given, round.plan)
            if asked_rows.planned.is_summarised
        ]
        kept = kept_with(round.state.kept, given.kept, round.plan)
        with self._naming_damage(kept):
            return self._jobs.row_summaries(round.plan, asked, intake.frames, kept) if asked else {}

    def _taken_in(
        self, round: Round, frames: Mapping[str, DataFrame], batch: DataFrame | None
    ) -> tuple[TakenIn, dict[str, BroughtTuples]]:
        """What the round takes in, and the files of tuples that it keeps, which are complete when this returns."""
        if self._tuples is None or not round.plan.stores:
            return self._jobs.take_in(round.plan, frames, batch, round.state), {}
        self._tuples.look_for_lost(round.state.kept)
        writer = self._tuples.writer(round.number, round.plan)
        try:
            found = self._jobs.take_in(round.plan, frames, batch, round.state, writer)
            written = writer.finish()
            return found, self._tuples.brought(written, round.state.kept, round.plan, round.number)
        except BaseException:
            writer.discard()
            raise

    def _with_rows(self, log: RoundLog, round: Round, intake: Intake) -> RoundLog:
        """The log with what windows of rows take in."""
        given = log.input
        found = self._jobs.take_rows(round.plan, intake.frames, round.state, given.frontiers)
        taken = replace(given.taken, cells={**given.taken.cells, **found.taken.cells})
        return replace(log, input=replace(given, taken=taken, rows=found.positions))
