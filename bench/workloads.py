"""The workloads of the batch slice: many windows over one stream of 10M events, 1,000 a second of event time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.holistic import HOLISTIC
from bench.measure import Outcome, paired, resident_bytes, seconds, watching_memory
from bench.plans import PLANS
from bench.sessions import session
from windloom import Loom
from windloom.optimizer.workloads import divisor_windows
from windloom.spark.sources.read import synthetic_trades
from windloom.spark.verify.verify import time_spark_window

EVENTS = 10_000_000
PER_SECOND = 1_000
SELECT = "sum(price) AS total, max(price) AS high"
MIB = 1 << 20


def divisor_queries(
    queries: int,
    select: str,
    stream: str,
    group_by: str = "",
    longest_slide: int = 1000,
    most_overlap: int = 50,
    seed: int = 1,
) -> Iterator[tuple[str, str]]:
    """(name, CQL text) of such queries; `select` is the list of aggregates."""
    head = f"{group_by}, {select}" if group_by else select
    tail = f" GROUP BY {group_by}" if group_by else ""
    for i, (length, slide) in enumerate(divisor_windows(queries, longest_slide, most_overlap, seed)):
        text = f"SELECT {head} FROM {stream} [RANGE {length} seconds SLIDE {slide} seconds]{tail}"
        yield f"q{i:04d}_r{length}_s{slide}", text


@contextmanager
def stored_trades(spark: SparkSession, keys: int, events: int = EVENTS) -> Iterator[DataFrame]:
    """The events as Parquet files, so that every measurement scans real files."""
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as folder:
        path = str(Path(folder) / "trades")
        synthetic_trades(spark, events, PER_SECOND, keys).write.parquet(path)
        yield spark.read.parquet(path)


def loom_of(spark: SparkSession, trades: DataFrame, queries: int, keys: int) -> Loom:
    loom = Loom(spark)
    loom.stream("trades", trades, time="ts", rate=PER_SECOND)
    for name, text in divisor_queries(queries, SELECT, "trades", "symbol" if keys > 1 else ""):
        loom.query(name, text)
    return loom


def tumbling(trades: DataFrame, keys: int) -> int:
    """The baseline: one native tumbling groupBy at the plan's finest slice, to Arrow."""
    groups = ["symbol"] if keys > 1 else []
    slices = F.expr("unix_micros(ts) DIV 1000000L").alias("slice")
    found = trades.groupBy(slices, *groups).agg(F.sum("price"), F.max("price"), F.count("*"))
    return int(found.toArrow().num_rows)


def against_tumbling(name: str, queries: int, keys: int, bar: float, repeats: int) -> Outcome:
    spark = session()
    with stored_trades(spark, keys) as trades:
        loom = loom_of(spark, trades, queries, keys)
        slice_ticks = loom.plan().sets[0].edges.pane.period
        assert slice_ticks == 1_000_000, "the baseline groups by seconds"
        stats = loom.run().stats
        found = paired(lambda: tumbling(trades, keys), loom.run, repeats)
    note = (
        f"{EVENTS / float(str(found['our_seconds'])) / 1e6:.1f}M events/s against "
        f"{EVENTS / float(str(found['base_seconds'])) / 1e6:.1f}M; {stats.results:,} results"
    )
    details = {**found, "results": stats.results, "partials": stats.partials, "trees": stats.trees}
    return Outcome(name, float(str(found["ratio"])), "ratio", bar, ">=", note, details)


def one_key(repeats: int) -> Outcome:
    return against_tumbling("100 queries, 1 key / tumbling groupBy", 100, 1, 0.7, repeats)


def hundred_keys(repeats: int) -> Outcome:
    return against_tumbling("100 queries, 100 keys / tumbling groupBy", 100, 100, 0.4, repeats)


def thousand_queries(repeats: int) -> Outcome:
    return against_tumbling("1,000 queries, 1 key / tumbling groupBy", 1000, 1, 0.5, repeats)


