"""The step of a batch run on executors: no state outlives it, and Spark holds its answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext

from windloom.durable import RoundLog
from windloom.durable.tuples import LostTuplesError
from windloom.engine.running.executors import gathered_round
from windloom.engine.running.placement import Intake, Outcome, Round, Stopwatch
from windloom.engine.running.relations import Relations
from windloom.engine.running.watermark import Watermarks
from windloom.plan.physical import Plan
from windloom.rounds import State
from windloom.rounds.observe import observe
from windloom.spark.answers.executors import WideAnswers, hold_answers
from windloom.spark.answers.shard_job import SparkShardJobs
from windloom.spark.api import DataFrame
from windloom.spark.rows.wide import with_rows


class HeldPlacement:
    """`scope` says how long the answers are held."""

    description = "executors"
    counts_rows = True
    logs_past = False

    def __init__(
        self, jobs: SparkShardJobs, shards: int, watermarks: Watermarks, relations: Relations, scope: ExitStack
    ) -> None:
        self._jobs, self._shards, self._watermarks, self._scope = jobs, shards, watermarks, scope
        self.relations = relations
        self._wide: WideAnswers | None = None

    def logged(self, round: Round, intake: Intake, watch: Stopwatch) -> RoundLog | None:
        return None

    def read(self, round: Round, intake: Intake, watch: Stopwatch) -> RoundLog:
        gathering = (self._jobs, self._watermarks, self.relations)
        with gathered_round(*gathering, round, intake, self._shards, watch) as given:
            assert given.taken is not None, "a batch run has tuples"
            with watch("shards"):
                wide = hold_answers(given.told(round), given.taken.frame, self._shards)
                wide = self._wide = self._with_rows(wide, round.plan, intake.frames)
        self._scope.callback(wide.unpersist)
        return RoundLog(round.number, round.record.version, given.input)

    def step(self, round: Round, log: RoundLog, intake: Intake, watch: Stopwatch) -> Outcome:
        assert self._wide is not None, "tuples are read before the step"
        counts = self._wide.totals.counts
        observed = observe(round.plan, round.state, log.input, counts)
        return Outcome(State(versions=log.input.versions), 0, counts, observed, wide=self._wide)

    def _with_rows(self, wide: WideAnswers, plan: Plan, frames: Mapping[str, DataFrame]) -> WideAnswers:
        try:
            return with_rows(wide, plan, frames)
        except BaseException:
            wide.unpersist()
            raise

    def moved_sets(self, old: Plan, new: Plan) -> Collection[int]:
        return ()

    def lose(self, error: LostTuplesError) -> bool:
        return False  # a batch run keeps no tuples

    def committed(self, round: int, state: State) -> None:
        """Does nothing: there is no other round."""

    def kept(self, state: State, plan: Plan) -> AbstractContextManager[Iterable[State]]:
        return nullcontext([])
