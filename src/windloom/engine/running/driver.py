"""The step on the driver: what a round takes in comes over as Arrow and is its log; the state stays in memory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Protocol

from windloom.durable import RoundLog
from windloom.durable.journal import Journal
from windloom.engine.running.placement import Intake, Outcome, Round, Stopwatch
from windloom.engine.running.watermark import Watermarks
from windloom.plan.physical import Plan
from windloom.rounds import RoundInput, State, step
from windloom.rounds.lateness import late_from
from windloom.rounds.observe import observe
from windloom.rounds.positions import counted_scans
from windloom.rounds.timer import Timer
from windloom.spark.api import DataFrame
from windloom.spark.intake.rows import TakenRows
from windloom.spark.intake.take import TakenIn


class DriverJobs(Protocol):
    """What makes cells of the tuples of a round: Spark, or in tests plain Python."""

    def take_in(
        self, plan: Plan, frames: Mapping[str, DataFrame], batch: DataFrame | None, state: State
    ) -> TakenIn: ...

    def take_rows(
        self, plan: Plan, frames: Mapping[str, DataFrame], state: State, frontiers: Mapping[str, int]
    ) -> TakenRows: ...


class DriverPlacement:
    description = "driver"
    counts_rows = True

    def __init__(self, jobs: DriverJobs, journal: Journal, watermarks: Watermarks) -> None:
        self._jobs, self._journal, self._watermarks = jobs, journal, watermarks

    def run(self, round: Round, intake: Intake, watch: Stopwatch) -> Outcome:
        log = self._journal.read_log(round.number)
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
        timer = Timer(round.give_way)
        blocks = partial(answers.blocks, threads=os.cpu_count() or 1, timed=timer)
        late = late_from(round.plan, given)
        return Outcome(state, state.nbytes, counts, observed, log.untimed, blocks, took=timer.seconds, late_from=late)

    def moved_sets(self, old: Plan, new: Plan) -> Collection[int]:
        return ()

    def committed(self, round: int, state: State) -> None:
        """The state needs no file of its own: it is made again from snapshot and log."""

    def kept(self, state: State, plan: Plan) -> AbstractContextManager[Iterable[State]]:
        return nullcontext([state])  # which no round changes

    def _take(self, round: Round, intake: Intake, watch: Stopwatch) -> RoundLog:
        """The log of a round, but for windows of rows."""
        if intake.only_answers:
            return RoundLog(round.number, round.record.version, RoundInput(), only_answers=True)
        found = TakenIn()
        if intake.brings_tuples:
            with watch("partials"):
                found = self._jobs.take_in(round.plan, intake.frames, intake.batch, round.state)
        decide = self._watermarks.ended if intake.ends else self._watermarks.after
        given = decide(round.state, found.largest_ticks, found.smallest_ticks).taking(found.taken, found.events)
        return RoundLog(round.number, round.record.version, given, dict(found.untimed), tuples=found.tuples)

    def _with_rows(self, log: RoundLog, round: Round, intake: Intake) -> RoundLog:
        """The log with what windows of rows take in."""
        given = log.input
        found = self._jobs.take_rows(round.plan, intake.frames, round.state, given.frontiers)
        taken = replace(given.taken, cells={**given.taken.cells, **found.taken.cells})
        return replace(log, input=replace(given, taken=taken, rows=found.positions))