def against_spark_windows(repeats: int, sampled: int = 4, part: int = 20) -> Outcome:
    """Spark's own window() on one `part`-th of the events and a few queries, scaled to all of both."""
    spark = session()
    with stored_trades(spark, 1) as trades:
        loom = loom_of(spark, trades, 100, 1)
        loom.run()
        ours = min(seconds(loom.run) for _ in range(repeats))
        span = EVENTS // PER_SECOND // part
        first = trades.agg(F.min("ts")).first()[0]  # type: ignore[index]
        some = trades.where(F.col("ts") < F.lit(first) + F.expr(f"INTERVAL {span} SECONDS"))
        ordered = sorted(loom.queries.values(), key=lambda query: (query.window.overlap, query.name))
        chosen = [ordered[int((i + 0.5) * len(ordered) / sampled)] for i in range(sampled)]
        took = {query.name: time_spark_window(query, loom.streams, {"trades": some}) for query in chosen}
    scaled = sum(took.values()) / sampled * 100 * part
    note = f"scaled from {sampled} queries on 1/{part} of the events: {scaled:,.0f} s against {ours:.2f} s"
    return Outcome(
        "100 queries, 1 key / Spark's own window()", scaled / ours, "ratio", 300, ">=", note, {"sample": took}
    )


def driver_memory(repeats: int) -> Outcome:
    """Answers go to Parquet, block by block; the Python driver's memory above what it had when Spark was up."""
    spark = session()
    with stored_trades(spark, 100) as trades, tempfile.TemporaryDirectory() as folder:
        tumbling(trades, 1)
        loom = loom_of(spark, trades, 100, 100)
        before = resident_bytes()
        with watching_memory() as largest:
            stats = loom.run(out=Path(folder) / "answers").stats
        above = (largest() - before) / MIB
    note = f"{stats.results:,} results written, {stats.partials:,} partials"
    return Outcome("driver memory, 100 keys, 100 queries", above, "MiB", 2048, "<=", note, {"before": before / MIB})


def sparse_keys(repeats: int) -> Outcome:
    """10,000 keys, one event a key a minute over a day; ranges up to 24 hours beside slices of a second."""
    spark = session()
    keys, minutes = 10_000, 24 * 60
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as folder:
        path = str(Path(folder) / "events")
        spark.range(keys * minutes, numPartitions=8).selectExpr(
            f"timestamp_micros((id DIV {keys}) * 60000000L + pmod(xxhash64(id), 60000000L)) AS ts",
            f"id % {keys} AS key",
            "pmod(xxhash64(id, 7), 1000) / 10.0 AS price",
        ).write.parquet(path)
        loom = Loom(spark)
        loom.stream("events", spark.read.parquet(path), time="ts", rate=keys / 60)
        for length, slide in (("24 hours", "1 hour"), ("1 hour", "10 minutes"), ("24 hours", "30 minutes")):
            window = f"[RANGE {length} SLIDE {slide}]"
            loom.query(f"r{length} s{slide}", f"SELECT key, {SELECT} FROM events {window} GROUP BY key")
        loom.query("seconds", f"SELECT key, {SELECT} FROM events [TUMBLE 1 second] GROUP BY key")
        before = resident_bytes()
        with watching_memory() as largest:
            took = seconds(lambda: loom.run(placement="driver", out=Path(folder) / "answers"))
        stats = loom._last.stats  # type: ignore[union-attr]
        above = (largest() - before) / MIB
    note = f"{stats.events:,} events, {stats.partials:,} partials, {stats.results:,} results in {took:.0f} s"
    return Outcome("10,000 sparse keys, 24 h ranges, 1 s slices", above, "MiB", 4096, "<=", note, {"pid": os.getpid()})


WORKLOADS = {
    **PLANS,
    "one_key": one_key,
    "hundred_keys": hundred_keys,
    "thousand_queries": thousand_queries,
    "spark_windows": against_spark_windows,
    "driver_memory": driver_memory,
    "sparse_keys": sparse_keys,
    **HOLISTIC,
}
