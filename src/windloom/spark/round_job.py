"""The one Spark job of a round: partials of every scan, the smallest and the largest event time of every stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.spark.partials import check_times, partials_of, timed


@dataclass(frozen=True, slots=True)
class Taken:
    """What a round takes in. Ticks are of the streams that had tuples; `untimed` counts those without a time."""

    partials: Mapping[int, pa.Table]  # by number of the scan
    largest_ticks: Mapping[str, int]
    smallest_ticks: Mapping[str, int]
    untimed: Mapping[str, int]


def take_in(
    plan: Plan,
    streams: Iterable[Stream],
    frames: Mapping[str, DataFrame],
    batch: DataFrame | None,
    *,
    skip_untimed: bool,
) -> Taken:
    """Run the job; `batch` is the micro-batch that all frames are parts of, if there is one.

    Streams no query reads have a clock too: a query that comes later must know which tuples it has missed. Tuples
    without a usable time are refused, or left out and counted.
    """
    partials = partials_of(plan, frames, streams, rows_later=True)
    with ExitStack() as scope:
        if batch is not None and len(partials.slots) > 1:
            # Every part reads the micro-batch; without this each of them would fetch it from the source again.
            batch.persist()
            scope.callback(batch.unpersist)
        table = partials.frame.toArrow()
    split = partials.split(table)
    untimed: dict[str, int] = {}
    if skip_untimed:
        for scan in plan.scans:
            split[scan.number], lost = timed(scan, split[scan.number])
            untimed[scan.stream] = max(untimed.get(scan.stream, 0), lost)
    else:
        check_times(plan, split)
    return Taken(split, partials.largest_ticks(table), partials.smallest_ticks(table), untimed)
