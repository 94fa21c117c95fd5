"""What users of PySpark paste, misspell and run twice on the first day: each test begins where such a user began."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.trades import ROWS, trades
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
