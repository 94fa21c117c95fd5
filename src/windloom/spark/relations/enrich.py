"""Streams joined with relations as their tuples come in: by Spark, before anything is projected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.model.expression import Expression
from windloom.model.relation import EnrichedStream
from windloom.plan.physical import Plan

#: A relation that Spark estimates at no more than this is sent to every executor, and no tuple is shuffled.
BROADCAST_BYTES = 512 << 20

_HOW = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


def enriched_frame(stream: EnrichedStream, base: DataFrame, versions: Mapping[str, DataFrame]) -> DataFrame:
    """The tuples of `base` with the columns of all relations, called as in the enriched stream."""
    frame = base
    for one in stream.enrichments:
        version = versions[one.relation]
        renamed = version.select(
            *(F.col(Expression.of_column(name).sql).alias(one.column(name)) for name in version.columns)
        )
        frame = frame.join(_sent(renamed), F.expr(one.on.sql), _HOW[one.kind])
    return frame


def _sent(frame: DataFrame) -> DataFrame:
    try:
        size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Exception:  # a remote session does not show its plan: Spark decides
        return frame
    return F.broadcast(frame) if size <= BROADCAST_BYTES else frame


@dataclass(frozen=True, slots=True)
class RoundFrames(Mapping[str, DataFrame]):
    """The frames of a round by stream, those of enriched streams made when they are asked for."""

    plan: Plan
    frames: Mapping[str, DataFrame]
    versions: Mapping[str, DataFrame] = field(default_factory=dict)

    def __getitem__(self, name: str) -> DataFrame:
        return self.watched(name, lambda frame: frame)

    def watched(self, name: str, watching: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """The same with something done to the tuples of the stream before they are joined."""
        stream = next((one for one in self.plan.enriched if one.name == name), None)
        if stream is None:
            return watching(self.frames[name])
        return enriched_frame(stream, watching(self.frames[stream.base]), self.versions)

    def __iter__(self) -> Iterator[str]:
        """The streams that tuples came of; enriched ones are not among them."""
        return iter(self.frames)

    def __len__(self) -> int:
        return len(self.frames)
