"""The watermarks that a user has put on a DataFrame with `withWatermark`: for which columns, and with what delay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from windloom.model.time import TICKS_PER_SECOND

#: Spark's key for the delay, in milliseconds, in the metadata of a column; columns keep it when they are renamed.
_DELAY = "spark.watermarkDelayMs"


def watermarked_columns(frame: DataFrame) -> dict[str, int]:
    """Return the delays, in ticks, of the columns of a streaming frame that have a watermark."""
    if not frame.isStreaming:  # Spark ignores watermarks of batch data
        return {}
    return {
        field.name: _ticks(field.metadata[_DELAY]) for field in frame.schema.fields if _DELAY in (field.metadata or {})
    }


def watermarks_in(frame: DataFrame) -> list[tuple[str, int]]:
    """Return every `withWatermark` from which a frame was made: its column, as it was then called, and its delay.

    A remote session does not show them: then only those that columns still have are returned.
    """
    if not hasattr(frame, "_jdf"):
        return list(watermarked_columns(frame).items())
    jvm: Any = frame.sparkSession._jvm
    milliseconds = jvm.org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark.getDelayMs
    nodes = _watermark_nodes(frame._jdf.queryExecution().analyzed())
    return [(str(node.eventTime().name()), _ticks(milliseconds(node.delay()))) for node in nodes]


def _watermark_nodes(plan: Any) -> Iterator[Any]:
    if plan.nodeName() == "EventTimeWatermark":
        yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _watermark_nodes(children.apply(number))


def _ticks(milliseconds: int) -> int:
    return int(milliseconds) * TICKS_PER_SECOND // 1_000
