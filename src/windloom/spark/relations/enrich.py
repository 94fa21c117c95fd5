"""Streams joined with relations as their tuples come in: by Spark, before anything is projected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.model.expression import Expression
from windloom.model.relation import EnrichedStream
from windloom.plan.physical import Plan
from windloom.spark.intake.collect import estimated_bytes

#: A relation is sent to every executor, and no tuple is shuffled, unless Spark estimates it at more than this.
BROADCAST_BYTES = 512 << 20
#: From this size on, Spark's estimate means that it does not know the size.
_UNKNOWN_BYTES = 1 << 62

_HOW = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


def enriched_frame(stream: EnrichedStream, base: DataFrame, versions: Mapping[str, DataFrame]) -> DataFrame:
    """Return the tuples of `base` with the columns of all relations, named as in the enriched stream."""
    frame = base
    for enrichment in stream.enrichments:
        version = versions[enrichment.relation]
        renamed = version.select(
            *(F.col(Expression.of_column(name).sql).alias(enrichment.column(name)) for name in version.columns)
        )
        size = known_bytes(renamed)
        frame = frame.join(
            F.broadcast(renamed) if size is None or size <= BROADCAST_BYTES else renamed,
            F.expr(enrichment.on.sql),
            _HOW[enrichment.kind],
        )
    return frame


def known_bytes(frame: DataFrame) -> int | None:
    """Return Spark's estimate of the size of a frame, or None if it has none."""
    size = estimated_bytes(frame)
    return None if size is None or size >= _UNKNOWN_BYTES else size


@dataclass(frozen=True, slots=True)
class RoundFrames(Mapping[str, DataFrame]):
    """The frames of a round by stream; frames of enriched streams are made when they are asked for."""

    plan: Plan
    frames: Mapping[str, DataFrame]
    versions: Mapping[str, DataFrame] = field(default_factory=dict)

    def __getitem__(self, name: str) -> DataFrame:
        return self.watched(name, lambda frame: frame)

    def watched(self, name: str, watching: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Return the frame of a stream, with `watching` applied to its tuples before they are joined."""
        stream = next((enriched_stream for enriched_stream in self.plan.enriched if enriched_stream.name == name), None)
        if stream is None:
            return watching(self.frames[name])
        return enriched_frame(stream, watching(self.frames[stream.base]), self.versions)

    def __iter__(self) -> Iterator[str]:
        """Yield the streams of the round that have tuples; enriched streams are not among them."""
        return iter(self.frames)

    def __len__(self) -> int:
        return len(self.frames)
