"""Late tuples, against Spark's own streaming aggregation in append mode and against the definition, tuple by tuple.

Both have the same watermark after the same files. What differs is when it is used. A loom closes windows at the end of
the round that moved the watermark. Spark knows a batch's largest time only when the batch is over, so it emits a window
in the batch after that one, and drops tuples by the watermark it emitted by in the batch before: a window takes in the
tuples of one more batch. Where a batch without tuples follows every other one, nothing can come in between.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.files import follow, put
from windloom import Loom
from windloom.model.windows import TimeWindow
from windloom_tools.oracle.answers import windows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = {"availableNow": True}
DELAY, RANGE, SLIDE = 10, 30, 10
QUERY = f"""SELECT symbol, count(*) AS n, sum(volume) AS v, max(price) AS p
    FROM trades [RANGE {RANGE} seconds SLIDE {SLIDE} seconds] GROUP BY symbol"""
_MIDNIGHT = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
_LONG_AGO = -(10**6)

#: A tuple is (second, symbol, price, volume); an answer (start of the window, symbol) to (count, sum, largest price).
Tuple = tuple[int, str, float, int]
Answers = dict[tuple[int, str], tuple[int, int, float]]


def disordered(seed: int, files: int = 5) -> list[list[Tuple]]:
    """Twenty seconds a file; a third of the tuples are late, some by more than all of their windows."""
    rng = random.Random(seed)
    return [
        [
            (20 * number + rng.randrange(20) - rng.choice([0, 0, 0, 15, 30, 60]), rng.choice("AB"), rng.random(), i + 1)
            for i in range(10)
        ]
        for number in range(files)
    ]


def expected(files: list[list[Tuple]], lag: int) -> tuple[Answers, int, int]:
    """By definition: answers of all windows closed in the end, tuples partly late, tuples dropped.

    A window takes in tuples until `lag` files after the one that moved the watermark to its end.
    """
    members: dict[tuple[int, str], list[Tuple]] = {}
    watermarks = [_LONG_AGO] * (1 + lag)
    partly = dropped = 0
    for file in files:
        closed = watermarks[-1 - lag]
        for row in file:
            starts = windows_of(TimeWindow(RANGE, SLIDE), row[0])
            open_ = [start for start in starts if start + RANGE > closed]
            partly += 0 < len(open_) < len(starts)
            dropped += not open_
            for start in open_:
                members.setdefault((start, row[1]), []).append(row)
        watermarks.append(max([watermarks[-1], *(row[0] - DELAY for row in file)]))
    answers = {
        key: (len(own), sum(row[3] for row in own), max(row[2] for row in own))
        for key, own in members.items()
        if key[0] + RANGE <= watermarks[-1]
    }
    return answers, partly, dropped


def bring(folder: Path, files: list[list[Tuple]]) -> None:
    for number, file in enumerate(files):
        rows = [(_MIDNIGHT + datetime.timedelta(seconds=second), *rest) for second, *rest in file]
        put(folder, f"{number:03d}", rows)


def collected(rows: list[Any], start: Callable[[Any], datetime.datetime]) -> Answers:
    found: Answers = {}
    for row in rows:
        key = (round((start(row).replace(tzinfo=datetime.UTC) - _MIDNIGHT).total_seconds()), row["symbol"])
        assert key not in found, "a window is reported once"
        found[key] = (row["n"], row["v"], row["p"])
    return found


@contextmanager
def one_state_store(spark: SparkSession) -> Iterator[None]:
    """Spark keeps a store for each partition of its shuffles; here that is nothing but time."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    try:
        yield
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def by_spark(spark: SparkSession, folder: Path, checkpoint: Path) -> Answers:
    from pyspark.sql import functions as F

    windows = F.window("ts", f"{RANGE} seconds", f"{SLIDE} seconds")
    answers = (
        follow(spark, folder)
        .withWatermark("ts", f"{DELAY} seconds")
        .groupBy(windows, "symbol")
        .agg(F.count("*").alias("n"), F.sum("volume").alias("v"), F.max("price").alias("p"))
    )
    rows: list[Any] = []
    writer = answers.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint))
    with one_state_store(spark):
        query = writer.foreachBatch(lambda batch, _: rows.extend(batch.collect())).trigger(**NOW).start()
        query.awaitTermination(120)
    return collected(rows, lambda row: row["window"]["start"])


def by_loom(spark: SparkSession, folder: Path) -> tuple[Answers, int, int]:
    loom = Loom(spark)
    loom.stream("trades", follow(spark, folder), time="ts", delay=f"{DELAY} seconds")
    loom.query("q", QUERY)
    handle = loom.start("memory", trigger=NOW)
    assert handle.await_termination(120)
    rounds = handle.recent_progress
    late = sum(progress.late_partly for progress in rounds), sum(progress.late_dropped for progress in rounds)
    return collected(handle.arrow("q").to_pylist(), lambda row: row["window_start"]), *late


@pytest.mark.parametrize("empty_between", [True, False], ids=["a batch without tuples between", "batch after batch"])
def test_late_tuples_are_as_in_sparks_own_streams(spark: SparkSession, tmp_path: Path, empty_between: bool) -> None:
    files = disordered(seed=6)
    if empty_between:
        files = [batch for file in files for batch in (file, [])]
    bring(tmp_path / "in", files)
    ours, partly, dropped = by_loom(spark, tmp_path / "in")
    assert (ours, partly, dropped) == expected(files, lag=0)
    assert min(partly, dropped) > 0
    theirs = by_spark(spark, tmp_path / "in", tmp_path / "checkpoint")
    assert theirs == expected(files, lag=1)[0]
    assert (ours == theirs) == empty_between
    # What differs is windows that took in a tuple of the one batch after the watermark had passed their end.
    for key in {*theirs.items()} ^ {*ours.items()}:
        assert theirs[key[0]][0] > ours.get(key[0], (0, 0, 0.0))[0]
