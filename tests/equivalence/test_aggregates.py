"""Aggregates beyond sums and extremes, against Spark's own SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.trades import settings
from support.truths import interpreted
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

WINDOW = "FROM s [RANGE 20 seconds SLIDE 7 seconds] GROUP BY k"


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """Every tuple has its own time `ts` and number `n`; `few` and `y` tie often; there are NULLs in all but these."""
    return (
        spark.range(600, numPartitions=3)
        .selectExpr(
            "timestamp_millis(pmod(id * 7919, 600) * 133 - 20000) AS ts",
            "nullif(id % 4, 3) AS k",
            "pmod(id * 577, 600) AS n",
            "nullif(id % 5, 4) AS few",
            "CASE id % 7 WHEN 0 THEN NULL WHEN 1 THEN double('NaN') WHEN 2 THEN -0.0D WHEN 3 THEN 0.0D ELSE id % 3 END"
            " AS y",
            "CASE WHEN id % 11 > 0 THEN cast(id % 50 AS decimal(10,2)) END AS d",
            "CASE WHEN id % 6 > 0 THEN concat('t', id % 9) END AS t",
            "CASE WHEN id % 5 > 0 THEN id % 2 = 0 OR id % 13 > 4 END AS b",
        )
        .persist()
    )


def woven(frame: DataFrame, text: str) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("s", frame, time="ts")
    loom.query("q", text)
    return loom


def equal_to_sql(frame: DataFrame, aggregates: dict[str, str], placement: str = "driver") -> None:
    """Rows of CQL and rows of Spark's own SQL; the latter by other functions where `aggregates` says so."""
    ours = woven(
        frame, f"SELECT k, {', '.join(f'{aggregate} AS o{i}' for i, aggregate in enumerate(aggregates))} {WINDOW}"
    )
    frame.createOrReplaceTempView("windloom_aggregates")
    theirs = frame.sparkSession.sql(
        "SELECT window.start AS window_start, window.end AS window_end, k,"
        f" {', '.join(f'{aggregate} AS o{i}' for i, aggregate in enumerate(aggregates.values()))}"
        " FROM windloom_aggregates GROUP BY window(ts, '20 seconds', '7 seconds'), k"
    )
    found = ours.run(placement=placement)["q"]
    assert found.dtypes == theirs.dtypes
    with interpreted(frame.sparkSession):
        expected = theirs.collect()
    assert shown(found.collect()) == shown(expected)


def shown(rows: list[Row]) -> list[str]:
    """Rows in any order; 0.0 and −0.0 are equal, so either may be picked."""
    return sorted(repr(row).replace("=-0.0,", "=0.0,") for row in rows)


CONDITIONS = {text: text for text in ("bool_and(b)", "every(few > 0)", "bool_or(b)", "any(y > 1)", "some(n % 50 = 0)")}


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_conditions_equal_spark(frame: DataFrame, placement: str) -> None:
    equal_to_sql(frame, CONDITIONS, placement)


BITS = {
    f"{name}({column})": f"{name}({column})" for name in ("bit_and", "bit_or", "bit_xor") for column in ("n", "few")
}


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_bits_equal_spark(frame: DataFrame, placement: str) -> None:
    equal_to_sql(frame, BITS, placement)


#: Nothing ties: what Spark itself picks is defined.
UNTIED = {text: text for text in ("max_by(t, n)", "min_by(d, n)", "max_by(y, n)", "min_by(ts, n)", "max_by(b, n)")}
UNTIED |= {
    "first(t)": "min_by(t, ts)",
    "last_value(d)": "max_by(d, ts)",
    "last(n % 5)": "max_by(n % 5, ts)",
    "max_by(k, ts)": "max_by(k, ts)",
}


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_picks_equal_spark_where_spark_has_one_answer(frame: DataFrame, placement: str) -> None:
    equal_to_sql(frame, UNTIED, placement)


def struct(function: str, value: str, by: str) -> str:
    return f"{function}(struct({by} AS y, {value} AS x)) FILTER (WHERE {by} IS NOT NULL)"


TIED = {
    f"{function}_by({value}, {by})": f"({struct(function, value, by)}).x"
    for function in ("min", "max")
    for value, by in (("t", "few"), ("d", "y"), ("few", "t"), ("b", "d"), ("y", "b"), ("t", "date_trunc('minute', ts)"))
}


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_ties_are_decided_by_the_value(frame: DataFrame, placement: str) -> None:
    equal_to_sql(frame, TIED, placement)


