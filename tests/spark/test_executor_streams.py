"""Executor placement of streams: the rows of the driver placement, through restarts, changes of queries, leftovers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.files import put
from support.sharded import ADDED, EVERY, QUERIES, SHARDS, random_trades, rows, start, told
from windloom.checkpoint.shards import pieces
from windloom.checkpoint.storage import watched
from windloom.errors import WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lives(spark: SparkSession, folder: Path, placement: str, seed: int) -> tuple[Any, ...]:
    """A stream in three lives, its queries changed in the second; everything that can be told of it."""
    made = random_trades(seed)
    put(folder / "in", "000", made[:60])
    put(folder / "in", "001", made[60:70])
    source, place = folder / "in", folder / placement
    first = start(spark, source, place, placement, EVERY, keep="50 seconds")
    assert first.await_termination(300)
    # Without new tuples there is no round, so that both placements change their queries before the same one.
    second = start(spark, source, place, placement, EVERY, keep="50 seconds", trigger={"processingTime": "1 hour"})
    changes = [
        second.add("added", ADDED),
        second.remove("max"),
        second.replace("big", QUERIES["big"] + " AND price > 9"),
    ]
    second.stop()
    put(folder / "in", "002", made[70:120])
    put(folder / "in", "003", [])
    put(folder / "in", "004", made[120:])
    third = start(spark, source, place, placement, EVERY, keep="50 seconds", finish=True)
    assert third.await_termination(300)
    answers = {name: rows(third.arrow(name)) for name in third.queries}
    asked = third.ask("SELECT symbol, count(*) AS n FROM trades [TUMBLE 20 seconds] GROUP BY symbol")
    return changes, answers, [told(handle) for handle in (first, second, third)], rows(asked.table), asked.complete_from


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards write tables of two rows or more by themselves, so that answers take both ways."""
    monkeypatch.setattr(pieces, "LEAST_ROWS", 2)


def test_the_same_rows_as_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    expected = lives(spark, tmp_path / "a", "driver", seed=1)
    found = lives(spark, tmp_path / "b", "executors", seed=1)
    assert found == expected
    assert all(expected[1].values())


class _CrashError(Exception):
    """In the place of a process that ends."""


def crash_at(points: list[str]) -> Callable[[str], None]:
    """Crash when the first of the points is passed; the next life crashes at the next one."""

    def look(point: str) -> None:
        if points and point == points[0]:
            raise _CrashError(points.pop(0))

    return look


def test_a_crash_at_any_point_changes_no_row(spark: SparkSession, tmp_path: Path) -> None:
    made = random_trades(3, 60)
    for number in range(2):
        put(tmp_path / "in", f"{number:03d}", made[30 * number : 30 * number + 30])
    undisturbed = start(spark, tmp_path / "in", tmp_path / "a", "executors", EVERY, finish=True)
    assert undisturbed.await_termination(300)
    points = ["after begun", "after tuples", "before log", "after log", "after sink", "before commit", "after commit"]
    shards = tmp_path / "b" / "c" / "shards"
    with watched(crash_at(points)):
        while points:
            handle = start(spark, tmp_path / "in", tmp_path / "b", "executors", EVERY, finish=True)
            with pytest.raises(_CrashError):
                handle.await_termination(300)
            # What an attempt that nobody waited for writes after the crash.
            shards.mkdir(exist_ok=True)
            (shards / f"000000000-0000-{len(points)}.state").write_bytes(b"left behind")
    handle = start(spark, tmp_path / "in", tmp_path / "b", "executors", EVERY, finish=True)
    assert handle.await_termination(300)
    for name in EVERY:
        assert rows(handle.arrow(name)) == rows(undisturbed.arrow(name))
    written = {path.name for path in (tmp_path / "b" / "out").glob("*/*.parquet")}
    assert {"shard" in name for name in written} == {True, False}
    assert not list((tmp_path / "b" / "out" / pieces.FOLDER).glob("*.piece"))
    last = handle.status["round"]
    assert {path.name.rpartition("-")[0] for path in shards.iterdir()} == {f"{last:09d}-{n:04d}" for n in range(SHARDS)}


def test_a_checkpoint_keeps_its_placement_and_its_shards(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", random_trades(4, 30))
    for placement, wrong, message in (
        ("driver", {"placement": "executors"}, "the checkpoint's state is on the driver"),
        ("executors", {"placement": "driver"}, "the checkpoint's state is on executors"),
        ("executors", {"placement": "executors", "shards": SHARDS + 1}, f"state is in {SHARDS} shards"),
    ):
        handle = start(spark, tmp_path / "in", tmp_path / placement, placement)
        assert handle.await_termination(300)
        with pytest.raises(WindloomError, match=message):
            start(spark, tmp_path / "in", tmp_path / placement, **wrong)
    again = start(spark, tmp_path / "in", tmp_path / "executors", "executors", shards=None)
    assert again.await_termination(300)
    assert again.status["placement"] == f"executors, {SHARDS} shards"
    assert again.explain().startswith(f"Placement: executors, {SHARDS} shards\nPlan: ")
