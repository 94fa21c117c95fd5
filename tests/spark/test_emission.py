"""EMIT in batch runs, against Spark's own SQL, on both placements and in files."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_batch_runs_report_what_sql_with_lag_does(
    spark: SparkSession, frame: DataFrame, placement: str, tmp_path: Path
) -> None:
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    loom.query("changed", f"{TEXT} EMIT CHANGES")
    loom.query("filled", f"{TEXT} EMIT EMPTY")
    loom.query("final", f"{TEXT} EMIT FINAL")
    for results in (loom.run(placement=placement), loom.run(placement=placement, out=tmp_path / "out")):
        assert Counter(tuple(row) for row in results["changed"].collect()) == changes_sql(spark, frame)
        assert Counter(tuple(row) for row in results["filled"].collect()) == empty_sql(spark, frame)
        assert results.arrow("changed").column_names[-1] == "change"
        assert results["final"].columns == ["window_start", "window_end", "k", "n", "total"]


def test_changes_are_not_verified_row_by_row(spark: SparkSession, frame: DataFrame) -> None:
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    loom.query("q", f"{TEXT} EMIT CHANGES")
    with pytest.raises(WindloomError, match=r"(?s)query 'q' cannot be verified.*EMIT CHANGES"):
        loom.verify("q")
