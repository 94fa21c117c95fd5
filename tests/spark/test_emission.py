"""EMIT in batch runs, against Spark's own SQL, on both placements and in files."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from windloom import Loom
from windloom.errors import WindloomError
from windloom.spark.api import DataFrame, SparkSession

TEXT = """SELECT k, count(*) AS n, sum(v) AS total FROM s [RANGE 20 seconds SLIDE 10 seconds]
          GROUP BY k HAVING count(*) < 6"""


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    rng = random.Random(5)
    rows = [(rng.randrange(400) // 40 * 40 + rng.randrange(6), rng.choice("xyz"), rng.randrange(2)) for _ in range(150)]
    return spark.createDataFrame(rows, "t long, k string, v int").selectExpr("timestamp_seconds(t) AS ts", "k", "v")


def changes_sql(spark: SparkSession, frame: DataFrame) -> Counter[tuple[Any, ...]]:
    """What a Spark user writes: windows, then lag() and lead() over them."""
    frame.createOrReplaceTempView("emission_tuples")
    found = spark.sql(
        """WITH w AS (
             SELECT window.start AS s, window.end AS e, k, count(*) AS n, sum(v) AS total
             FROM emission_tuples GROUP BY window(ts, '20 seconds', '10 seconds'), k HAVING count(*) < 6),
           l AS (
             SELECT *, lag(e) OVER p AS before, lag(n) OVER p AS n0, lag(total) OVER p AS t0, lead(e) OVER p AS after
             FROM w WINDOW p AS (PARTITION BY k ORDER BY e))
           SELECT s, e, k, n, total, if(before <=> e - INTERVAL 10 SECONDS, 'update', 'insert') AS change FROM l
           WHERE NOT (before <=> e - INTERVAL 10 SECONDS AND n = n0 AND total = t0)
           UNION ALL
           SELECT s + INTERVAL 10 SECONDS, e + INTERVAL 10 SECONDS, k, NULL, NULL, 'delete' FROM l
           WHERE NOT (after <=> e + INTERVAL 10 SECONDS)
             AND e + INTERVAL 10 SECONDS <= (SELECT max(window(ts, '10 seconds').start) FROM emission_tuples)
                                            + INTERVAL 20 SECONDS"""
    )
    return Counter(tuple(row) for row in found.collect())


def empty_sql(spark: SparkSession, frame: DataFrame) -> Counter[tuple[Any, ...]]:
    frame.createOrReplaceTempView("emission_tuples")
    found = spark.sql(
        """WITH w AS (
             SELECT window.end AS e, k, count(*) AS n, sum(v) AS total
             FROM emission_tuples GROUP BY window(ts, '20 seconds', '10 seconds'), k),
           g AS (
             SELECT k, explode(sequence(min(e), (SELECT max(window(ts, '10 seconds').start) FROM emission_tuples)
                                                + INTERVAL 20 SECONDS, INTERVAL 10 SECONDS)) AS e
             FROM w GROUP BY k)
           SELECT e - INTERVAL 20 SECONDS, e, k, coalesce(n, 0), total FROM g LEFT JOIN w USING (k, e)
           WHERE coalesce(n, 0) < 6"""
    )
    return Counter(tuple(row) for row in found.collect())


@pytest.fixture(scope="module")
def by_sql(spark: SparkSession, frame: DataFrame) -> dict[str, Counter[tuple[Any, ...]]]:
    return {"changed": changes_sql(spark, frame), "filled": empty_sql(spark, frame)}


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_batch_runs_report_what_sql_with_lag_does(
    spark: SparkSession, frame: DataFrame, by_sql: dict[str, Counter[tuple[Any, ...]]], placement: str, tmp_path: Path
) -> None:
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    loom.query("changed", f"{TEXT} EMIT CHANGES")
    loom.query("filled", f"{TEXT} EMIT EMPTY")
    loom.query("final", f"{TEXT} EMIT FINAL")
    for results in (loom.run(placement=placement), loom.run(placement=placement, out=tmp_path / "out")):
        for name, rows in by_sql.items():
            assert Counter(tuple(row) for row in results[name].collect()) == rows
        assert results.arrow("changed").column_names[-1] == "change"
        assert results["final"].columns == ["window_start", "window_end", "k", "n", "total"]


def test_changes_are_verified_by_the_rows_they_leave_and_windows_without_tuples_are_not(
    spark: SparkSession, frame: DataFrame
) -> None:
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    loom.query("changed", f"{TEXT} EMIT CHANGES")
    loom.query("so_far", "SELECT k, count(*) AS n FROM s [LANDMARK SLIDE 40 seconds] GROUP BY k EMIT CHANGES")
    loom.query("all", "SELECT count(*) AS n FROM s [TUMBLE 10 seconds] EMIT CHANGES")
    loom.query("filled", f"{TEXT} EMIT EMPTY")
    for name in ("changed", "so_far", "all"):
        assert loom.verify(name).rows > 0, name
        assert loom.verify(name), name
    with pytest.raises(WindloomError, match=r"(?s)query 'filled' cannot be verified.*EMIT EMPTY"):
        loom.verify("filled")


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_batch_run_has_final_rows_only_and_they_are_verified(
    spark: SparkSession, frame: DataFrame, placement: str, tmp_path: Path
) -> None:
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    loom.query("early", f"{TEXT} EMIT EARLY EVERY 5 seconds")
    loom.query("final", TEXT)
    for results in (loom.run(placement=placement), loom.run(placement=placement, out=tmp_path / "out")):
        final = Counter((*tuple(row), "final", None) for row in results["final"].collect())
        assert Counter(tuple(row) for row in results["early"].collect()) == final
        assert results["early"].dtypes[-2:] == [("report", "string"), ("as_of", "timestamp")]
        assert results.arrow("early").column_names == [
            "window_start",
            "window_end",
            "k",
            "n",
            "total",
            "report",
            "as_of",
        ]
    assert loom.verify("early")


def test_a_stream_replaces_early_rows_until_they_are_final(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    """Files in order of time, one per round; what is left at the end is what a batch run over all of them reports."""
    frame.repartitionByRange(4, "ts").sortWithinPartitions("ts").write.parquet(str(tmp_path / "all"))
    parts = sorted((tmp_path / "all").glob("*.parquet"))
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    for number, part in enumerate(sorted(parts, key=lambda path: pq.read_table(path)["ts"].to_pylist()[0])):
        shutil.copy(part, incoming / f"{number}.parquet")
        os.utime(incoming / f"{number}.parquet", (1_700_000_000 + number, 1_700_000_000 + number))
    source = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(incoming))
    loom = Loom(spark)
    loom.stream("s", source, time="ts", delay="5 seconds")
    loom.query("early", f"{TEXT} EMIT EARLY EVERY 5 seconds")
    loom.query("spark_only", f"{TEXT.replace('sum(v)', 'hash(sum(v))')} EMIT EARLY EVERY 1 hour")
    handle = loom.start(
        path=tmp_path / "answers",
        checkpoint=tmp_path / "checkpoint",
        trigger={"availableNow": True},
        finish=True,
    )
    assert handle.await_termination(120)
    batch = Loom(spark)
    batch.stream("s", frame, time="ts")
    batch.query("early", f"{TEXT} EMIT EARLY EVERY 5 seconds")
    expected = Counter(tuple(row) for row in batch.run()["early"].collect())
    assert Counter(tuple(row) for row in handle["early"].collect()) == expected
    assert Counter(handle.arrow("spark_only")["report"].to_pylist()) == {"final": expected.total()}
    files = (tmp_path / "answers").glob("table=k_n_total_report_as_of-*/*.parquet")
    reports = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    told = [row for row in reports if row["query"] == "early" and row["report"] != "final"]
    assert {row["report"] for row in told} >= {"early"}
    assert all(row["as_of"].second % 5 == 0 and row["as_of"].microsecond == 0 for row in told if row["as_of"])
