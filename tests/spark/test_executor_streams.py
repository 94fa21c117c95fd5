"""Executor placement of streams: the rows of the driver placement, through restarts, changes of queries, leftovers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.files import follow, put
from support.trades import ROWS
from windloom import Loom, WindloomError
from windloom.rounds.faults import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windloom.engine.streaming import Handle

NOW = {"availableNow": True}
QUERIES = {
    "avg": "SELECT symbol, avg(price) AS p FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
    "max": "SELECT symbol, max(price) AS p FROM trades [RANGE 50 seconds SLIDE 20 seconds] GROUP BY symbol",
    "big": "SELECT count(*) AS n, sum(volume) AS v FROM trades [TUMBLE 40 seconds] WHERE volume > 5",
    "ratio": "SELECT symbol, sum(price)/count(*) AS r FROM trades [TUMBLE 60 s] GROUP BY symbol HAVING count(*) > 1",
}
ADDED = "SELECT symbol, sum(volume) AS v FROM trades [RANGE 40 seconds SLIDE 15 seconds] GROUP BY symbol"


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def random_trades(seed: int, count: int = 160) -> list[tuple[Any, ...]]:
    """Many symbols and none, disorder beyond the delay, prices that add up without rounding."""
    rng = random.Random(seed)
    start = ROWS[0][0]
    made = []
    for i in range(count):
        late = rng.choice([0, 0, 0, 5, 40])
        symbol = rng.choice([None, "", *"ABCDEFG"])
        price = None if rng.random() < 0.1 else rng.randint(1, 400) / 4
        made.append((start + (ROWS[1][0] - start) * (i // 3) - (ROWS[1][0] - start) * (late / 7), symbol, price, i % 9))
    return made


def woven(frame: Any, queries: dict[str, str] = QUERIES) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts", delay="10 seconds")
    for name, text in queries.items():
        loom.query(name, text)
    return loom


def start(spark: SparkSession, folder: Path, placement: str, **options: Any) -> Handle:
    if placement == "executors":
        options.setdefault("shards", 3)
    place = folder / placement
    return woven(follow(spark, folder / "in")).start(
        "parquet",
        path=place / "out",
        checkpoint=place / "c",
        trigger=NOW,
        placement=placement,
        snapshot_rounds=2,
        **options,
    )


def told(handle: Handle) -> list[tuple[Any, ...]]:
    """What rounds say of themselves, but for what depends on the placement."""
    return [
        (one.round, one.events, one.late, one.untimed, one.partials, one.results, one.watermark, one.plan_version)
        for one in handle.recent_progress
    ]


def lives(spark: SparkSession, folder: Path, placement: str, seed: int) -> tuple[Any, ...]:
    """A stream in three lives, its queries changed in the second; everything that can be told of it."""
    made = random_trades(seed)
    put(folder / "in", "000", made[:60])
    put(folder / "in", "001", made[60:70])
    first = start(spark, folder, placement, keep="50 seconds")
    assert first.await_termination(60)
    second = start(spark, folder, placement, keep="50 seconds")
    changes = [second.add("added", ADDED), second.remove("max"), second.replace("big", QUERIES["big"] + " AND price > 9")]
    assert second.await_termination(60)
    put(folder / "in", "002", made[70:120])
    put(folder / "in", "003", [])
    put(folder / "in", "004", made[120:])
    third = start(spark, folder, placement, keep="50 seconds", finish=True)
    assert third.await_termination(60)
    answers = {name: rows(third.arrow(name)) for name in third.queries}
    asked = third.ask("SELECT symbol, count(*) AS n FROM trades [TUMBLE 20 seconds] GROUP BY symbol")
    return changes, answers, [told(one) for one in (first, second, third)], rows(asked.table), asked.complete_from


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_rows_as_on_the_driver(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    expected = lives(spark, tmp_path / "a", "driver", seed)
    found = lives(spark, tmp_path / "b", "executors", seed)
    assert found == expected
    assert all(expected[1].values())
