"""Workloads of unlike queries on a stream: rounds of 100,000 bids against a `foreachBatch` that only takes tuples."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from bench.bids import PER_FILE, PER_SECOND, UnlikeQuery, stored_bids, unlike_queries
from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW, ROUNDS, WARM
from windloom import Loom
from windloom.engine.handle import Handle


def stream_rounds(
    queries: int, mixed: bool, bar: float, repeats: int, *, rounds: int = ROUNDS, warm: int = WARM, size: int = PER_FILE
) -> Outcome:
    """Both streams in turn; the median round of each, and of their ratios the median without the first."""
    asked, spark = unlike_queries(queries, mixed), session()
    pairs: list[tuple[float, float]] = []
    with stored_bids(rounds * size, per_file=size) as folder:
        for _ in range(max(2, repeats // 2 + 1)):
            bare = bare_rounds(spark, folder, asked)
            ours, handle = loom_rounds(spark, folder, asked)
            pairs.append((statistics.median(bare[warm:]), statistics.median(ours[warm:])))
    progress = handle.recent_progress
    results = sum(progress_round.results for progress_round in progress)
    note = (
        f"{pairs[-1][1]:.3f} s per round against {pairs[-1][0]:.3f} s; {results:,} results;"
        f" state {progress[-1].state_bytes / 2**20:.0f} MiB at the end"
    )
    figure = statistics.median(ours / base for base, ours in pairs[1:])
    name = f"round of {size:,}, {'mixed' if mixed else 'plain'} {queries} / bare foreachBatch"
    return Outcome(name, figure, "ratio", bar, "<=", note, {"pairs": pairs, "rounds": ours})


def stream_plain(repeats: int) -> Outcome:
    return stream_rounds(100, False, 3, repeats)


def stream_mixed(repeats: int) -> Outcome:
    return stream_rounds(100, True, 5, repeats)


def bare_rounds(spark: SparkSession, folder: Path, queries: list[UnlikeQuery]) -> list[float]:
    """Seconds of each round that only takes over what the queries read: all columns, and a bit for each predicate."""
    predicates = dict.fromkeys(query.predicate for query in queries if query.predicate)
    bits = [f"if({predicate}, {1 << bit}L, 0L)" for bit, predicate in enumerate(predicates)]

    def take(batch: DataFrame, number: int) -> None:
        batch.selectExpr("*", f"{' | '.join(bits) or '0L'} AS signature").toArrow()

    with tempfile.TemporaryDirectory() as checkpoint:
        writer = followed(spark, folder).writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        query = writer.trigger(**NOW).start()
        query.awaitTermination()
        return _round_seconds(query.recentProgress)


def loom_rounds(spark: SparkSession, folder: Path, queries: list[UnlikeQuery]) -> tuple[list[float], Handle]:
    """Seconds of each round that answers the queries, all rows kept in memory."""
    loom = Loom(spark)
    loom.stream("bids", followed(spark, folder), time="ts", rate=PER_SECOND)
    for query in queries:
        loom.query(query.name, query.cql)
    with tempfile.TemporaryDirectory() as checkpoint:
        handle = loom.start("memory", checkpoint=checkpoint, trigger=NOW)
        handle.await_termination()
        return _round_seconds(handle.spark_query.recentProgress), handle


def followed(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _round_seconds(progress: list[StreamingQueryProgress]) -> list[float]:
    return [told["durationMs"]["triggerExecution"] / 1000 for told in progress if told["numInputRows"]]


UNLIKE_STREAMS = {"unlike_stream_plain": stream_plain, "unlike_stream_mixed": stream_mixed}
