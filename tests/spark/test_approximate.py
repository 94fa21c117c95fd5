"""Approximate aggregates on Spark, on more values than summaries have room for: within their bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_answers_on_spark_keep_their_bounds(spark: SparkSession) -> None:
    skewed = "CAST(pow(2, 14 * pmod(xxhash64(id), 100000) / 100000D) AS INT)"
    frame = spark.range(9_000).selectExpr("timestamp_millis(id) AS ts", f"{skewed} AS v", "xxhash64(id) / 1e12 AS x")
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    window = "[RANGE 6 seconds SLIDE 3 seconds]"
    loom.query("near", f"SELECT approx_count_distinct(x) AS d, approx_top(5, v) AS t FROM s {window}")
    loom.query("quantiles", f"SELECT approx_quantile(x, 0.1) AS a, approx_quantile(x, 0.9) AS b FROM s {window}")
    loom.query("frequent", f"SELECT frequent(20, v) AS f FROM s {window}")
    loom.query("computed", f"SELECT approx_count_distinct(v) + 1 AS d FROM s {window}")
    results = loom.run()
    for name in ("near", "quantiles", "frequent"):
        outcome = loom.verify(name)
        assert outcome.ok, outcome
    counted = results.arrow("near")["d"].to_pylist()
    assert max(counted) > 4_096, "registers"
    assert any(row["items"] for row in results.arrow("frequent")["f"].to_pylist())
    with pytest.raises(WindloomError, match="cannot be verified"):
        loom.verify("computed")
