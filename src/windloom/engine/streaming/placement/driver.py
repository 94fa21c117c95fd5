"""The step on the driver: a round's partials come over as Arrow and are its log; the state stays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from windloom.engine.streaming.placement.placement import Intake, Outcome, Round, Stopwatch
from windloom.engine.streaming.watermark import Watermarks
from windloom.plan.physical import Plan
from windloom.rounds import State, step
from windloom.rounds.checkpoint import Checkpoint, RoundLog
from windloom.rounds.positions import counted_scans
from windloom.spark.api import DataFrame
from windloom.spark.round_job import Taken
from windloom.spark.row_job import TakenRows


class DriverJobs(Protocol):
    """What makes partials of the tuples of a round: Spark, or in tests plain Python."""

    def take_in(self, plan: Plan, frames: Mapping[str, DataFrame], batch: DataFrame | None) -> Taken: ...

    def take_rows(
        self, plan: Plan, frames: Mapping[str, DataFrame], state: State, frontiers: Mapping[str, int]
    ) -> TakenRows: ...


class DriverPlacement:
    description = "driver"
    parts_outlive_rounds = True

    counts_rows = True

    def __init__(self, jobs: DriverJobs, checkpoint: Checkpoint, watermarks: Watermarks) -> None:
        self._jobs, self._checkpoint, self._watermarks = jobs, checkpoint, watermarks

    def run(self, round: Round, intake: Intake, watch: Stopwatch) -> Outcome:
        log = self._checkpoint.read_log(round.number)
        if log is None:
            log = self._take(round, intake, watch)
            if any(counted_scans(round.plan)):
                with watch("rows"):
                    log = self._with_rows(log, round, intake)
            with watch("log"):
                self._checkpoint.write_log(log)
        with watch("step"):
            history_ticks = round.record.history_ticks
            state, answers, counts = step(round.state, log.input, round.plan, history_ticks=history_ticks)
        return Outcome(state, state.nbytes, counts, log.untimed, answers.blocks())

    def committed(self, round: int, state: State) -> None:
        """The state needs no file of its own: it is made again from snapshot and log."""

    def parts(self, state: State) -> Iterable[State]:
        return [state]

    def _take(self, round: Round, intake: Intake, watch: Stopwatch) -> RoundLog:
        """The log of a round, but for windows of rows."""
        if intake.finishes:
            return RoundLog(round.number, round.record.version, self._watermarks.finished(round.state))
        with watch("partials"):
            taken = self._jobs.take_in(round.plan, intake.frames, intake.batch)
        told = self._watermarks.after(round.state, taken.largest_ticks, taken.smallest_ticks)
        return RoundLog(round.number, round.record.version, told.with_partials(taken.partials), dict(taken.untimed))

    def _with_rows(self, log: RoundLog, round: Round, intake: Intake) -> RoundLog:
        """The log with what windows of rows take in."""
        given = log.input
        taken = self._jobs.take_rows(round.plan, intake.frames, round.state, given.frontiers)
        untimed = {**log.untimed, **{name: max(lost, log.untimed.get(name, 0)) for name, lost in taken.untimed.items()}}
        given = replace(given, partials={**given.partials, **taken.partials}, rows=taken.rows)
        return replace(log, input=given, untimed=untimed)
