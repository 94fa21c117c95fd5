"""What changes between two starts of a stream: each test begins where a user with a running job began."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import windloom
from support.frames import table_of
from support.trades import ROWS, SCHEMA
from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windloom.engine.handle import Handle

#: The column that comes later stands among the others.
LATER = "ts timestamp, venue string, symbol string, price double, volume bigint"
FLOW = "SELECT symbol, sum(volume) AS v FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol"
ROWS_OF = "SELECT RSTREAM symbol, volume FROM trades [RANGE 30 s SLIDE 30 s]"
VENUES = "SELECT venue, count(*) AS n FROM trades [TUMBLE 1 minute] GROUP BY venue"


def put_as(folder: Path, number: int, rows: list[tuple[Any, ...]], schema: str) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(table_of(rows, schema), folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)


def with_venue(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(ts, "xy"[volume % 2], symbol, price, volume) for ts, symbol, price, volume in rows]


def start(spark: SparkSession, folder: Path, schema: str, delay: str, queries: dict[str, str], **more: Any) -> Handle:
    loom = Loom(spark)
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    loom.stream("trades", frame, time="ts", delay=delay)
    for name, text in queries.items():
        loom.query(name, text)
    places = {"path": folder / "out", "checkpoint": folder / "c"}
    return loom.start("parquet", **places, trigger={"availableNow": True}, keep_tuples="1 hour", **more)


def test_columns_come_delays_change_and_queries_are_renamed(spark: SparkSession, tmp_path: Path) -> None:
    put_as(tmp_path / "in", 0, ROWS[:12], SCHEMA)
    first = start(spark, tmp_path, SCHEMA, "10 seconds", {"flow": FLOW, "rows": ROWS_OF})
    assert first.awaitTermination(300)
    late = with_venue([(ROWS[14][0], "A", 1.0, 1000), *ROWS[20:]])  # 35 seconds behind the others of its round
    put_as(tmp_path / "in", 1, with_venue(ROWS[12:20]), LATER)
    put_as(tmp_path / "in", 2, late, LATER)
    queries = {"flux": FLOW, "rows": ROWS_OF, "venues": VENUES}
    second = start(spark, tmp_path, LATER, "1 minute", queries)
    assert second.awaitTermination(300)
    assert [list(progress.changes) for progress in second.recentProgress][:2] == [
        [
            "stream 'trades': column 'venue' (string) is new",
            "stream 'trades': its delay is 1 minute from now on, and was 10 seconds",
        ],
        [],
    ]
    assert sum(progress.late_dropped for progress in second.recentProgress) == 0
    question = "SELECT symbol, venue, sum(volume) AS v FROM trades [TUMBLE 10 seconds] GROUP BY symbol, venue"
    asked = second.ask(question)
    third = start(spark, tmp_path, LATER, "1 minute", queries, finish=True)
    assert third.awaitTermination(300)
    assert all(progress.changes == () for progress in third.recentProgress)

    batch = Loom(spark)
    frame = spark.read.schema(LATER).parquet(str(tmp_path / "in"))
    batch.stream("trades", frame, time="ts")
    for name, text in {**queries, "asked": question}.items():
        batch.query(name, text)
    expected, found = batch.run(), windloom.read(tmp_path / "out")

    def rows_of(table: Any) -> list[tuple[Any, ...]]:
        return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)

    assert rows_of(found.arrow("rows")) == rows_of(expected.arrow("rows"))
    assert sorted({*rows_of(found.arrow("flow")), *rows_of(found.arrow("flux"))}, key=repr) == rows_of(
        expected.arrow("flux")
    ), "the renamed query goes on where the other one stopped"
    assert set(rows_of(found.arrow("venues"))) <= set(rows_of(expected.arrow("venues")))
    assert found.arrow("venues").num_rows > 0
    assert set(rows_of(asked.table)) <= set(rows_of(expected.arrow("asked")))
    assert {row["venue"] for row in asked.table.to_pylist()} == {None, "x", "y"}, "old tuples have no venue"


def test_what_cannot_change_is_named_with_the_way_out(spark: SparkSession, tmp_path: Path) -> None:
    put_as(tmp_path / "in", 0, ROWS[:12], SCHEMA)
    start(spark, tmp_path, SCHEMA, "10 seconds", {"flow": FLOW}).awaitTermination(300)
    for schema, queries, fact, way_out in (
        (
            SCHEMA.replace("volume bigint", "volume double"),
            {"flow": FLOW},
            "column 'volume' is double here and bigint in the checkpoint",
            "cast it: df.withColumn('volume', col('volume').cast('bigint'))",
        ),
        (
            SCHEMA.replace("price double, ", ""),
            {"flow": FLOW},
            "column 'price' is missing here and double in the checkpoint",
            "add it: df.withColumn('price', lit(None).cast('double'))",
        ),
        (SCHEMA, {"other": VENUES.replace("venue", "symbol")}, "such as 'flow', is registered here", "once more"),
    ):
        with pytest.raises(WindloomError, match="the checkpoint belongs to another catalog") as refused:
            start(spark, tmp_path, schema, "10 seconds", queries)
        assert fact in refused.value.detail
        assert way_out in refused.value.hint


def test_answers_of_a_removed_query_can_still_be_read(spark: SparkSession, tmp_path: Path) -> None:
    put_as(tmp_path / "in", 0, ROWS[:20], SCHEMA)
    loom = Loom(spark)
    loom.stream("trades", spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in")), time="ts")
    loom.query("flow", FLOW)
    loom.query("counted", "SELECT sum(volume) AS v FROM trades [ROWS 5 SLIDE 2]")
    places = {"path": tmp_path / "out", "checkpoint": tmp_path / "c"}
    handle = loom.start("parquet", **places)
    handle.processAllAvailable()
    before = {name: handle.arrow(name) for name in ("flow", "counted")}
    handle.remove("counted")
    put_as(tmp_path / "in", 1, ROWS[20:], SCHEMA)
    handle.processAllAvailable()
    assert (list(handle.queries), list(handle.removed)) == (["flow"], ["counted"])
    assert handle.arrow("counted") == before["counted"]
    assert handle["counted"].count() == before["counted"].num_rows > 0
    assert (handle.grouping("counted"), handle.columns("counted")) == ([], ["v"])
    assert handle.arrow("flow").num_rows > before["flow"].num_rows
    with pytest.raises(WindloomError, match="unknown query 'never'"):
        handle.arrow("never")
    handle.stop()
    again = loom.start("parquet", **places)
    try:
        assert list(again.removed) == ["counted"], "the checkpoint still has the plan"
        assert again.arrow("counted") == before["counted"]
    finally:
        again.stop()
