"""Streams of files: a directory that Spark follows, one file a micro-batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.frames import table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "ts timestamp, symbol string, price double, volume bigint"
_ARROW = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("symbol", pa.string()), ("price", pa.float64()), ("volume", pa.int64())]
)


def put(folder: Path, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """One file of trades, there at once; names in ascending order are read in that order."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_ARROW)
    table = pa.table([pa.array(values, field.type) for values, field in zip(columns, _ARROW, strict=True)], _ARROW)
    hidden = folder / f".{name}"
    pq.write_table(table, hidden)
    # Spark reads files in order of their times, which may be equal when they are written this fast.
    when = 1_700_000_000 + len(list(folder.glob("*.parquet")))
    os.utime(hidden, (when, when))
    hidden.rename(folder / f"{name}.parquet")


def follow(spark: SparkSession, folder: Path, files: int = 1) -> DataFrame:
    """The trades of a directory as a streaming frame, `files` files a micro-batch."""
    folder.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(str(folder))


def put_round(folder: Path, number: int, rows: Sequence[dict[str, Any]], schema: str) -> None:
    """One file of rows, which is one round of a stream that reads one file per micro-batch."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:03d}.parquet"
    pq.write_table(table_of([tuple(row.values()) for row in rows], schema), path)
    os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in order of their times
