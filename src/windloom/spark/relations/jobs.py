"""What Spark does with relations in a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from windloom.plan.physical import Plan
from windloom.plan.relations import PlannedRelation
from windloom.spark.placement import driver_bytes
from windloom.spark.relations.changes import SeenFrame
from windloom.spark.relations.take import TakenVersion, take_version


@dataclass(frozen=True, slots=True)
class SparkRelationJobs:
    """Versions of more bytes than the driver takes in at once are refused."""

    def seen(self, frame: DataFrame) -> SeenFrame:
        return SeenFrame.of(frame)

    def take(self, plan: Plan, planned: PlannedRelation, frame: DataFrame) -> TakenVersion:
        return take_version(plan, planned, frame, driver_bytes())

    def enriched(
        self, plan: Plan, frames: Mapping[str, DataFrame], versions: Mapping[str, DataFrame]
    ) -> Mapping[str, DataFrame]:
        return frames
