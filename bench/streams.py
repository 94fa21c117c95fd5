"""The workloads of streaming: rounds of 500,000 events against the same foreachBatch that only aggregates natively."""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.churn import churn
from bench.measure import Outcome, cpu_seconds, seconds
from bench.sessions import session
from bench.workloads import PER_SECOND, SELECT, divisor_queries
from windloom import Loom
from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.recovery import recover
from windloom.checkpoint.storage import LocalStorage
from windloom.engine.handle import Handle
from windloom.engine.progress import RoundProgress
from windloom.language.select import parse_query
from windloom.model import DataType, ExpressionKey, Stream
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.optimizer.workloads import divisor_windows
from windloom.plan.scans import NativeScan
from windloom.rounds.step import step
from windloom.spark.sources.read import synthetic_trades
from windloom.state.state import State
from windloom.weave.round_input import RoundInput, take_partials

ROUND = 500_000
ROUNDS = 12
#: Rounds that are not counted: Spark and the kernels compile in them.
WARM = 3
NOW = {"availableNow": True}


@contextmanager
def round_files(spark: SparkSession, keys: int, rounds: int = ROUNDS) -> Iterator[Path]:
    """One Parquet file per round, in order of event time."""
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
        return [told["durationMs"]["triggerExecution"] / 1000 for told in query.recentProgress if told["numInputRows"]]


def loom_rounds(
    spark: SparkSession,
    place: Path,
    queries: int,
    keys: int,
    sink: str,
    watch: Callable[[Handle, RoundProgress], None] | None = None,
    keep_tuples: str | None = None,
) -> tuple[list[float], Handle]:
    """Seconds of each round; `watch` is called after each."""
    loom = Loom(spark)
    loom.stream("trades", followed(spark, place), time="ts", rate=PER_SECOND)
    for name, text in divisor_queries(queries, SELECT, "trades", "symbol" if keys > 1 else ""):
        loom.query(name, text)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/answers" if sink == "parquet" else None

        started = threading.Event()

        def done(progress: RoundProgress) -> None:
            started.wait()  # a round may be done before there is a handle
            if watch is not None:
                watch(handle, progress)

        handle = loom.start(
            sink, path=path, checkpoint=f"{folder}/checkpoint", trigger=NOW, progress=done, keep_tuples=keep_tuples
        )
        started.set()
        handle.await_termination()
        progress = handle.spark_query.recentProgress
    return [told["durationMs"]["triggerExecution"] / 1000 for told in progress if told["numInputRows"]], handle


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
    results = sum(progress.results for progress in handle.recent_progress)
    note = f"{pairs[-1][1]:.3f} s a round against {pairs[-1][0]:.3f} s; {results:,} results; " + ", ".join(
        f"{stage} {took * 1000:.0f} ms" for stage, took in stages.items()
    )
    return Outcome(name, ratio, "ratio", bar, "<=", note, {"pairs": pairs, "stages": stages})


def _stages(handle: Handle) -> dict[str, float]:
    done = handle.recent_progress[WARM:]
    names = [name for name in done[-1].seconds if name != "snapshot"]
    return {name: statistics.median(progress.seconds.get(name, 0.0) for progress in done) for name in names}


def round_one_key(repeats: int) -> Outcome:
    return against_native("round, 100 queries, 1 key / native groupBy", 100, 1, "memory", 1.3, repeats)


def round_hundred_keys(repeats: int) -> Outcome:
    return against_native("round, 100 queries, 100 keys, Parquet", 100, 100, "parquet", 2.0, repeats)


def separate_streams(repeats: int, sampled: int = 10, rounds: int = 2) -> Outcome:
    """A few of the queries as Spark streaming queries of their own, by CPU time of the whole process tree, scaled."""
    spark = session()
    with round_files(spark, 1, ROUNDS) as place:
        loom_rounds(spark, place, 100, 1, "memory")  # compiles
        before = cpu_seconds()
        loom_rounds(spark, place, 100, 1, "memory")
        ours = ROUND * ROUNDS / (cpu_seconds() - before)
        for file in sorted((place / "in").iterdir())[rounds:]:
            file.unlink()
        windows = sorted(divisor_windows(100), key=lambda window: (window[0] / window[1], window))
        chosen = [windows[int((i + 0.5) * len(windows) / sampled)] for i in range(sampled)]
        _spark_window_stream(spark, place, *chosen[0])  # compiles
        before = cpu_seconds()
        for length, slide in chosen:
            _spark_window_stream(spark, place, length, slide)
        theirs = ROUND * rounds / ((cpu_seconds() - before) / sampled * 100)
    note = (
        f"{ours / 1e6:.2f}M events per CPU-second against {theirs:,.0f},"
        f" scaled from {sampled} queries, one after the other, on {ROUND * rounds:,} events"
    )
    return Outcome("100 queries / Spark streaming queries", ours / theirs, "ratio", 100, ">=", note)


