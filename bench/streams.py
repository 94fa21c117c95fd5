"""The workloads of streaming: rounds of 500,000 events against the same foreachBatch that only aggregates natively."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.measure import Outcome
from bench.workloads import PER_SECOND, SELECT, session
from windloom import Loom
from windloom.engine.streaming import Handle
from windloom.spark.synthetic import synthetic_trades
from windloom.testing.workload import divisor_queries

ROUND = 500_000
ROUNDS = 12
#: Rounds that are not counted: Spark and the kernels compile in them.
WARM = 3
NOW = {"availableNow": True}


@contextmanager
def round_files(spark: SparkSession, keys: int, rounds: int = ROUNDS) -> Iterator[Path]:
    """One Parquet file a round, in order of event time."""
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as folder:
        place = Path(folder)
        trades = synthetic_trades(spark, ROUND * rounds, PER_SECOND, keys)
        for i in range(rounds):
            first = F.lit(i * ROUND // PER_SECOND)
            second = F.expr("unix_micros(ts) DIV 1000000L - 1767571200L")
            part = trades.where((second >= first) & (second < first + ROUND // PER_SECOND))
            part.coalesce(1).write.parquet(str(place / "parts" / f"{i}"))
            (made,) = (place / "parts" / f"{i}").glob("*.parquet")
            (place / "in").mkdir(exist_ok=True)
            made.rename(place / "in" / f"{i:04d}.parquet")
            os.utime(place / "in" / f"{i:04d}.parquet", (1_700_000_000 + i, 1_700_000_000 + i))
        yield place


def followed(spark: SparkSession, place: Path) -> DataFrame:
    schema = spark.read.parquet(str(place / "in")).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place / "in"))


def native_rounds(spark: SparkSession, place: Path, keys: int) -> list[float]:
    """Seconds of each round that only groups natively and takes the partials over as Arrow."""
    groups = ["symbol"] if keys > 1 else []
    slices = F.expr("unix_micros(ts) DIV 1000000L").alias("slice")

    def aggregate(batch: DataFrame, number: int) -> None:
        batch.groupBy(slices, *groups).agg(F.sum("price"), F.max("price"), F.count("*")).toArrow()

    with tempfile.TemporaryDirectory() as checkpoint:
        writer = followed(spark, place).writeStream.foreachBatch(aggregate).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [one["durationMs"]["triggerExecution"] / 1000 for one in query.recentProgress if one["numInputRows"]]


def loom_rounds(spark: SparkSession, place: Path, queries: int, keys: int, sink: str) -> tuple[list[float], Handle]:
    loom = Loom(spark)
    loom.stream("trades", followed(spark, place), time="ts", rate=PER_SECOND)
    for name, text in divisor_queries(queries, SELECT, "trades", "symbol" if keys > 1 else ""):
        loom.query(name, text)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/answers" if sink == "parquet" else None
        handle = loom.start(sink, path=path, checkpoint=f"{folder}/checkpoint", trigger=NOW)
        handle.await_termination()
        progress = handle.spark_query.recentProgress
    return [one["durationMs"]["triggerExecution"] / 1000 for one in progress if one["numInputRows"]], handle


def against_native(name: str, queries: int, keys: int, sink: str, bar: float, repeats: int) -> Outcome:
    """Both streams in turn; the median round of each, and of their ratios the median."""
    spark = session()
    with round_files(spark, keys) as place:
        ratios, pairs = [], []
        handle: Handle
        for _ in range(max(2, repeats // 2 + 1)):
            base = statistics.median(native_rounds(spark, place, keys)[WARM:])
            rounds, handle = loom_rounds(spark, place, queries, keys, sink)
            ours = statistics.median(rounds[WARM:])
            pairs.append((base, ours))
            ratios.append(ours / base)
        stages = _stages(handle)
    ratio = statistics.median(ratios[1:])
    results = sum(one.results for one in handle.recent_progress)
    note = f"{pairs[-1][1]:.3f} s a round against {pairs[-1][0]:.3f} s; {results:,} results; " + ", ".join(
        f"{stage} {took * 1000:.0f} ms" for stage, took in stages.items()
    )
    return Outcome(name, ratio, "ratio", bar, "<=", note, {"pairs": pairs, "stages": stages})


def _stages(handle: Handle) -> dict[str, float]:
    done = handle.recent_progress[WARM:]
    names = [name for name in done[-1].seconds if name != "snapshot"]
    return {name: statistics.median(one.seconds.get(name, 0.0) for one in done) for name in names}


def round_one_key(repeats: int) -> Outcome:
    return against_native("round, 100 queries, 1 key / native groupBy", 100, 1, "memory", 1.3, repeats)


def round_hundred_keys(repeats: int) -> Outcome:
    return against_native("round, 100 queries, 100 keys, Parquet", 100, 100, "parquet", 2.0, repeats)


STREAM_WORKLOADS: dict[str, Callable[[int], Outcome]] = {
    "round_one_key": round_one_key,
    "round_hundred_keys": round_hundred_keys,
}
