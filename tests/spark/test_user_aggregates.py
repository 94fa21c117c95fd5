"""Aggregates that users define, from Python to the rows: batch, streams, both placements, restarts and mistakes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.files import follow, put
from support.many_groups import random_trades
from support.trades import trades
from support.user_aggregates import DEFINITIONS
from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = {"availableNow": True}
QUERIES = {
    "means": "SELECT symbol, geo_mean(price) AS g, avg(price) AS a FROM trades [RANGE 30 s SLIDE 10 s] GROUP BY symbol",
    "more": "SELECT symbol, geo_mean(price) AS g FROM trades [RANGE 40 s SLIDE 20 s] GROUP BY symbol",
    "bits": "SELECT parity(volume) AS p, farthest(price - 100) AS f FROM trades [RANGE 45 s SLIDE 15 s]",
    "some": "SELECT symbol, product_of(price) FILTER (WHERE volume % 3 > 0) AS q, median(price) AS m"
    " FROM trades [TUMBLE 60 s] GROUP BY symbol",
    "over": "SELECT symbol, geo_mean(price) / avg(price) AS r FROM trades [TUMBLE 60 s] GROUP BY symbol"
    " HAVING parity(volume) > 1000",
}


def woven(frame: Any, queries: dict[str, str] = QUERIES) -> Loom:
    loom = Loom(frame.sparkSession)
    for name, definition in DEFINITIONS.items():
        if any(name in text for text in queries.values()):
            loom.aggregate(name, **definition())
    loom.stream("trades", frame, time="ts")
    for name, text in queries.items():
        loom.query(name, text)
    return loom


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """In order, floats as far as rounding leaves them alone."""

    def plain(value: Any) -> Any:
        return float(f"{value:.9e}") if isinstance(value, float) else value

    return sorted((tuple(map(plain, row.values())) for row in table.to_pylist()), key=repr)


@pytest.fixture(scope="module")
def made() -> list[Any]:
    return sorted(random_trades(3, 90), key=lambda row: row[0])  # in order, so that none is late


@pytest.fixture(scope="module")
def batch(spark: SparkSession, made: list[Any]) -> dict[str, list[tuple[Any, ...]]]:
    results = woven(trades(spark, made)).run(placement="driver")
    return {name: rows(results.arrow(name)) for name in QUERIES}


def test_every_row_equals_the_definition_in_plain_python(spark: SparkSession, made: list[Any]) -> None:
    loom = woven(trades(spark, made))
    results = loom.run(placement="driver")
    for name in QUERIES:
        found = loom.verify(name, results)
        assert found.ok, found
        assert found.rows > 0


def test_two_queries_share_what_they_both_ask_for(spark: SparkSession, made: list[Any]) -> None:
    loom = woven(trades(spark, made))
    shared = [
        partial_set
        for partial_set in loom.plan().sets
        if {"means", "more"} <= {planned.name for planned in partial_set.queries}
    ]
    assert [str(part.component) for part in shared[0].components].count("geo_mean(price)") == 1
    text = " ".join(loom.explain().split())
    assert "defined by the user, associative, commutative" in text


def test_rounds_and_a_restart_give_the_rows_of_a_batch_run(
    spark: SparkSession, tmp_path: Path, made: list[Any], batch: Any
) -> None:
    put(tmp_path / "in", "000", made[:30])
    put(tmp_path / "in", "001", made[30:37])
    options: dict[str, Any] = {"path": tmp_path / "out", "checkpoint": tmp_path / "c", "trigger": NOW}
    options |= {"snapshot_rounds": 1}
    first = woven(follow(spark, tmp_path / "in"), QUERIES).start("parquet", **options)
    assert first.await_termination(300)
    put(tmp_path / "in", "002", made[37:])
    plain = "SELECT symbol, avg(price) AS a FROM trades [RANGE 40 s SLIDE 20 s] GROUP BY symbol"
    forgetful = woven(follow(spark, tmp_path / "in"), {"more": plain})
    with pytest.raises(WindloomError, match=r"aggregate '(geo_mean|parity)' is not defined") as caught:
        forgetful.start("parquet", **options)
    assert "loom.aggregate('" in caught.value.hint
    handle = woven(follow(spark, tmp_path / "in"), QUERIES).start("parquet", finish=True, **options)
    assert handle.await_termination(300)
    assert {name: rows(handle.arrow(name)) for name in QUERIES} == {name: batch[name] for name in QUERIES}
    assert all(batch.values())


def test_executors_of_a_batch_run_have_the_functions_too(spark: SparkSession, made: list[Any], batch: Any) -> None:
    loom = woven(trades(spark, made), {"more": QUERIES["more"]})
    assert rows(loom.run(placement="executors", buckets=2).arrow("more")) == batch["more"]


@pytest.mark.parametrize("name", ["geo_mean", "sum", "mean", "abs", "corr", "explode"])
def test_a_name_that_exists_is_refused(spark: SparkSession, name: str) -> None:
    loom = Loom(spark)
    loom.aggregate("geo_mean", **DEFINITIONS["geo_mean"]())
    with pytest.raises(WindloomError, match=f"aggregate '{name}' (cannot be defined|is already registered)") as caught:
        loom.aggregate(name, **DEFINITIONS["product_of"]())
    assert "another name" in caught.value.hint


def test_an_argument_of_another_type_is_refused_in_its_place(spark: SparkSession) -> None:
    with pytest.raises(WindloomError, match=r"cannot take 'parity\(price\)'") as caught:
        woven(trades(spark), {"q": "SELECT parity(price) AS p FROM trades [TUMBLE 60 s]"})
    assert "defined for a whole number" in str(caught.value)
    with pytest.raises(WindloomError, match=r"geo_mean\(\) takes one argument, not 2"):
        woven(trades(spark), {"q": "SELECT geo_mean(price, volume) AS p FROM trades [TUMBLE 60 s]"})


def test_windows_without_a_value_are_null_and_what_python_cannot_compute_is_told(spark: SparkSession) -> None:
    queries = {"none": "SELECT geo_mean(price) FILTER (WHERE price < 0) AS g FROM trades [TUMBLE 60 s]"}
    loom = woven(trades(spark), queries)
    assert set(loom.run().arrow("none")["g"].to_pylist()) == {None}
    assert loom.verify("none").ok
    loom = woven(trades(spark), {"zero": "SELECT geo_mean(price * 0) AS g FROM trades [TUMBLE 60 s]"})
    assert all(value == 0.0 or math.isnan(value) for value in loom.run().arrow("zero")["g"].to_pylist())
    with pytest.raises(WindloomError, match="aggregate 'geo_mean' cannot be computed in plain Python") as caught:
        loom.verify("zero")
    assert "from 0.0 to 0.0" in caught.value.detail
