"""Reads tuples that are kept from the files of a round, while Spark makes partials from the same files.

Fetching tuples from Spark takes longer than reading them, so columns that are only kept are not fetched. Files are
declined, and tuples fetched from Spark as for any other source, if anything may differ from what Spark would read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from windloom.expressions.arithmetic import DeclinedError
from windloom.model.stream import Stream
from windloom.optimizer.intake.woven import keeping_of, local_projection, woven_scan
from windloom.plan.plan import Plan
from windloom.plan.scans import Scan, WovenScan
from windloom.spark.collect import collected
from windloom.spark.projection import projected
from windloom.weave.files import PORTION_BYTES, FileChunk, units_of, whole_tuples
from windloom.weave.weave import timed_tuples


class TupleKeeper(Protocol):
    """Takes tuples that are kept."""

    def take(self, scan: WovenScan, table: pa.Table) -> None:
        """Take the tuples of a scan, all with a tick, as they were projected."""
        ...


def keeping_scan(plan: Plan, scan: Scan) -> WovenScan | None:
    """Return a scan of the stream that only projects what is kept; None if `scan` does not keep tuples."""
    store = plan.store(scan.stream)
    if store is None or not isinstance(scan, WovenScan) or scan.kept is None:
        return None
    return woven_scan(scan.number, (), keeping=keeping_of(store, plan.rows, plan.stream(scan.stream)))


def keep_by_spark(own: WovenScan, stream: Stream, frame: DataFrame, keeper: TupleKeeper) -> None:
    """Fetch the tuples that a scan keeps from Spark, one portion at a time."""
    for table in collected(projected(own, stream, frame), f"tuples of stream '{stream.name}'"):
        keeper.take(own, timed_tuples(table)[0])


class LocalKeeping:
    """How the driver itself projects the tuples that a plan keeps; remembered, because it means parsing."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._scans: dict[int, WovenScan | None] = {}

    def scan(self, plan: Plan, scan: Scan) -> WovenScan | None:
        """Return the keeping scan with its local projection; None if only Spark knows how to project it."""
        if plan is not self._plan:
            self._plan, self._scans = plan, {}
        if scan.number not in self._scans:
            own = keeping_scan(plan, scan)
            if own is not None:
                local = local_projection(replace(own, kept=None), plan.stream(scan.stream))
                own = None if isinstance(local, str) else replace(own, local=local)
            self._scans[scan.number] = own
        return self._scans[scan.number]


@dataclass(frozen=True, slots=True)
class RoundFiles:
    """The files of a round, all of one stream."""

    keeping: LocalKeeping
    stream: str
    paths: Sequence[str]


@contextmanager
def kept_beside(
    plan: Plan, scan: Scan, frames: Mapping[str, DataFrame], keeper: TupleKeeper | None, files: RoundFiles | None
) -> Iterator[tuple[Scan, TupleKeeper | None]]:
    """Give the work that is left for Spark within the `with`: the scan, and the keeper of its tuples.

    If the driver can read the files, the scan has no columns that are only kept, and the keeper is None. All tuples
    have been taken at the end of the `with`.
    """
    own = None if keeper is None or files is None else files.keeping.scan(plan, scan)
    stream = plan.stream(scan.stream)
    units = [] if own is None or files is None else _units(own, stream, files)
    if own is None or keeper is None or not units:
        yield scan, keeper
        return
    assert isinstance(scan, WovenScan)
    with ThreadPoolExecutor(1, "windloom-kept") as pool:
        reading = pool.submit(lambda: keeper.take(own, timed_tuples(whole_tuples(own, stream, units))[0]))
        # Columns that are only kept are the last ones, so the others keep their places without them.
        feeds = scan.feeds
        places: list[int | None] = [place for fed in feeds for place in fed.groups]
        places += [
            place for fed in feeds for read in fed.components for place in (read.argument, read.by, *read.others)
        ]
        stop = 1 + max((place for place in places if place is not None), default=-1)
        yield replace(scan, columns=scan.columns[:stop]), None
        try:
            reading.result()
        except DeclinedError:  # because of a value, which only reading can show
            keep_by_spark(own, stream, frames[scan.stream], keeper)


def _units(own: WovenScan, stream: Stream, files: RoundFiles) -> list[FileChunk]:
    """Return the parts of all files, if memory can hold them at once: all are read before a tuple is passed on."""
    assert own.local is not None
    if stream.name != files.stream:  # an enriched stream
        return []
    try:
        units = units_of(own.local, stream, files.paths)
    except DeclinedError:
        return []
    width = 8 * (1 + own.signature.words + len(own.columns))
    return units if sum(unit.rows for unit in units) * width <= PORTION_BYTES else []
