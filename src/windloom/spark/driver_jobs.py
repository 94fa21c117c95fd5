"""The Spark jobs of a round whose step runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.rounds.state import State
from windloom.spark.round_job import Taken, take_in
from windloom.spark.row_job import TakenRows, take_rows


@dataclass(frozen=True, slots=True)
class SparkDriverJobs:
    spark: SparkSession
    streams: Mapping[str, Stream]
    skip_untimed: bool

    def take_in(self, plan: Plan, frames: Mapping[str, DataFrame], batch: DataFrame | None) -> Taken:
        streams = [self.streams[name] for name in frames]
        return take_in(plan, streams, frames, batch, skip_untimed=self.skip_untimed)

    def take_rows(
        self, plan: Plan, frames: Mapping[str, DataFrame], state: State, frontiers: Mapping[str, int]
    ) -> TakenRows:
        return take_rows(self.spark, plan, frames, state, frontiers, skip_untimed=self.skip_untimed)
