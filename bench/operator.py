"""Workloads of the Spark operator: against the run in process, against bare micro-batches, and over growing state."""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench.bids import EVENTS, PER_FILE, PER_SECOND, stored_bids, unlike_loom, unlike_queries
from bench.measure import Outcome, paired
from bench.sessions import session
from bench.streams import NOW
from windloom import Loom

#: Rounds that are not counted: workers start, and the JVM compiles.
WARM = 4
#: Partitions of state, and buckets: as many as there are cores.
CORES = 2


def batch_plain(repeats: int) -> Outcome:
    """100 unlike queries over a million bids in Parquet: all answers as Arrow, HAVING and expressions included."""
    asked, spark = unlike_queries(100, False), session()
    with stored_bids(EVENTS) as folder:
        loom = unlike_loom(spark, folder, asked)

        def in_process() -> int:
            results = loom.run(placement="driver")
            return sum(results.arrow(name).num_rows for name in results)

        def by_operator() -> int:
            results = loom.run(placement="executors", buckets=CORES)
            return sum(results.arrow(name).num_rows for name in results)

        assert in_process() == by_operator(), "both have all rows"
        found = paired(by_operator, in_process, repeats)
    note = f"{found['base_seconds']:.2f} s against {found['our_seconds']:.2f} s"
    return Outcome("100 plain: operator / in process", float(str(found["ratio"])), "ratio", 2, "<=", note, found)


def stream_plain(repeats: int) -> Outcome:
    """A round of 100,000 bids, 100 queries, against a micro-batch that reads the same files and does nothing."""
    asked, spark, pairs = unlike_queries(100, False), session(), list[tuple[float, float]]()
    with stored_bids(12 * PER_FILE) as folder:
        for _ in range(max(2, repeats // 2 + 1)):
            bare = round_seconds(followed(spark, folder))
            loom = Loom(spark)
            loom.stream("bids", followed(spark, folder), time="ts", rate=PER_SECOND)
            for query in asked:
                loom.query(query.name, query.cql)
            ours = round_seconds(loom.answers(buckets=CORES))
            pairs.append((statistics.median(bare[WARM:]), statistics.median(ours[WARM:])))
    figure = statistics.median(ours / bare for bare, ours in pairs[1:])
    note = f"{pairs[-1][1]:.2f} s per round against {pairs[-1][0]:.2f} s"
    return Outcome("operator, round of 100k / bare micro-batch", figure, "ratio", 3.5, "<=", note, {"pairs": pairs})


def large_state(repeats: int, *, keys: int = 1_000_000, hours: int = 10, rounds: int = 12) -> Outcome:
    """Rounds of 10,000 events that close nothing, over a cell per key and hour, and over no earlier cells."""
    spark = session()
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as place:
        full, empty = Path(place, "full"), Path(place, "empty")
        for hour in range(hours):
            write_readings(full, hour, np.arange(keys), hour * 3600)
        for number in range(rounds):
            for folder in (full, empty):
                write_readings(folder, hours + number, np.arange(10_000) * (keys // 10_000), hours * 3600 + 60 * number)
        over_full, over_empty = (round_seconds(readings(spark, folder)) for folder in (full, empty))
    with_state, without = statistics.median(over_full[hours + WARM :]), statistics.median(over_empty[WARM:])
    note = f"{with_state:.2f} s per round over {keys * hours / 1e6:.0f}M cells, {without:.2f} s over none"
    details: dict[str, object] = {"full": over_full, "empty": over_empty}
    return Outcome("operator, closes nothing: full / empty", with_state / without, "ratio", 1.3, "<=", note, details)


def readings(spark: SparkSession, folder: Path) -> DataFrame:
    """Two queries over a day, by key, of which no window ends in the rounds that are measured."""
    loom = Loom(spark)
    loom.stream("readings", followed(spark, folder), time="ts", rate=10_000)
    select = "SELECT key, count(*) AS n, sum(value) AS s, max(value) AS m FROM readings"
    loom.query("day", f"{select} [RANGE 24 hours SLIDE 1 hour] GROUP BY key HAVING count(*) > 1000")
    loom.query("half", f"{select} [RANGE 12 hours SLIDE 1 hour] GROUP BY key HAVING count(*) > 1000")
    return loom.answers(buckets=16)


def write_readings(folder: Path, number: int, keys: np.ndarray, second: int | np.ndarray) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"p{number:03d}.parquet"
    ticks = np.broadcast_to(np.asarray(second, np.int64) * 1_000_000, len(keys))
    values = np.random.default_rng(number).normal(size=len(keys))
    pq.write_table(pa.table({"ts": pa.array(ticks, pa.timestamp("us", "UTC")), "key": keys, "value": values}), path)
    os.utime(path, (1_700_000_000 + number,) * 2)  # Spark follows files in order of their times


def followed(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def round_seconds(frame: DataFrame) -> list[float]:
    """The seconds of each micro-batch of a query that throws its rows away."""
    spark = frame.sparkSession
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", str(CORES))
    try:
        with tempfile.TemporaryDirectory() as checkpoint:
            writing = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(**NOW)
            query = writing.start()
            query.awaitTermination()
            progress = query.recentProgress
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    return [told["durationMs"]["triggerExecution"] / 1000 for told in progress if told["numInputRows"]]


OPERATOR_WORKLOADS = {
    "operator_plain_100": batch_plain,
    "operator_stream": stream_plain,
    "operator_state": large_state,
}
