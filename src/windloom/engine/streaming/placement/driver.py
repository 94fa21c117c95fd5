"""The step on the driver: a round's partials come over as Arrow and are its log; the state stays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from windloom.engine.streaming.options import StreamOptions
from windloom.engine.streaming.placement.placement import Intake, Outcome, Round, Stopwatch
from windloom.engine.streaming.watermark import Watermarks
from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.rounds import State, step
from windloom.rounds.checkpoint import Checkpoint, RoundLog
from windloom.rounds.positions import counted_scans
from windloom.spark.api import SparkSession
from windloom.spark.round_job import Taken, take_in
from windloom.spark.row_job import take_rows


class DriverPlacement:
    description = "driver"
    parts_outlive_rounds = True

    counts_rows = True

    def __init__(
        self,
        spark: SparkSession,
        streams: Mapping[str, Stream],
        checkpoint: Checkpoint,
        watermarks: Watermarks,
        options: StreamOptions,
    ) -> None:
        self._spark, self._streams, self._checkpoint = spark, streams, checkpoint
        self._watermarks, self._options = watermarks, options

    def run(self, round: Round, intake: Intake, watch: Stopwatch) -> Outcome:
        log = self._checkpoint.read_log(round.number)
        if log is None:
            with watch("partials"):
                taken = self._take(round, intake)
            seen, watermark = self._watermarks.after(round.plan, round.state.seen, taken.largest_ticks)
            if intake.watermark is not None:
                watermark = intake.watermark
            log = RoundLog(
                round.number,
                round.record.version,
                watermark,
                seen,
                taken.partials,
                dict(taken.untimed),
                first=taken.smallest_ticks,
            )
            if any(counted_scans(round.plan)):
                with watch("rows"):
                    log = self._with_rows(log, round, intake)
            with watch("log"):
                self._checkpoint.write_log(log)
        with watch("step"):
            state, answers, counts = step(
                round.state,
                log.partials,
                log.watermark,
                round.plan,
                seen=log.seen,
                first=log.first,
                rows=log.rows,
                history_ticks=round.record.history_ticks,
            )
        return Outcome(state, state.nbytes, counts, log.untimed, answers.blocks())

    def committed(self, round: int, state: State) -> None:
        """The state needs no file of its own: it is made again from snapshot and log."""

    def parts(self, state: State, plan: Plan) -> Iterable[State]:
        return [state]

    def _with_rows(self, log: RoundLog, round: Round, intake: Intake) -> RoundLog:
        """The log with what windows of rows take in."""
        state = round.state
        taken = take_rows(
            self._spark,
            round.plan,
            intake.frames,
            state.positions,
            state.closed,
            max(log.watermark, state.closed),
            skip_untimed=self._options.untimed == "skip",
        )
        untimed = {**log.untimed, **{name: max(lost, log.untimed.get(name, 0)) for name, lost in taken.untimed.items()}}
        return replace(log, partials={**log.partials, **taken.partials}, untimed=untimed, rows=taken.rows)

    def _take(self, round: Round, intake: Intake) -> Taken:
        if not intake.frames:
            return Taken({}, {}, {}, {})
        streams = [self._streams[name] for name in intake.frames]
        skip_untimed = self._options.untimed == "skip"
        return take_in(round.plan, streams, intake.frames, intake.batch, skip_untimed=skip_untimed)
