"""What Spark is asked about types: only what our rules do not know, and all of it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.trades import trades
from windloom import Loom, WindloomError
from windloom.engine import registry
from windloom.spark.frames import has_usual_types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOW = "FROM trades [TUMBLE 10 seconds]"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the questions put to Spark."""
    found: list[str] = []
    for name in ("expression_types", "can_evaluate", "check_outputs"):
        real = getattr(registry, name)

        def asking(*arguments: Any, name: str = name, real: Any = real) -> Any:
            found.append(name)
            return real(*arguments)

        monkeypatch.setattr(registry, name, asking)
    return found


def declared(spark: SparkSession, **queries: str) -> Loom:
    """Queries first, data behind them, as a command has them."""
    loom = Loom(spark)
    loom.stream("trades", trades(spark), time="ts")
    for name, text in queries.items():
        loom._registry.queries[name] = loom._registry._named(name, f"{text} {WINDOW}")
    return loom


def test_spark_is_not_asked_what_our_rules_know(spark: SparkSession, asked: list[str]) -> None:
    loom = Loom(spark)
    loom.stream("trades", trades(spark), time="ts")
    loom.query("a", f"SELECT sum(price * volume) / sum(volume) AS r {WINDOW} WHERE volume % 2 = 0 HAVING count(*) > 1")
    loom.plan()
    assert asked == []


def test_all_queries_are_asked_about_together(spark: SparkSession, asked: list[str]) -> None:
    loom = declared(
        spark,
        a="SELECT hex(sum(volume)) AS r",
        b="SELECT bin(count(*)) AS r, max(try_add(volume, 1)) AS s",
        c="SELECT sum(try_multiply(volume, 2)) AS s",
    )
    loom.plan()
    assert asked == ["expression_types", "can_evaluate"]


def test_where_one_of_many_is_wrong_it_is_named(spark: SparkSession) -> None:
    loom = declared(spark, a="SELECT hex(sum(volume)) AS r", b="SELECT array_size(max(price)) AS r, count(*) AS n")
    with pytest.raises(WindloomError, match=r"query 'b': Spark cannot evaluate 'array_size\(max\(price\)\)'"):
        loom.plan()


def test_a_session_with_types_of_its_own_is_asked(spark: SparkSession) -> None:
    assert has_usual_types(spark)
    setting = "spark.sql.timestampType"
    spark.conf.set(setting, "TIMESTAMP_NTZ")
    try:
        assert not has_usual_types(spark)
    finally:
        spark.conf.unset(setting)
    spark.udf.register("of_the_user", lambda value: value, "double")
    try:
        assert not has_usual_types(spark)
    finally:
        spark.sql("DROP TEMPORARY FUNCTION of_the_user")
    assert has_usual_types(spark)
