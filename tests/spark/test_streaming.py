"""A loom on streams: rounds give the rows of a batch run, through restarts, changes of queries and late tuples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.files import follow, put
from support.trades import ROWS, trades
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = {"availableNow": True}
QUERIES = {
    "avg": "SELECT symbol, avg(price) AS p FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
    "max": "SELECT symbol, max(price) AS p FROM trades [RANGE 50 seconds SLIDE 20 seconds] GROUP BY symbol",
    "big": "SELECT count(*) AS n, sum(volume) AS v FROM trades [TUMBLE 40 seconds] WHERE volume > 5",
    "ratio": "SELECT symbol, sum(price)/count(*) AS r FROM trades [TUMBLE 60 s] GROUP BY symbol HAVING count(*) > 1",
}


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def woven(frame: Any, queries: dict[str, str] = QUERIES, delay: str = "10 seconds") -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts", delay=delay)
    for name, text in queries.items():
        loom.query(name, text)
    return loom


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> dict[str, list[tuple[Any, ...]]]:
    results = woven(trades(spark)).run()
    return {name: rows(results.arrow(name)) for name in QUERIES}


def fill(folder: Path, parts: int = 4) -> None:
    size = -(-len(ROWS) // parts)
    for i in range(parts):
        put(folder, f"{i:03d}", ROWS[i * size : (i + 1) * size])


def test_rounds_give_the_rows_of_a_batch_run(spark: SparkSession, tmp_path: Path, batch: Any) -> None:
    fill(tmp_path / "in")
    loom = woven(follow(spark, tmp_path / "in"))
    handle = loom.start("parquet", path=tmp_path / "out", checkpoint=tmp_path / "c", trigger=NOW, finish=True)
    assert handle.await_termination(60)
    assert {name: rows(handle.arrow(name)) for name in QUERIES} == batch
    done = handle.recent_progress
    assert [one.round for one in done] == [0, 1, 2, 3, 4]
    assert sum(one.events for one in done) == len(ROWS)
    assert done[-1].batch is None
    assert done[-1].results > 0
