"""Where the tasks of an operator find tuples: names of plain files, which workers read, or rows that Spark has read."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windloom.errors import WindloomError
from windloom.expressions.arithmetic import DeclinedError
from windloom.model.stream import Stream
from windloom.plan.scans import WovenScan
from windloom.spark.operator.frames import TupleSource, names_of_chunks
from windloom.spark.session import ROCKS_DB, cores_of
from windloom.spark.sources.files import LocalFiles, StreamedFiles
from windloom.weave.files import PORTION_BYTES, file_portions

#: How the operator takes tuples in.
INTAKES = {
    "auto": "names of files where the data are plain files of this machine, rows of Spark otherwise",
    "files": "names of files, which workers read without Spark",
    "spark": "rows that Spark has read",
}

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def tuple_source(scan: WovenScan, stream: Stream, frame: DataFrame, intake: str) -> TupleSource:
    """Return where a scan finds its tuples; raise if files are asked for, and workers cannot read them."""
    if intake not in INTAKES:
        raise WindloomError(f"unknown intake '{intake}'", "it says how tuples reach tasks", f"use {', '.join(INTAKES)}")
    why = "an expression needs Spark" if scan.local is None else "the stream is not plain Parquet files of this machine"
    if intake != "spark" and scan.local is not None:
        try:
            names = _streamed(frame) if frame.isStreaming else _listed(scan, stream, frame)
        except DeclinedError as error:
            names, why = None, str(error)
        if names is not None:
            return TupleSource(names, are_names=True)
    if intake == "files":
        raise WindloomError(f"stream '{stream.name}' cannot be read by workers", why, "use intake='spark'")
    return TupleSource(frame)


def _streamed(frame: DataFrame) -> DataFrame | None:
    files = StreamedFiles.of(frame)
    return None if files is None else files.names()


def _listed(scan: WovenScan, stream: Stream, frame: DataFrame) -> DataFrame | None:
    files = LocalFiles.of(frame)
    paths = None if files is None else files.paths()
    if not paths:
        return None
    cores = cores_of(frame.sparkSession) or 1
    return names_of_chunks(frame.sparkSession, file_portions(scan, stream, paths, PORTION_BYTES, cores))


def check_state(spark: SparkSession) -> None:
    """Raise if streams of this session cannot keep the state of an operator."""
    try:
        import_module("google.protobuf")
    except ImportError:
        raise WindloomError(
            "a streaming operator needs the package 'protobuf'",
            "Spark's Python workers use it to reach the state store",
            "pip install 'windloom[cluster]', here and where executors run",
        ) from None
    provider = str(spark.conf.get(_PROVIDER, ""))
    if not provider.endswith("RocksDBStateStoreProvider"):
        raise WindloomError(
            "a streaming operator needs Spark's RocksDB state store",
            f"the session's provider is {provider.rpartition('.')[2] or 'not set'}",
            f"spark.conf.set('{_PROVIDER}', '{ROCKS_DB}') before the stream is started",
        )


def default_buckets(spark: SparkSession) -> int:
    """Return the number of buckets if none is given: as many as partitions of state, which Spark fixes at the start."""
    partitions: Any = spark.conf.get("spark.sql.shuffle.partitions", "8")
    return max(4, min(64, int(partitions)))
