"""Instants are shown as Spark shows them, in the zone of the session, in every form in which answers are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

import windloom
from support.files import follow, put
from support.trades import ROWS, trades
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "flow": "SELECT symbol, sum(volume) AS v, max(ts) AS last FROM trades [RANGE 30 s SLIDE 10 s] GROUP BY symbol",
    "spark's": "SELECT window, symbol, count(*) AS n FROM trades GROUP BY window(ts, '30 seconds'), symbol",
}


@pytest.fixture(params=["Europe/Berlin", "America/New_York"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_every_form_shows_what_spark_shows(spark: SparkSession, tmp_path: Path, zone: str, kind: str) -> None:
    loom = Loom(spark)
    loom.stream("trades", trades(spark).selectExpr(f"cast(ts AS {kind}) AS ts", "symbol", "price", "volume"), time="ts")
    for name, text in QUERIES.items():
        loom.query(name, text)
    results = loom.run()
    loom.run(out=tmp_path / "out")
    for name in QUERIES:
        kinds = [field.remove_metadata().type for field in results.arrow(name).schema]
        assert str(kinds) == str(results[name].toArrow().schema.types).replace(" not null", "")
    own, by_spark = (
        sorted(frame["window"], key=str) for frame in (results.pandas("spark's"), results["spark's"].toPandas())
    )
    assert own == by_spark
    by_spark = results["flow"].toPandas()
    own = results.pandas("flow")
    assert own.dtypes.to_dict() == by_spark.dtypes.to_dict()
    key = ["window_start", "symbol"]
    pd.testing.assert_frame_equal(own.sort_values(key, ignore_index=True), by_spark.sort_values(key, ignore_index=True))
    merged = own.merge(by_spark, on=[*key, "window_end", "last", "v"])
    assert len(merged) == len(own), "a frame of one's own can be merged"
    found = windloom.read(tmp_path / "out", spark)
    assert found.arrow("flow").schema.types == results.arrow("flow").schema.types
    assert found.pandas("flow").dtypes.to_dict() == by_spark.dtypes.to_dict()
    assert loom.verify("flow", results)


def test_a_stream_shows_the_same(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    put(tmp_path / "in", "000", ROWS)
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    loom.query("flow", QUERIES["flow"])
    handle = loom.start("memory", trigger={"availableNow": True}, finish=True)
    assert handle.await_termination(300)
    assert handle.pandas("flow").dtypes.to_dict() == handle["flow"].toPandas().dtypes.to_dict()
