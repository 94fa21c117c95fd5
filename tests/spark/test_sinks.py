"""Sinks that others read, at the end of real streams: the same rows everywhere, also after an outage."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.files import follow, put
from support.places import Places, in_delta, in_parquet, in_postgres
from support.postgres import Server
from support.receiver import Receiver
from support.trades import ROWS
from windloom import Loom, SinkDownError, WindloomError, sink
from windloom.engine.handle import Handle
from windloom.sinks import delivery
from windloom.sinks.delivery import SinkWait

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = {"availableNow": True}
QUERIES = {
    "flow": "SELECT symbol, sum(volume) AS v FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
    "best": "SELECT top(2, symbol) AS best, avg(price) AS p FROM trades [TUMBLE 1 minute]",
    "many": "SELECT symbol, count(*) * 2 AS n FROM trades [TUMBLE 40 s] GROUP BY symbol HAVING count(*) > 1",
}


def start(spark: SparkSession, folder: Path, sinks: Any, **options: Any) -> Handle:
    loom = Loom(spark)
    loom.stream("trades", follow(spark, folder / "in"), time="ts", delay="10 seconds")
    for name, text in QUERIES.items():
        loom.query(name, text)
    return loom.start(sinks, checkpoint=folder / "checkpoint", **{"trigger": NOW, **options})


def until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_every_sink_has_the_rows_of_parquet(
    spark: SparkSession, tmp_path: Path, postgres: Server, receiver: Receiver
) -> None:
    places = Places(tmp_path, postgres, receiver)
    receiver.behaviour = lambda _: 200
    chosen = [sink("parquet", tmp_path / "out"), *(sink(*target) for target in places.targets.items())]
    for number, part in enumerate((ROWS[:12], ROWS[12:])):
        put(tmp_path / "in", str(number), part)
        start(spark, tmp_path, chosen, finish=number == 1).await_termination(120)
    every = in_parquet(tmp_path / "out")
    assert {query for query, _ in every} == set(QUERIES)
    # Lists are JSON in PostgreSQL and in letters.
    assert in_delta(places.lake) == every
    assert sum(in_postgres(places.server, "windloom").values()) == sum(every.values())
    flow = places.server.rows("SELECT sum(v), count(*), min(window_start) FROM windloom.flow")
    table: pa.Table = pa.concat_tables([pq.read_table(path) for path in (tmp_path / "out").glob("*_v-*/*.parquet")])
    assert flow[0][:2] == (sum(table["v"].to_pylist()), table.num_rows)
    assert flow[0][2] == min(table["window_start"].to_pylist())
    best = places.server.rows("SELECT best FROM windloom.best ORDER BY window_end LIMIT 1")[0][0]
    letters = [letter for letter in receiver.letters.values() if letter["query"] == "best"]
    assert best == min((row for letter in letters for row in letter["rows"]), key=lambda row: row["window_end"])["best"]


def test_a_stream_waits_for_a_sink_says_so_and_goes_on(
    spark: SparkSession, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_FIRST_PAUSE", 0.05)
    receiver.behaviour = lambda _: 503
    put(tmp_path / "in", "0", ROWS)
    waits: list[SinkWait | None] = []
    hook = sink("webhook", receiver.url, give_up_after="never")
    handle = start(spark, tmp_path, [hook, "memory"], trigger=None, waiting=waits.append)
    until(lambda: handle.waiting is not None and handle.waiting.attempts > 1)
    assert handle.status["message"].startswith("round 0 waits for the sink 'webhook' since ")
    assert handle.is_active
    with pytest.raises(WindloomError, match="queries cannot be changed now") as caught:
        handle.add("more", "SELECT count(*) AS n FROM trades [TUMBLE 1 minute]")
    assert "bring 'webhook' back" in caught.value.hint
    receiver.behaviour = lambda _: 200
    until(lambda: handle.progress is not None)
    done = handle.progress
    assert done is not None
    assert done.sinks["webhook"]["letters"] == 3
    assert 0 < done.sinks["webhook"]["waited"] <= done.seconds["waiting"] + 1
    assert waits[-1] is None
    assert handle.waiting is None
    handle.add("more", "SELECT count(*) AS n FROM trades [TUMBLE 1 minute]")
    handle.stop()


def test_a_stream_that_waits_can_be_stopped_and_the_next_one_delivers(
    spark: SparkSession, tmp_path: Path, receiver: Receiver
) -> None:
    receiver.behaviour = lambda _: 503
    put(tmp_path / "in", "0", ROWS)
    hook = sink("webhook", receiver.url, give_up_after="never")
    handle = start(spark, tmp_path, hook, trigger=None)
    until(lambda: handle.waiting is not None)
    handle.stop()
    assert handle.exception() is None
    assert handle.status["round"] == -1
    receiver.behaviour = lambda _: 200
    start(spark, tmp_path, hook).await_termination(120)
    assert {letter["query"] for letter in receiver.letters.values()} == set(QUERIES)


def test_when_patience_is_over_the_stream_fails_and_the_same_start_goes_on(
    spark: SparkSession, tmp_path: Path, postgres: Server
) -> None:
    server = postgres.new_database("patience")
    put(tmp_path / "in", "0", ROWS[:12])
    start(spark, tmp_path, sink("postgres", server.url)).await_termination(120)
    put(tmp_path / "in", "1", ROWS[12:])
    postgres.execute("ALTER DATABASE patience SET default_transaction_read_only = on")  # as in a fail-over
    with pytest.raises(WindloomError) as caught:
        start(spark, tmp_path, sink("postgres", server.url), sink_patience="0.2 seconds").await_termination(120)
    assert caught.value.message == "the sink 'postgres' has been down for 0.2 seconds"
    assert "read-only transaction" in caught.value.detail
    assert caught.value.hint.endswith("then start again with the same checkpoint: nothing is lost")
    postgres.execute("ALTER DATABASE patience SET default_transaction_read_only = off")
    start(spark, tmp_path, sink("postgres", server.url), finish=True).await_termination(120)
    whole = tmp_path / "whole"
    put(whole / "in", "0", ROWS)
    start(spark, whole, sink("parquet", whole / "out"), finish=True).await_termination(120)
    assert sum(in_postgres(server, "windloom").values()) == sum(in_parquet(whole / "out").values())


def test_a_function_may_say_that_it_is_down(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_FIRST_PAUSE", 0.01)
    put(tmp_path / "in", "0", ROWS)
    calls: list[int] = []

    def write(rows: DataFrame, round: int) -> None:
        calls.append(round)
        if len(calls) == 2:
            raise SinkDownError("the queue is away")

    handle = start(spark, tmp_path, write)
    assert handle.await_termination(120)
    assert calls == [0, 0, 0, 0, 0], "all tables of the round once more"
    with pytest.raises(WindloomError, match="not read back"):
        handle.arrow("flow")
