"""Windows that are no stretches of time, on Spark from end to end: batch equals Spark itself, streams equal batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.files import put
from support.sharded import random_trades, rows, start
from support.streams import SCHEMA, random_rows
from support.trades import trades
from windloom import Loom
from windloom.spark.verify import compare, spark_window_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Queries over the random stream `s`; those of one predicate and grouping share their slices.
BATCH = {
    "by_minute": "SELECT k, count(*) AS c, sum(x) AS s, max(t) AS t FROM s [LANDMARK SLIDE 1 minute] GROUP BY k",
    "by_seven": "SELECT k, avg(d) AS a, var_pop(i) AS v FROM s [UNTIL NOW SLIDE 7 seconds OFFSET 2 seconds] GROUP BY k",
    "beside": "SELECT k, count(*) AS c FROM s [RANGE 1 minute SLIDE 20 seconds] GROUP BY k",
    "passing": "SELECT sum(n) AS n FROM s [LANDMARK SLIDE 45 seconds] WHERE x > 0 HAVING count(*) > 3",
    "rows": "SELECT k, g, count(*) AS c, sum(x) AS s, min(t) AS t FROM s [ROWS 40 SLIDE 10] GROUP BY k, g",
    "some_rows": "SELECT g, k, avg(n) AS a FROM s [ROWS 25 SLIDE 15 OFFSET 4] GROUP BY g, k HAVING count(*) > 1",
    "far_rows": "SELECT sum(i) AS i, count(*) AS c FROM s [ROWS 3 SLIDE 7] WHERE b",
    "own_rows": "SELECT k, max(x) AS x, count(*) AS c FROM s [PARTITION BY k ROWS 5 SLIDE 2] GROUP BY k",
    "own_parts": "SELECT k, g, stddev(i) AS d FROM s [PARTITION BY k ROWS 9 SLIDE 4] WHERE x < 50 GROUP BY k, g",
    "none": "SELECT count(*) AS c FROM s [LANDMARK SLIDE 1 hour] WHERE i > 10000",
}
#: Queries over the trades of `support.sharded`.
STREAMED = {
    "total": "SELECT symbol, sum(volume) AS v, max(price) AS p FROM trades [LANDMARK SLIDE 20 seconds] GROUP BY symbol",
    "often": "SELECT symbol, count(*) AS n FROM trades [LANDMARK SLIDE 15 seconds] GROUP BY symbol",
    "beside": "SELECT symbol, count(*) AS n FROM trades [RANGE 60 seconds SLIDE 30 seconds] GROUP BY symbol",
    "big": "SELECT count(*) AS n FROM trades [UNTIL NOW SLIDE 40 seconds] WHERE volume > 5",
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(random_rows(23, 150), SCHEMA).repartition(2).persist()


@pytest.fixture(scope="module")
def loom(spark: SparkSession, frame: DataFrame) -> Loom:
    made = Loom(spark)
    made.stream("s", frame, time="ts")
    for name, text in BATCH.items():
        made.query(name, text)
    return made


@pytest.fixture(scope="module")
def expected(loom: Loom, frame: DataFrame) -> dict[str, Any]:
    return {name: spark_window_frame(query, loom.streams["s"], frame).toArrow() for name, query in loom.queries.items()}


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "shared", "slicing": "pairs"},
        {"strategy": "no_share", "slicing": "cutty"},
        {"strategy": "weave_share", "slicing": "panes", "technique": "two_stacks"},
        {"placement": "executors", "shards": 3},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_a_batch_equals_spark(loom: Loom, expected: dict[str, Any], options: dict[str, Any]) -> None:
    options = {"placement": "driver", **options}
    results = loom.run(options.pop("strategy", "auto"), **options)
    for name, query in loom.queries.items():
        outcome = compare(query, expected[name], results.arrow(name))
        assert outcome.ok, f"{query.text}\n{outcome}"
    assert expected["none"].num_rows == 0 < expected["passing"].num_rows


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_stream_in_two_lives_gives_the_rows_of_a_batch(spark: SparkSession, tmp_path: Path, placement: str) -> None:
    made = sorted(random_trades(11, 90), key=lambda row: row[0])
    made[41], made[42] = made[42], made[41]  # within the delay
    source = tmp_path / "in"
    for number, (first, last) in enumerate([(0, 30), (30, 42)]):
        put(source, f"{number:03d}", made[first:last])
    handle = start(spark, source, tmp_path, placement, STREAMED)
    assert handle.await_termination(300)
    put(source, "002", made[42:])
    handle = start(spark, source, tmp_path, placement, STREAMED, finish=True)
    assert handle.await_termination(300)
    assert sum(one.late_partly + one.late_dropped for one in handle.recent_progress) == 0
    batch = Loom(spark)
    batch.stream("trades", trades(spark, made), time="ts")
    for name, text in STREAMED.items():
        batch.query(name, text)
    results = batch.run(placement="driver")
    for name in STREAMED:
        assert rows(handle.arrow(name)) == rows(results.arrow(name)), name
        assert batch.verify(name)