def _spark_window_stream(spark: SparkSession, place: Path, length: int, slide: int) -> None:
    trades = followed(spark, place).withWatermark("ts", "0 seconds")
    window = F.window("ts", f"{length} seconds", f"{slide} seconds")
    answers = trades.groupBy(window).agg(F.sum("price"), F.max("price"))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = answers.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()


def add_to_a_thousand(repeats: int, after: int = 5) -> Outcome:
    """Rounds after a query was added to a thousand, against the same rounds of a loom to which none was added."""
    calls: list[float] = []
    effective: list[int] = []

    def add(handle: Handle, done: RoundProgress) -> None:
        if done.round == after:
            text = f"SELECT {SELECT} FROM trades [RANGE 90 seconds SLIDE 30 seconds]"
            calls.append(seconds(lambda: effective.append(handle.add("one_more", text).round)))
            assert effective[-1] == after + 1

    spark = session()
    with round_files(spark, 1, 3 * ROUNDS) as place:  # of a few rounds, the median differs by a tenth from run to run
        loom_rounds(spark, place, 1000, 1, "memory")  # compiles
        ratios, firsts = [], []
        for _ in range(max(3, repeats // 2)):
            plain, _ = loom_rounds(spark, place, 1000, 1, "memory")
            added, handle = loom_rounds(spark, place, 1000, 1, "memory", add)
            assert [progress.queries for progress in handle.recent_progress][after : after + 2] == [1000, 1001]
            ratios.append(statistics.median(added[after + 1 :]) / statistics.median(plain[after + 1 :]))
            firsts.append(added[after + 1] / plain[after + 1])
    note = (
        f"in force from the next round, which took {statistics.median(firsts):.2f} times as long;"
        f" {plain[-1]:.3f} s per round; the call took {statistics.median(calls):.2f} s"
    )
    details: dict[str, object] = {"ratios": ratios, "first rounds": firsts, "calls": calls}
    return Outcome(
        "1,000 queries, one added / none added", statistics.median(ratios), "ratio", 1.1, "<=", note, details
    )


def recovery(repeats: int) -> Outcome:
    """A checkpoint whose state has a million partials, half of them in a snapshot and half in logs."""
    groups, slices = 10_000, 100
    stream = Stream("s", {"ts": DataType.parse("timestamp"), "k": DataType.parse("bigint")}, "ts")
    text = "SELECT k, count(*) AS n FROM s [RANGE 1 hour SLIDE 1 second] GROUP BY k"
    query = parse_query("n", text, {"s": stream})
    plan = make_plan(
        {"s": stream},
        [query],
        {ExpressionKey("s", "k"): stream.columns["k"]},
        PlanOptions(intake="native"),
        PlanningFacts(),
    )
    (scan,) = plan.scans
    assert isinstance(scan, NativeScan)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint.open(LocalStorage(Path(folder)), {"s": stream})
        checkpoint.record_plan(PlanRecord(0, 0, {"n": text}))
        state = State()
        for round in range(10):
            each = slices // 10
            starts = np.repeat(np.arange(round * each, (round + 1) * each) * 1_000_000, groups)
            keys = np.tile(np.arange(groups), each)
            table = pa.table({"slice": starts, "g0": keys, "c0": np.ones(len(keys), np.int64)})
            last = {"s": int(starts[-1])}
            log = RoundLog(round, 0, RoundInput(take_partials(plan, scan, table), frontiers=last, seen=last))
            checkpoint.begin(round)
            checkpoint.write_log(log)
            state, _, _ = step(state, log.input, plan)
            checkpoint.commit(round, {})
            if round == 4:
                checkpoint.snapshot(round, state)
        checkpoint.close()
        opened = Checkpoint.open(LocalStorage(Path(folder)), {"s": stream})
        took = seconds(lambda: recover(opened, lambda record: plan))
        opened.close()
    note = f"{len(state.cells[0]):,} cells, {state.nbytes / 2**20:.0f} MiB"
    return Outcome("recovery of 1M partials", took, "s", 10, "<=", note)


STREAM_WORKLOADS: dict[str, Callable[[int], Outcome]] = {
    "round_one_key": round_one_key,
    "round_hundred_keys": round_hundred_keys,
    "separate_streams": separate_streams,
    "add_to_a_thousand": add_to_a_thousand,
    "recovery": recovery,
    "churn": churn,
}
