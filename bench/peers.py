"""What unlike queries are measured against: DuckDB and Spark's own SQL, each query by itself."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.bids import UnlikeQuery

MICROS = 1_000_000
#: Columns whose answers are not decided: a sketch is approximate, and DuckDB picks any of several bids of one price.
UNDECIDED = ("au", "best")


def duckdb_sql(query: UnlikeQuery) -> str:
    """Every tuple once for each window it lies in; slides divide ranges in these catalogs."""
    slide, overlap = query.slide * MICROS, query.length // query.slide
    windowed = f"SELECT *, t - t % {slide} - k * {slide} AS window_start FROM bids, range(0, {overlap}) x(k)"
    by = query.group_by("window_start")
    return f"SELECT window_start, {_picked(query)} FROM ({windowed}){query.where}{by}{query.tail}"


def spark_sql(query: UnlikeQuery) -> str:
    by = query.group_by(f"window(ts, '{query.length} seconds', '{query.slide} seconds')")
    return f"SELECT window.start AS window_start, {_picked(query)} FROM bids{query.where}{by}{query.tail}"


def _picked(query: UnlikeQuery) -> str:
    """For Windloom `last` is the latest by event time; for the others it is whatever comes last."""
    return query.select.replace("last(price)", "max_by(price, ts)")


class DuckDB:
    """A database in memory whose `bids` are the files, read anew by every query, as Windloom reads them."""

    def __init__(self, folder: Path, threads: int = 2) -> None:
        self._base = duckdb.connect()
        self._base.execute(f"SET threads = {threads}")
        files = f"{folder}/*.parquet"
        self._base.execute(f"CREATE VIEW bids AS SELECT *, epoch_us(ts) AS t FROM read_parquet('{files}')")

    def arrow(self, query: UnlikeQuery) -> pa.Table:
        table: pa.Table = self._base.sql(duckdb_sql(query)).to_arrow_table()
        return table

    def row_counts(self, queries: Iterable[UnlikeQuery]) -> dict[str, int]:
        """All answers as Arrow, one after the other; none is kept."""
        return {query.name: self.arrow(query).num_rows for query in queries}

    def close(self) -> None:
        self._base.close()


class DuckDBProcess:
    """The same database in a process of its own, as Spark is.

    In one process each would leave the other's memory in pieces, and pay for it with page faults.
    """

    def __init__(self, folder: Path) -> None:
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _open_database, (folder,))

    def arrow(self, query: UnlikeQuery) -> pa.Table:
        return self._pool.submit(_arrow, query).result()

    def row_counts(self, queries: list[UnlikeQuery]) -> dict[str, int]:
        return self._pool.submit(_row_counts, queries).result()

    def close(self) -> None:
        self._pool.shutdown()


_database: DuckDB  # of the other process


def _open_database(folder: Path) -> None:
    global _database
    _database = DuckDB(folder)


def _arrow(query: UnlikeQuery) -> pa.Table:
    return _database.arrow(query)


def _row_counts(queries: list[UnlikeQuery]) -> dict[str, int]:
    return _database.row_counts(queries)


def spark_frame(spark: SparkSession, folder: Path, query: UnlikeQuery) -> DataFrame:
    spark.read.parquet(str(folder)).createOrReplaceTempView("bids")
    return spark.sql(spark_sql(query))


def check_rows(queries: Iterable[UnlikeQuery], ours: dict[str, int], theirs: dict[str, int]) -> None:
    for query in queries:
        if query.name in theirs and ours[query.name] != theirs[query.name]:
            raise AssertionError(f"{ours[query.name]:,} rows, not {theirs[query.name]:,}: {query.cql}")


def check_values(query: UnlikeQuery, ours: pa.Table, theirs: pa.Table) -> None:
    """Same windows, same groups, same values but for the rounding of floating-point numbers."""
    keys = ["window_start", *query.groups]
    values = [aggregate.rpartition(" AS ")[2] for aggregate in query.aggregates]
    left, right = (_in_order(table.select(keys + values), keys) for table in (ours, theirs))
    for key in keys:
        if left[key].to_pylist() != right[key].to_pylist():
            raise AssertionError(f"the windows or groups differ: {query.cql}")
    for value in values:
        if value in UNDECIDED:
            continue
        mine, other = (np.asarray(table[value].cast(pa.float64()).to_numpy()) for table in (left, right))
        if not np.allclose(mine, other, rtol=1e-9, atol=1e-9, equal_nan=True):
            raise AssertionError(f"the values of '{value}' differ: {query.cql}")


def _in_order(table: pa.Table, keys: list[str]) -> pa.Table:
    """By window and group; window starts as microseconds, whatever they come as."""
    starts = table["window_start"]
    if pa.types.is_timestamp(starts.type):
        starts = starts.cast(pa.timestamp("us", starts.type.tz)).cast(pa.int64())
    return table.set_column(0, "window_start", starts).sort_by([(key, "ascending") for key in keys])
