"""A loom on streams: rounds give the rows of a batch run, through restarts, changes of queries and late tuples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.files import follow, put
from support.trades import ROWS, trades
from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = {"availableNow": True}
QUERIES = {
    "avg": "SELECT symbol, avg(price) AS p FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
    "max": "SELECT symbol, max(price) AS p FROM trades [RANGE 50 seconds SLIDE 20 seconds] GROUP BY symbol",
    "close": "SELECT symbol, last(price) AS p, max_by(volume, price) FILTER (WHERE volume % 3 > 0) AS v"
    " FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
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
    assert [progress.round for progress in done] == [0, 1, 2, 3, 4]
    assert sum(progress.events for progress in done) == len(ROWS)
    assert done[-1].batch is None
    assert done[-1].results > 0


def test_a_restart_goes_on_where_it_was_with_every_query_it_had(
    spark: SparkSession, tmp_path: Path, batch: Any
) -> None:
    places: dict[str, Any] = {"path": tmp_path / "out", "checkpoint": tmp_path / "c", "trigger": NOW}
    folder = tmp_path / "in"
    put(folder, "000", ROWS[:8])
    first = woven(follow(spark, folder)).start(**places)
    assert first.await_termination(60)
    put(folder, "001", ROWS[8:20])
    second = woven(follow(spark, folder)).start(**places, snapshot_rounds=1)
    assert second.await_termination(60)
    assert [progress.round for progress in second.recent_progress] == [1]
    put(folder, "002", ROWS[20:])
    third = woven(follow(spark, folder)).start(**places, finish=True)
    assert third.await_termination(60)
    assert {name: rows(third.arrow(name)) for name in QUERIES} == batch


def test_queries_come_and_go_between_rounds(spark: SparkSession, tmp_path: Path, batch: Any) -> None:
    folder = tmp_path / "in"
    put(folder, "000", ROWS[:15])
    loom = woven(follow(spark, folder), {"avg": QUERIES["avg"], "big": QUERIES["big"]})
    handle = loom.start("memory", checkpoint=tmp_path / "c", keep="1 hour")
    try:
        handle.process_all_available()
        # The edges of every 30 s are edges of the running query, and the sums are kept: all of history answers.
        known = handle.add("sum_30", "SELECT symbol, sum(price) AS p FROM trades [TUMBLE 30 s] GROUP BY symbol")
        # Maxima were not kept before: windows are complete from the first one that no earlier tuple is in.
        foreseen = handle.what_if(QUERIES["max"])
        assert list(handle.queries) == ["avg", "big", "sum_30"], "nothing was registered"
        unknown = handle.add("max", QUERIES["max"])
        assert foreseen.complete_from == unknown.complete_from
        assert 0 < foreseen.added <= foreseen.alone
        handle.remove("big")
        assert (known.round, unknown.round) == (1, 1)
        assert known.complete_from is None
        assert unknown.complete_from is not None
        put(folder, "001", ROWS[15:])
        handle.process_all_available()
        asked = handle.ask("SELECT symbol, sum(price) AS p FROM trades [TUMBLE 30 s] GROUP BY symbol")
        assert rows(asked.table) == rows(handle.arrow("sum_30"))
        assert handle.progress.plan_version == 3
        with pytest.raises(WindloomError, match="cannot be answered from what is kept"):
            handle.ask("SELECT count(*) AS n FROM trades [TUMBLE 30 s] WHERE volume > 7")
        assert list(handle.queries) == ["avg", "sum_30", "max"]
        assert handle.pandas("sum_30").shape[1] == 4
        assert handle.plot("sum_30").svg.startswith("<svg")
        assert "latest rounds" in handle._repr_html_()
    finally:
        handle.stop()
    every = woven(trades(spark), {"sum_30": "SELECT symbol, sum(price) AS p FROM trades [TUMBLE 30 s] GROUP BY symbol"})
    watermark = handle.progress.watermark
    closed = [row for row in rows(every.run().arrow("sum_30")) if row[1].isoformat() <= watermark]
    assert rows(handle.arrow("sum_30")) == closed
    later = [
        row for row in batch["max"] if unknown.complete_from <= row[0].isoformat() < row[1].isoformat() <= watermark
    ]
    assert rows(handle.arrow("max")) == later
    # Queries that were changed while the stream ran are there again at the next start; what is gone stays gone.
    again = loom.start("memory", checkpoint=tmp_path / "c", trigger=NOW)
    assert again.await_termination(60)
    assert list(again.queries) == ["avg", "sum_30", "max"]


def test_history_then_the_stream_takes_every_tuple_once(spark: SparkSession, tmp_path: Path, batch: Any) -> None:
    folder = tmp_path / "in"
    put(folder, "000", ROWS[5:])  # history and stream overlap
    loom = woven(follow(spark, folder))
    handle = loom.start("memory", history=trades(spark, ROWS[:18]), handover=ROWS[12][0], trigger=NOW, finish=True)
    assert handle.await_termination(60)
    assert {name: rows(handle.arrow(name)) for name in QUERIES} == batch
    assert [progress.batch for progress in handle.recent_progress] == [None, 0, None]
    assert [progress.events for progress in handle.recent_progress] == [12, len(ROWS) - 12, 0]


def test_a_function_gets_each_round_and_the_live_table_has_the_latest_of_each_group(
    spark: SparkSession, tmp_path: Path, batch: Any
) -> None:
    fill(tmp_path / "in")
    got: dict[int, int] = {}

    def take(frame: Any, number: int) -> None:
        got[number] = got.get(number, 0) + frame.count()

    handle = woven(follow(spark, tmp_path / "in")).start(
        [take, "live"], checkpoint=tmp_path / "c", trigger=NOW, finish=True
    )
    assert handle.await_termination(60)
    assert got == {progress.round: progress.results for progress in handle.recent_progress if progress.results}
    latest: dict[str, tuple[Any, ...]] = {}
    for row in batch["avg"]:
        latest[row[2]] = max(latest.get(row[2], row), row)
    assert rows(handle.arrow("avg")) == sorted(latest.values(), key=repr)


def test_a_silent_stream_holds_back_its_own_queries_only(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "a", "000", ROWS)
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "a"), time="ts")
    loom.stream("quotes", follow(spark, tmp_path / "b"), time="ts", delay="60 seconds")
    loom.query("n", "SELECT symbol, count(*) AS n FROM trades [TUMBLE 30 seconds] GROUP BY symbol")
    loom.query("m", "SELECT symbol, count(*) AS m FROM quotes [TUMBLE 30 seconds] GROUP BY symbol")
    loom.table("both", by="symbol", queries=["n", "m"])
    places = {"path": tmp_path / "out", "checkpoint": tmp_path / "c", "keep": "1 hour"}
    first = loom.start(**places, trigger=NOW)
    assert first.await_termination(120)
    assert (first.arrow("n").num_rows, first.arrow("m").num_rows) == (12, 0)
    assert first.status["frontiers"] == {"trades": "2026-01-05T00:03:23+00:00", "quotes": None}
    assert first.status["watermark"] is None
    assert first.table("both").num_rows == 0  # as of a time at which nothing is complete
    # The frontier of quotes comes to 00:01:34. A tuple of trades is late by 00:03:23, whatever quotes do.
    put(tmp_path / "b", "000", [row for row in ROWS if row[3] <= 23])
    put(tmp_path / "a", "001", ROWS[1:2])
    second = loom.start(**places, trigger=NOW)
    assert second.await_termination(120)
    (done,) = second.recent_progress
    assert done.late == {"trades": {"partly": 0, "dropped": 1}, "quotes": {"partly": 0, "dropped": 0}}
    assert done.frontiers == {"trades": "2026-01-05T00:03:23+00:00", "quotes": "2026-01-05T00:01:34+00:00"}
    assert done.watermark == done.frontiers["quotes"]
    assert (second.arrow("n").num_rows, second.arrow("m").num_rows) == (12, 6)
    wide = second.table("both").to_pylist()
    assert {row["watermark"].isoformat() for row in wide} == {done.watermark}
    assert all(row["n"] == row["m"] for row in wide)
    assert second.ask("SELECT symbol, count(*) AS n FROM quotes [TUMBLE 30 seconds] GROUP BY symbol").watermark == (
        done.watermark
    )


def test_windows_of_rows_wait_for_their_own_stream(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "b"):
        put(tmp_path / name, "000", ROWS)
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "a"), time="ts", delay="21 seconds")
    loom.stream("quotes", follow(spark, tmp_path / "b"), time="ts", delay="1 day")
    loom.query("n", "SELECT count(*) AS n FROM trades [ROWS 10 SLIDE 10]")
    loom.query("m", "SELECT count(*) AS m FROM quotes [ROWS 10 SLIDE 10]")
    handle = loom.start("memory", trigger=NOW)
    assert handle.await_termination(120)
    assert (handle.arrow("n").num_rows, handle.arrow("m").num_rows) == (2, 0)
