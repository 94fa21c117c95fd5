"""Holistic aggregates on streams: rounds, restarts and executors give the rows of a batch run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from support.files import put
from support.many_groups import random_trades, start
from support.trades import trades
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "exact": "SELECT symbol, count(DISTINCT volume) AS d, median(price) AS m, top(2, volume) AS t, sum(price) AS s"
    " FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
    "listed": "SELECT symbol, collect_list(price) AS l, collect_set(volume) AS s, mode(volume) AS m"
    " FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
    "frequent": "SELECT frequent(2, symbol) AS f, quantile(price, 0.9) AS q FROM trades [RANGE 45 s SLIDE 15 s]",
    "ratio": "SELECT symbol, count(*) / count(DISTINCT price) AS r FROM trades [TUMBLE 60 s] GROUP BY symbol"
    " HAVING count(DISTINCT volume) > 1",
    "near": "SELECT approx_count_distinct(price) AS d, approx_quantile(price, 0.5) AS m, approx_top(1, volume) AS t"
    " FROM trades [RANGE 40 seconds SLIDE 20 seconds] WHERE volume > 2",
}


def rows(table: pa.Table) -> list[str]:
    return sorted(str(tuple(row.values())) for row in table.to_pylist())


def test_rounds_and_a_restart_give_the_rows_of_a_batch_run(spark: SparkSession, tmp_path: Path) -> None:
    made = sorted(random_trades(3, 90), key=lambda row: row[0])  # in order, so that none is late
    batch = Loom(spark)
    batch.stream("trades", trades(spark, made), time="ts")
    for name, text in QUERIES.items():
        batch.query(name, text)
    results = batch.run()
    expected = {name: rows(results.arrow(name)) for name in QUERIES}
    put(tmp_path / "in", "000", made[:30])
    put(tmp_path / "in", "001", made[30:37])
    options: dict[str, Any] = {"queries": QUERIES}
    assert start(spark, tmp_path / "in", tmp_path, **options).await_termination(300)
    put(tmp_path / "in", "002", made[37:])
    handle = start(spark, tmp_path / "in", tmp_path, finish=True, **options)
    assert handle.await_termination(300)
    assert {name: rows(handle.arrow(name)) for name in QUERIES} == expected
    assert all(expected.values())
