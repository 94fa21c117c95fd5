"""The step of a batch run on executors: no state outlives it, and Spark holds its answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext

from windloom.engine.running.executors import gathered_round
from windloom.engine.running.placement import Intake, Outcome, Round, Stopwatch
from windloom.engine.running.relations import Relations
from windloom.engine.running.watermark import Watermarks
from windloom.plan.physical import Plan
from windloom.rounds import State
from windloom.rounds.observe import observe
from windloom.spark.answers.executors import hold_answers
from windloom.spark.answers.shard_job import SparkShardJobs


class HeldPlacement:
    """`scope` says how long the answers are held."""

    description = "executors"
    counts_rows = True

    def __init__(
        self, jobs: SparkShardJobs, shards: int, watermarks: Watermarks, relations: Relations, scope: ExitStack
    ) -> None:
        self._jobs, self._shards, self._watermarks, self._scope = jobs, shards, watermarks, scope
        self.relations = relations

    def run(self, round: Round, intake: Intake, watch: Stopwatch) -> Outcome:
        gathering = (self._jobs, self._watermarks, self.relations)
        with gathered_round(*gathering, round, intake, self._shards, watch) as (shard_round, taken):
            assert taken is not None, "a batch run has tuples"
            with watch("shards"):
                wide = hold_answers(shard_round, taken.frame, self._shards)
        self._scope.callback(wide.unpersist)
        counts = wide.totals.counts
        left = State(versions=shard_round.input.versions)
        return Outcome(left, 0, counts, observe(round.plan, round.state, shard_round.input, counts), wide=wide)

    def moved_sets(self, old: Plan, new: Plan) -> Collection[int]:
        return ()

    def committed(self, round: int, state: State) -> None:
        """There is no other round."""

    def kept(self, state: State, plan: Plan) -> AbstractContextManager[Iterable[State]]:
        return nullcontext([])
