"""The Spark jobs over relations in a round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from windloom.plan.physical import Plan
from windloom.plan.relations import PlannedRelation
from windloom.spark.placement import driver_bytes
from windloom.spark.relations.changes import SeenFrame
from windloom.spark.relations.enrich import RoundFrames, known_bytes
from windloom.spark.relations.take import TakenVersion, take_version


@dataclass(frozen=True, slots=True)
class SparkRelationJobs:
    """Jobs over relations; versions of more bytes than the driver holds are refused.

    `_held` are versions that several scans of the current round read: all scans must see the same rows.
    """

    _held: list[DataFrame] = field(default_factory=list)

    def seen(self, frame: DataFrame) -> SeenFrame:
        return SeenFrame.of(frame)

    def size(self, frame: DataFrame, seen: SeenFrame) -> tuple[int | None, int | None]:
        """Return rows and bytes of a version; rows are counted, by a job, only if later rounds are sure to recognise
        it."""
        return (None if seen.files is None else frame.count()), known_bytes(frame)

    def take(self, plan: Plan, planned: PlannedRelation, frame: DataFrame) -> TakenVersion:
        return take_version(plan, planned, frame, driver_bytes())

    def enriched(self, plan: Plan, frames: Mapping[str, DataFrame], versions: Mapping[str, DataFrame]) -> RoundFrames:
        readers = Counter(
            name
            for enriched_stream in plan.enriched
            for name in enriched_stream.relations
            for _ in [scan.number for scan in plan.scans if scan.stream == enriched_stream.name]
        )
        read_often = {name: frame for name, frame in versions.items() if readers[name] > 1}
        self._held.extend(frame.persist() for frame in read_often.values())
        return RoundFrames(plan, frames, versions)

    def release(self) -> None:
        while self._held:
            self._held.pop().unpersist()
