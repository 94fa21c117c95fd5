"""Streams of files: a directory that Spark follows, one file a micro-batch."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "ts timestamp, symbol string, price double, volume bigint"
_ARROW = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("symbol", pa.string()), ("price", pa.float64()), ("volume", pa.int64())]
)


def put(folder: Path, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """One file of trades, there at once; files are read in the order in which they were put."""
    folder.mkdir(parents=True, exist_ok=True)
    newest = max((one.stat().st_mtime for one in folder.glob("*.parquet")), default=0.0)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_ARROW)
    table = pa.table([pa.array(values, field.type) for values, field in zip(columns, _ARROW, strict=True)], _ARROW)
    hidden = folder / f".{name}"
    pq.write_table(table, hidden)
    moment = max(time.time(), newest + 0.01)
    # Spark orders files by this time, in milliseconds.
    os.utime(hidden, (moment, moment))
    hidden.rename(folder / f"{name}.parquet")


def follow(spark: SparkSession, folder: Path, files: int = 1) -> DataFrame:
    """The trades of a directory as a streaming frame, `files` files a micro-batch."""
    folder.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(str(folder))