def test_picks_by_a_time_that_is_not_a_timestamp(spark: SparkSession) -> None:
    numbers = spark.range(200).selectExpr("id * 150 - 9000 AS ms", "pmod(id * 37, 200) AS n")
    loom = Loom(spark)
    loom.stream("s", numbers, time="ms", unit="ms")
    loom.query("q", "SELECT first(n) AS a, last(n) AS b FROM s [RANGE 9 seconds SLIDE 4 seconds]")
    rows = loom.run()["q"].collect()
    for row in rows:
        within = [tuple_ for tuple_ in numbers.collect() if row[0].timestamp() <= tuple_.ms / 1000 < row[1].timestamp()]
        assert (row.a, row.b) == (min(within)[1], max(within)[1])
    assert loom.verify("q")


def test_verification_decides_ties_as_the_semantics_do(frame: DataFrame) -> None:
    loom = woven(frame, f"SELECT k, max_by(t, few) AS a, min_by(d, y) AS b, first(t) AS c {WINDOW}")
    assert loom.verify("q")


FILTERS = (
    "y > 0",
    "b",
    "NOT b",
    "few = 1 OR y IS NULL",
    "n < 0",
    "n >= 0",
    "b AND NULL",
    "t LIKE 't%' AND few IN (0, NULL)",
)
FILTERED = {
    text: text for where in FILTERS for text in (f"count(*) FILTER (WHERE {where})", f"sum(n) FILTER (WHERE {where})")
}
FILTERED |= {
    text: text
    for text in (
        "count(t) FILTER (WHERE b)",
        "avg(d) FILTER (WHERE few > 1)",
        "max(t) FILTER (WHERE b)",
        "bool_and(y > 1) FILTER (WHERE few > 1)",
        "max_by(t, n) FILTER (WHERE few > 1)",
        "sum(n) FILTER (WHERE b) / sum(n)",
        "if(count(*) FILTER (WHERE b) > 3, min(n) FILTER (WHERE NOT b), NULL)",
    )
}
FILTERED |= {
    "count(*) FILTER (WHERE NULL)": "count(*) FILTER (WHERE FALSE)",
    "last(d) IGNORE NULLS": "max_by(d, ts) FILTER (WHERE d IS NOT NULL)",
    "first(t) FILTER (WHERE b)": "min_by(t, ts) FILTER (WHERE b)",
}


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_filters_equal_spark(frame: DataFrame, placement: str) -> None:
    equal_to_sql(frame, FILTERED, placement)


def test_what_a_filter_leaves_out_is_not_evaluated(frame: DataFrame) -> None:
    with settings(frame.sparkSession, spark__sql__ansi__enabled="true"):
        equal_to_sql(frame, {text: text for text in ("max(n DIV few) FILTER (WHERE few <> 0)",)})


def test_filtered_aggregates_are_verified_as_spark_filters_them(frame: DataFrame) -> None:
    loom = woven(
        frame,
        "SELECT k, var_pop(y) FILTER (WHERE y < 9) AS a, avg(y) FILTER (WHERE NOT b) AS b,"
        f" count(*) FILTER (WHERE b) AS c, max_by(t, few) FILTER (WHERE b) AS d {WINDOW}"
        " HAVING count(*) FILTER (WHERE b) > 2",
    )
    assert loom.verify("q")


def test_one_native_scan_feeds_picks_and_filters_of_several_predicates_and_groupings(frame: DataFrame) -> None:
    loom = Loom(frame.sparkSession)
    loom.stream("s", frame, time="ts")
    asked = "last(t) AS a, max_by(d, few) AS b, min_by(y, n) FILTER (WHERE b) AS c, sum(n) FILTER (WHERE y > 0) AS d"
    for number, (where, grouping) in enumerate(
        [("", ""), ("WHERE b", ""), ("WHERE n > 99", " GROUP BY k"), ("", " GROUP BY few")]
    ):
        loom.query(
            f"q{number}", f"SELECT {asked} FROM s [RANGE 20 seconds SLIDE {number + 5} seconds] {where}{grouping}"
        )
    results = loom.run(intake="native")
    for name in loom.queries:
        assert loom.verify(name, results)
