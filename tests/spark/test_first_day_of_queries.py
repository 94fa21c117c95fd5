"""What users of PySpark paste, misspell and run twice on the first day: each test begins where such a user began."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.files import follow, put
from support.trades import ROWS, STREAM, settings, trades
from windloom import Loom, WindloomError
from windloom.errors import WindloomWarning
from windloom.spark.sources.files import find_file_stream
from windloom.spark.sources.read import find_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# ---- Spark's own form of a window ------------------------------------------------------------------------------------


def test_a_query_over_a_static_lookup_is_pasted_as_spark_runs_it(spark: SparkSession) -> None:
    venues = spark.createDataFrame([("A", "Paris"), ("B", "Oslo")], "symbol string, city string")
    frame = trades(spark, ROWS)
    text = """
        SELECT window(t.ts, '30 seconds', '10 seconds'), v.city, sum(t.volume) AS volume, max(t.price) AS high
        FROM trades t JOIN venues v ON t.symbol = v.symbol
        WHERE t.volume > 3
        GROUP BY window(t.ts, '30 seconds', '10 seconds'), v.city
    """
    frame.createOrReplaceTempView("trades")
    venues.createOrReplaceTempView("venues")
    expected = spark.sql(text)
    for retroactive in (True, False):
        loom = Loom(spark)
        loom.stream("trades", frame, time="ts")
        loom.relation("venues", venues, retroactive=retroactive)
        loom.query("by_city", text)
        found = loom.run()["by_city"]
        assert found.columns == expected.columns
        assert sorted(map(tuple, found.collect())) == sorted(map(tuple, expected.collect()))


# ---- a name of a function that is nearly one -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["SELECT symbol, summ(volume) AS v", "SELECT summ(volume) AS v"])
def test_an_aggregate_that_is_misspelt_is_guessed(spark: SparkSession, text: str) -> None:
    loom = Loom(spark)
    loom.stream("trades", trades(spark, ROWS), time="ts")
    with pytest.raises(WindloomError) as refused:
        loom.query("flow", f"{text} FROM trades [TUMBLE 1 minute]" + " GROUP BY symbol" * ("symbol" in text))
    assert "did you mean 'sum'" in refused.value.hint


# ---- a cell of a notebook that runs twice ----------------------------------------------------------------------------

FLOW = "SELECT symbol, sum(volume) AS v FROM trades [TUMBLE 1 minute] GROUP BY symbol"


def the_cell(loom: Loom, spark: SparkSession, folder: Path) -> None:
    loom.load(folder / "desk.cql")
    loom.stream("trades", trades(spark, ROWS), time="ts")
    loom.relation("venues", spark.createDataFrame([("A", "Paris")], "symbol string, city string"))
    loom.aggregate(
        "largest", lift=lambda x: x, combine=lambda a, b: max(a, b), lower=lambda a: a, neutral=float("-inf")
    )
    loom.query("flow", FLOW)
    loom.query("high", "SELECT largest(price) AS high FROM trades [TUMBLE 1 minute]", priority=2)
    loom.table("wide", by="symbol", queries=["flow"])


@pytest.fixture
def catalog_folder(tmp_path: Path) -> Path:
    (tmp_path / "desk.cql").write_text(
        STREAM + "CREATE QUERY busy AS SELECT count(*) AS n FROM trades [TUMBLE 1 hour];"
    )
    return tmp_path


def test_a_cell_that_runs_twice_changes_nothing(spark: SparkSession, catalog_folder: Path) -> None:
    loom = Loom(spark)
    the_cell(loom, spark, catalog_folder)
    queries, streams = dict(loom.queries), dict(loom.streams)
    first = loom.run().arrow("flow")
    the_cell(loom, spark, catalog_folder)
    assert (dict(loom.queries), dict(loom.streams)) == (queries, streams)
    loom.query("flow", FLOW.replace(" FROM", "\n  FROM").lower())
    assert dict(loom.queries) == queries, "the same query in other letters and on other lines"
    loom.stream("trades", trades(spark, ROWS[:10]), time="ts")
    assert loom.run().arrow("flow").num_rows < first.num_rows, "the newest data is read"


def test_another_definition_replaces_one_only_where_that_is_said(spark: SparkSession, catalog_folder: Path) -> None:
    loom = Loom(spark)
    the_cell(loom, spark, catalog_folder)
    other = trades(spark, ROWS).selectExpr("*", "volume * 2 AS twice")
    venues = spark.createDataFrame([("A", 3)], "symbol string, rank int")
    (catalog_folder / "other.cql").write_text(STREAM.replace("10 seconds", "1 minute"))
    plain = Loom(spark)  # without a catalog, which would say what the columns are
    plain.stream("trades", trades(spark, ROWS), time="ts")
    changes: dict[str, Callable[..., object]] = {
        "stream 'trades' is already registered\nit is another one: stream 'trades': column 'twice'": partial(
            plain.stream, "trades", other, time="ts"
        ),
        "relation 'venues' is already registered": partial(loom.relation, "venues", venues),
        "query 'flow' is already registered\nit is another one: SELECT symbol, sum(volume)": partial(
            loom.query, "flow", FLOW.replace("sum", "max")
        ),
        "aggregate 'largest' is already registered": partial(
            loom.aggregate,
            "largest",
            lift=lambda x: -x,
            combine=lambda a, b: max(a, b),
            lower=lambda a: -a,
            neutral=-1e99,
        ),
        "stream 'trades' is already registered\n'other.cql' creates it otherwise": partial(
            loom.load, catalog_folder / "other.cql"
        ),
    }
    for said, change in changes.items():
        with pytest.raises(WindloomError) as refused:
            change()
        assert str(refused.value).startswith(said)
        assert "replace=True" in refused.value.hint
        change(replace=True)
    assert "twice" in plain.streams["trades"].columns
    assert loom.streams["trades"].delay_ticks == 60_000_000
    loom.stream("trades", trades(spark, ROWS), time="ts")
    results = loom.run()
    assert loom.verify("flow", results)
    assert results.arrow("high")["high"].to_pylist() == [10.0, 19.0, 28.0, 36.0], "the other functions are called"


def test_what_is_dropped_is_gone_and_what_is_read_stays(spark: SparkSession, catalog_folder: Path) -> None:
    loom = Loom(spark)
    the_cell(loom, spark, catalog_folder)
    for name, said in {
        "flow": "query 'flow' cannot be dropped\nthe wide table 'wide' shows its answers",
        "trades": "stream 'trades' cannot be dropped\nqueries read it: 'busy', 'flow', 'high'",
        "largest": "aggregate 'largest' cannot be dropped\nqueries read it: 'high'",
        "flaw": "there is no 'flaw' to drop",
    }.items():
        with pytest.raises(WindloomError) as refused:
            loom.drop(name)
        assert str(refused.value).startswith(said)
    for name in ("wide", "flow", "high", "busy", "largest", "venues", "trades"):
        loom.drop(name)
    assert (dict(loom.queries), dict(loom.streams), dict(loom.relations)) == ({}, {}, {})
    loom.stream("trades", trades(spark, ROWS), time="ts", delay="1 hour")
    loom.query("flow", FLOW)
    assert loom.run().arrow("flow").num_rows > 0


def test_a_source_stays_as_it_is_while_a_stream_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", ROWS)
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    loom.query("flow", FLOW)
    handle = loom.start("memory")
    try:
        loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
        for change in (
            lambda: loom.stream("trades", trades(spark), time="ts", replace=True),
            lambda: loom.drop("trades"),
        ):
            with pytest.raises(WindloomError, match="stream 'trades' cannot be changed now"):
                change()
    finally:
        handle.stop()


# ---- times without a zone --------------------------------------------------------------------------------------------


def test_a_timestamp_stream_reads_times_without_a_zone_in_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "desk.cql").write_text(STREAM)
    local = trades(spark, ROWS).selectExpr("CAST(ts AS TIMESTAMP_NTZ) AS ts", "symbol", "price", "volume")
    local.coalesce(1).write.parquet(str(tmp_path / "in"))
    said = "stream 'trades': the times in 'ts' have no zone, and are read as times of the session's zone, Asia/Kolkata"
    starts = {}
    with settings(spark, spark__sql__session__timeZone="Asia/Kolkata"):
        for streaming in (False, True):
            loom = Loom(spark)
            loom.load(tmp_path / "desk.cql")
            read = find_file_stream if streaming else find_source
            with pytest.warns(WindloomWarning) as told:
                loom.stream("trades", read(loom.streams["trades"], str(tmp_path / "in")).read(spark))
            assert [str(each.message)[: len(said)] for each in told] == [said], "once"
            assert loom.streams["trades"].columns["ts"].name == "timestamp"
            loom.query("flow", FLOW)
            if streaming:
                handle = loom.start("memory", trigger={"availableNow": True}, finish=True)
                assert handle.awaitTermination(300)
                starts[streaming] = sorted(set(handle.arrow("flow")["window_start"].to_pylist()))
            else:
                results = loom.run()
                assert loom.verify("flow", results)
                starts[streaming] = sorted(set(results.arrow("flow")["window_start"].to_pylist()))
    assert starts[True] == starts[False]
    assert starts[False][0] == ROWS[0][0] - timedelta(hours=5, minutes=30)
    lacking = Loom(spark)
    lacking.stream("trades", local, time="ts")
    assert lacking.streams["trades"].columns["ts"].name == "timestamp_ntz", "without a declaration, times stay local"


# ---- durations as people write them ----------------------------------------------------------------------------------


def test_durations_in_messages_are_as_people_write_them(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", [*ROWS, (ROWS[-1][0] + timedelta(hours=3, milliseconds=795), "A", 1.0, 1)])
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    loom.query("flow", FLOW)
    handle = loom.start("memory", trigger={"availableNow": True})
    assert handle.awaitTermination(300)
    with pytest.raises(WindloomError, match="cannot be answered") as refused:
        handle.ask("SELECT symbol, sum(volume) AS v FROM trades [TUMBLE 90 minutes] GROUP BY symbol")
    assert refused.value.hint == "keep at least 94 minutes of history when the stream is started"
    other = Loom(spark)
    other.stream("trades", trades(spark), time="ts", delay="90.5 minutes 25 ms")
    with pytest.raises(WindloomError) as refused:
        other.stream("trades", trades(spark), time="ts", delay="5545795 ms")
    assert "its delay is 1 hour 32 minutes 25 seconds 795 milliseconds here" in refused.value.detail
    assert "and 1 hour 30 minutes 30 seconds 25 milliseconds" in refused.value.detail
