"""Holistic aggregates equal Spark's own, row for row: with plain ones beside them, in every slicing and placement."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from support.streams import SCHEMA, random_rows
from support.truths import spark_truth
from windloom import Loom
from windloom.spark.verify.verify import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(int(os.environ.get("WINDLOOM_SEEDS", "2")))
QUERIES = 6

_NUMBERS = ["x", "f", "n", "i", "d", "w", "x * 2 + i", "length(t)"]
_OTHERS = ["b", "t", "day", "ts", "upper(t)", "k"]
_PLAIN = ["count(*)", "sum(x)", "max(t)", "avg(d)", "var_pop(i)", "count(n)"]
_PREDICATES = ["", "", "WHERE x > 0", "WHERE b", "WHERE i > 10000"]
_GROUPINGS = ["", "k", "k, g", "day"]


def random_aggregate(rng: random.Random) -> str:
    number = rng.choice(_NUMBERS)
    anything = rng.choice([number, *_OTHERS])
    return rng.choice(
        [
            f"count(DISTINCT {anything})",
            f"top({rng.randint(1, 4)}, {anything})",
            f"median({number})",
            f"quantile({number}, {rng.choice([0, 0.1, 0.333, 0.95, 1])})",
            f"mode({anything})",
            f"collect_set({anything})",
            f"collect_list({anything})",
            f"approx_percentile({number}, {rng.choice([0, 0.1, 0.333, 0.95, 1])})",
            f"frequent({rng.randint(1, 3)}, {anything})",
            f"approx_count_distinct({anything})",
            f"approx_quantile({number}, {rng.choice([0, 0.5, 0.9])})",
            f"approx_top({rng.randint(1, 3)}, {anything})",
        ]
    )


def random_query(rng: random.Random) -> str:
    slide = rng.choice([1, 3, 5, 10, 60])
    length = rng.choice([slide * rng.randint(1, 6), rng.randint(1, 4 * slide), max(1, slide // 3)])
    chosen = [random_aggregate(rng) for _ in range(rng.randint(1, 2))]
    chosen += rng.sample(_PLAIN, rng.choice([0, 0, 1, 5]))
    outputs = ", ".join(f"{text} AS o{i}" for i, text in enumerate(chosen))
    grouping = rng.choice(_GROUPINGS)
    head, tail = (f"{grouping}, ", f" GROUP BY {grouping}") if grouping else ("", "")
    having = rng.choice(["", "", " HAVING count(DISTINCT i) > 1"])
    window = f"[RANGE {length} seconds SLIDE {slide} seconds OFFSET {rng.randint(-9, 9)} seconds]"
    return f"SELECT {head}{outputs} FROM s {window} {rng.choice(_PREDICATES)}{tail}{having}"


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed{seed}")
def case(request: pytest.FixtureRequest, spark: SparkSession) -> tuple[Loom, dict[str, object]]:
    rng = random.Random(request.param)
    frame = spark.createDataFrame(random_rows(request.param, 160), SCHEMA).repartition(3).persist()
    loom = Loom(spark)
    loom.stream("s", frame, time="ts")
    for number in range(QUERIES):
        loom.query(f"q{number}", random_query(rng))
    return loom, spark_truth(loom, {"s": frame})


def check(case: tuple[Loom, dict[str, object]], results: object) -> None:
    loom, expected = case
    for name, query in loom.queries.items():
        outcome = compare(query, expected[name], results.rows(name))  # type: ignore[attr-defined, arg-type]
        assert outcome.ok, f"{query.text}\n{outcome}"


@pytest.mark.parametrize(("strategy", "slicing"), [("auto", "pairs"), ("no_share", "panes"), ("shared", "cutty")])
def test_on_the_driver(case: tuple[Loom, dict[str, object]], strategy: str, slicing: str) -> None:
    check(case, case[0].run(strategy, slicing=slicing, placement="driver"))


def test_on_executors(case: tuple[Loom, dict[str, object]]) -> None:
    results = case[0].run("shared", placement="executors", buckets=3)
    check(case, results)
