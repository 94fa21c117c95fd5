"""The rows of a frame as Arrow tables on the driver, in portions that it can hold; streams in one streaming frame.

Spark refuses a job whose result is larger than `spark.driver.maxResultSize`. So a large result is fetched by several
jobs, each over a few partitions of the same plan; nothing is computed twice.

One Spark query reads all streams of a loom, so that a round is one micro-batch of all of them and replays as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.util import _load_from_socket

from windloom.errors import WindloomError
from windloom.model.expression import Expression
from windloom.spark.frames import unite
from windloom.spark.session import is_remote
from windloom.weave.files import PORTION_BYTES

#: Results that Spark estimates at no more than this are fetched by one job.
SMALL_BYTES = 64 << 20

_LIMIT = "spark.driver.maxResultSize"

#: Rows of an Arrow batch: the setting, its default, and the number that suits results that are taken whole.
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_USUAL_BATCH, _LARGE_BATCH = "10000", "131072"


@dataclass(slots=True)
class FetchResult:
    """How rows were fetched: `at_once` is true if one Spark action fetched all of them."""

    at_once: bool = False


def collected(
    frame: DataFrame,
    what: str,
    fetched: FetchResult | None = None,
    *,
    smaller: str = "repartition the data into more partitions, or use placement='executors'",
) -> Iterator[pa.Table]:
    """Yield all rows, in one or more portions; an error says `what` they are, and how to make partitions `smaller`.

    The server of a remote session sends any result in portions of its own.
    """
    if is_remote(frame.sparkSession):
        if fetched is not None:
            fetched.at_once = True
        yield frame.toArrow()
        return
    size = estimated_bytes(frame)
    if size is not None and size <= SMALL_BYTES:
        try:
            with _large_batches(frame):
                table = frame.toArrow()
        except (PySparkException, Py4JJavaError) as error:
            if _LIMIT not in str(error):
                raise
        else:
            if fetched is not None:
                fetched.at_once = True
            yield table
            return
    yield from _Portions(frame, what, smaller).tables()


class _Portions:
    """Partitions of a frame's plan, fetched a few at a time."""

    def __init__(self, frame: DataFrame, what: str, smaller: str) -> None:
        self._context, self._what, self._smaller = frame.sparkSession.sparkContext, what, smaller
        # As in `toArrow`: this setting determines how the JVM lays out strings.
        large = str(frame.sparkSession.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false")) == "true"
        self._schema = to_arrow_schema(frame.schema, timezone="UTC", prefers_large_types=large)
        plan = frame._jdf.queryExecution().executedPlan()
        with _large_batches(frame):
            batches = frame._jdf.toArrowBatchRdd(plan)
        self._count: int = batches.getNumPartitions()
        self._batches = batches.toJavaRDD()

    @cached_property
    def _limit(self) -> int | None:
        """The driver's limit in bytes, if there is one: a call to the JVM, only for results of several portions."""
        jvm: Any = self._context._jvm
        text = self._context.getConf().get(_LIMIT, "1g") or "1g"
        return int(jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(text)) or None

    def tables(self) -> Iterator[pa.Table]:
        if not self._count:
            yield self._schema.empty_table()
        first, size = 0, max(1, self._context.defaultParallelism)
        largest = 0.0
        while first < self._count:
            size = min(size, self._count - first)
            try:
                table = self._fetch(range(first, first + size))
            except (PySparkException, Py4JJavaError) as error:
                if _LIMIT not in str(error):
                    raise
                if size == 1:
                    limit = "the driver's limit" if self._limit is None else f"{self._limit / 2**20:,.0f} MiB"
                    raise WindloomError(
                        f"{self._what} cannot be brought to the driver",
                        f"partition {first} of {self._count:,} alone is larger than {limit} ({_LIMIT})",
                        f"{self._smaller}; or raise {_LIMIT}",
                    ) from None
                size = max(1, size // 2)
                continue
            first += size
            largest = max(largest, table.nbytes / size)
            if first < self._count:
                aim = PORTION_BYTES if self._limit is None else min(PORTION_BYTES, self._limit // 2)
                size = max(1, int(aim / largest)) if largest else self._count
            if table.num_rows or first == self._count:
                yield table

    def _fetch(self, partitions: range) -> pa.Table:
        jvm: Any = self._context._jvm
        socket = jvm.PythonRDD.runJob(self._context._jsc.sc(), self._batches, list(partitions))
        stream: Any = _load_from_socket(socket, NoOpSerializer())
        with stream if hasattr(stream, "__enter__") else nullcontext(stream) as messages:
            batches = [pa.ipc.read_record_batch(pa.py_buffer(message), self._schema) for message in messages]
        return pa.Table.from_batches(batches, self._schema)


@contextmanager
def _large_batches(frame: DataFrame) -> Iterator[None]:
    """Make Arrow batches larger than Spark's default, which takes a third more time; a user's own setting stays."""
    conf = frame.sparkSession.conf
    if conf.get(_BATCH, _USUAL_BATCH) != _USUAL_BATCH:
        yield
        return
    conf.set(_BATCH, _LARGE_BATCH)
    try:
        yield
    finally:
        conf.set(_BATCH, _USUAL_BATCH)


def estimated_bytes(frame: DataFrame) -> int | None:
    """Return Spark's estimate of the size of the frame; None if it has none."""
    try:
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Exception:  # a remote session does not show its plan
        return None


@dataclass(frozen=True, slots=True)
class Ingest:
    """Several streams in one streaming frame, whose micro-batches are split into one frame per stream again.

    `frame` is what the Spark query reads; `columns` has (slot, column) pairs of each stream, in order. Columns share
    slots by type; `stream` is the number of a tuple's stream. All columns are kept, because a later query may ask for
    any of them.
    """

    frame: DataFrame
    columns: Mapping[str, tuple[tuple[str, str], ...]]

    def split(self, batch: DataFrame) -> dict[str, DataFrame]:
        """Return the tuples of a micro-batch, by stream, with the stream's own columns."""
        if len(self.columns) == 1:
            return {next(iter(self.columns)): batch}
        frames = {}
        for number, (name, columns) in enumerate(self.columns.items()):
            own = (f"{slot} AS {Expression.of_column(column).sql}" for slot, column in columns)
            frames[name] = batch.where(f"stream = {number}").selectExpr(*own)
        return frames


def ingest_of(frames: Mapping[str, DataFrame]) -> Ingest:
    """Return the streams of frames in one frame; a single stream stays as it is."""
    if len(frames) == 1:
        ((name, frame),) = frames.items()
        return Ingest(frame, {name: tuple((column, column) for column in frame.columns)})
    united, slots = unite(list(frames.values()), "stream")
    pairs = {
        name: tuple(zip(own, frame.columns, strict=True))
        for (name, frame), own in zip(frames.items(), slots, strict=True)
    }
    return Ingest(united, pairs)
