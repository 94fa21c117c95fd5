"""Streams that are enriched with relations, for verification: joined again, as a Spark user would write it."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.model.query import Query
from windloom.model.stream import Stream

_HOW = {"inner": "inner", "left": "left_outer", "semi": "left_semi", "anti": "left_anti"}


def with_enriched(
    query: Query, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame]
) -> tuple[dict[str, Stream], dict[str, DataFrame]]:
    """Return streams and frames by name, including the enriched streams that a query reads."""
    every, frames_by_name = dict(streams), dict(frames)
    for stream in query.enriched:
        frame = frames[stream.base]
        for enrichment in stream.enrichments:
            other = frames[enrichment.relation]
            other = other.toDF(*(f"{enrichment.label}.{name}" for name in other.columns))
            frame = frame.join(other, on=F.expr(enrichment.on.sql), how=_HOW[enrichment.kind.value])
        every[stream.name], frames_by_name[stream.name] = stream, frame
    return every, frames_by_name
