"""Executor placement of streams: the rows of the driver placement, through restarts, changes of queries, leftovers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.files import put
from support.sharded import ADDED, QUERIES, random_trades, rows, start, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lives(spark: SparkSession, folder: Path, placement: str, seed: int) -> tuple[Any, ...]:
    """A stream in three lives, its queries changed in the second; everything that can be told of it."""
    made = random_trades(seed)
    put(folder / "in", "000", made[:60])
    put(folder / "in", "001", made[60:70])
    source, place = folder / "in", folder / placement
    first = start(spark, source, place, placement, keep="50 seconds")
    assert first.await_termination(60)
    second = start(spark, source, place, placement, keep="50 seconds")
    changes = [
        second.add("added", ADDED),
        second.remove("max"),
        second.replace("big", QUERIES["big"] + " AND price > 9"),
    ]
    assert second.await_termination(60)
    put(folder / "in", "002", made[70:120])
    put(folder / "in", "003", [])
    put(folder / "in", "004", made[120:])
    third = start(spark, source, place, placement, keep="50 seconds", finish=True)
    assert third.await_termination(60)
    answers = {name: rows(third.arrow(name)) for name in third.queries}
    asked = third.ask("SELECT symbol, count(*) AS n FROM trades [TUMBLE 20 seconds] GROUP BY symbol")
    return changes, answers, [told(one) for one in (first, second, third)], rows(asked.table), asked.complete_from


def test_the_same_rows_as_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    expected = lives(spark, tmp_path / "a", "driver", seed=1)
    found = lives(spark, tmp_path / "b", "executors", seed=1)
    assert found == expected
    assert all(expected[1].values())
