"""What users of PySpark paste, misspell and run twice on the first day: each test begins where such a user began."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.files import follow, put
from support.trades import ROWS, STREAM, trades
from windloom import Loom, WindloomError

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
