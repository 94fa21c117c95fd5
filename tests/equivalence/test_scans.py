"""Queries of many predicates and groupings, fed by few scans, equal Spark's own answers."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.frames import frame_of
from support.predicates import COLUMNS, Grammar, random_row
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_GROUPINGS: list[tuple[str, ...]] = [(), ("p",), ("s", "p"), ("a % 2",), ("s",)]
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)

Answers = dict[tuple[Any, ...], tuple[Any, ...]]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    rng = random.Random(11)
    rows = [random_row(rng.choice) for _ in range(300)]
    timed = [(_FIRST + timedelta(seconds=rng.randrange(60)), *row.values()) for row in rows]
    return frame_of(spark, timed, _SCHEMA).repartition(3).persist()


def predicates(count: int) -> list[str]:
    """Some of them are true of every tuple or of none, or say the same in other words."""
    grammar = Grammar(random.Random(12).choice)
    return [
        *dict.fromkeys(grammar.predicate() for _ in range(count)),
        "1 = 1",
        "a > 3 AND a < 1",
        "a <> 0 AND b / a > 1",
    ]


def spark_answers(frame: DataFrame, asked: list[str], grouping: tuple[str, ...]) -> list[Answers]:
    """Of tumbling windows, for all predicates in one job."""
    from pyspark.sql import functions as F

    keys = [F.expr(key).alias(f"k{i}") for i, key in enumerate(grouping)]
    wanted = []
    for i, predicate in enumerate(asked):
        holds = f"({predicate}) IS TRUE"
        wanted += [F.expr(f"count_if({holds}) AS n{i}"), F.expr(f"sum(CASE WHEN {holds} THEN a END) AS t{i}")]
        wanted.append(F.expr(f"max(CASE WHEN {holds} AND p THEN b END) AS m{i}"))
    rows = frame.groupBy(F.window("ts", "10 seconds"), *keys).agg(*wanted).collect()
    found: list[Answers] = [{} for _ in asked]
    for row in rows:
        key = (row["window"].start, *(row[f"k{i}"] for i in range(len(grouping))))
        for i in range(len(asked)):
            if row[f"n{i}"]:
                found[i][key] = (row[f"n{i}"], row[f"t{i}"], row[f"m{i}"])
    return found


@pytest.mark.parametrize(("scans", "placement", "count"), [("auto", "driver", 40), ("together", "executors", 15)])
def test_predicates_and_groupings_of_all_kinds_equal_spark(
    spark: SparkSession, frame: DataFrame, scans: str, placement: str, count: int
) -> None:
    asked = predicates(count)
    loom = Loom(spark)
    loom.stream("events", frame, time="ts")
    places: list[tuple[str, int, tuple[str, ...]]] = []
    for i, predicate in enumerate(asked):
        grouping = _GROUPINGS[i % len(_GROUPINGS)]
        columns = ", ".join(f"{key} AS k{j}" for j, key in enumerate(grouping))
        text = f"SELECT {columns + ', ' if columns else ''}count(*) AS n, sum(a) AS t, max(b) FILTER (WHERE p) AS m "
        text += f"FROM events [TUMBLE 10 seconds] WHERE {predicate}"
        loom.query(f"q{i}", text + (f" GROUP BY {', '.join(grouping)}" if grouping else ""))
        places.append((f"q{i}", i, grouping))
    results = loom.run(scans=scans, placement=placement, shards=2 if placement == "executors" else None)
    expected = {grouping: spark_answers(frame, asked, grouping) for grouping in _GROUPINGS}
    for name, i, grouping in places:
        rows = [tuple(row.values()) for row in results.arrow(name).to_pylist()]
        # Spark hands instants over without their zone.
        found = {(row[0].replace(tzinfo=None), *row[2 : 2 + len(grouping)]): row[2 + len(grouping) :] for row in rows}
        truth = {(_instant(key[0]), *key[1:]): values for key, values in expected[grouping][i].items()}
        assert found == truth, asked[i]


def _instant(local: datetime) -> datetime:
    return local.astimezone(UTC).replace(tzinfo=None)


def test_an_argument_is_not_evaluated_where_no_query_wants_the_tuple(spark: SparkSession) -> None:
    frame = spark.sql("SELECT timestamp_seconds(id) AS ts, id AS n, id % 3 AS d FROM range(30)")
    loom = Loom(spark)
    loom.stream("events", frame, time="ts")
    loom.query("all", "SELECT count(*) AS n FROM events [TUMBLE 10 seconds]")
    loom.query("some", "SELECT n % d AS r, sum(n / d) AS q FROM events [TUMBLE 10 seconds] WHERE d <> 0 GROUP BY n % d")
    results = loom.run(scans="together")
    assert len(loom.plan(scans="together").scans) == 1
    assert loom.verify("some", results).ok
    assert loom.verify("all", results).ok
