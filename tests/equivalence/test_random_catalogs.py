"""Random catalogs equal Spark's own window(), row for row: every strategy, slicing, technique and placement.

Every combination is tried on one of three catalogs in turn; `WINDLOOM_SEEDS=20` tries each on twenty. A failing seed is
named in the test's id.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from support.frames import frame_of
from support.streams import SCHEMA, random_query, random_rows
from support.truths import spark_truth
from windloom import Loom
from windloom.kernels.techniques.registry import TECHNIQUES
from windloom.model.aggregate import Property
from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.slicing.slicings import SLICINGS
from windloom.spark.verify.verify import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOGS, SEEDS = 3, int(os.environ.get("WINDLOOM_SEEDS", "1"))
QUERIES = 9


class Case:
    """A stream, a catalog, and what Spark answers; Spark is asked once for all combinations."""

    def __init__(self, spark: SparkSession, seed: int) -> None:
        rng = random.Random(seed)
        frame = frame_of(spark, random_rows(seed, 160), SCHEMA).repartition(3).persist()
        self.loom = Loom(spark)
        self.loom.stream("s", frame, time="ts")
        for number in range(QUERIES):
            self.loom.query(f"q{number}", random_query(rng))
        self.expected = spark_truth(self.loom, {"s": frame})

    def check(self, results: object) -> None:
        for name, query in self.loom.queries.items():
            found: pa.Table = results.arrow(name)  # type: ignore[attr-defined]
            outcome = compare(query, self.expected[name], found)
            assert outcome.ok, f"{query.text}\n{outcome}"
            names = ["window_start", "window_end", *(g.name for g in query.group_by), *(o.name for o in query.outputs)]
            assert found.column_names == names
            assert [_plain(kind) for kind in found.schema.types] == [
                _plain(kind) for kind in self.expected[name].schema.types[: len(names)]
            ], query.text


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_large_string(kind) else kind


@pytest.fixture(scope="module")
def cases() -> dict[int, Case]:
    return {}


@pytest.fixture
def case(request: pytest.FixtureRequest, spark: SparkSession, cases: dict[int, Case]) -> Case:
    """Each catalog is made once."""
    seed = request.param
    if seed not in cases:
        cases[seed] = Case(spark, seed)
    return cases[seed]


def on_seeds(names: str, combinations: Sequence[tuple[str, ...]]) -> pytest.MarkDecorator:
    made = [(i % CATALOGS + seed, *combination) for i, combination in enumerate(combinations) for seed in range(SEEDS)]
    cases = [pytest.param(*made_case, id="-".join([f"seed{made_case[0]}", *made_case[1:]])) for made_case in made]
    return pytest.mark.parametrize(f"case, {names}", cases, indirect=["case"])


#: Every strategy, and every slicing with the extremes and what lies between.
ON_DRIVER = [(strategy, "pairs") for strategy in STRATEGIES]
ON_DRIVER += [
    (strategy, slicing)
    for strategy in ("no_share", "shared", "weave_share")
    for slicing in SLICINGS
    if slicing != "pairs"
]


@on_seeds("strategy, slicing", ON_DRIVER)
def test_every_strategy_and_slicing_on_the_driver(case: Case, strategy: str, slicing: str) -> None:
    case.check(case.loom.run(strategy, slicing=slicing, placement="driver"))


@on_seeds("strategy, slicing", [("weave_share", "pairs"), ("no_share", "cutty"), ("shared", "panes")])
def test_the_same_rows_on_executors(case: Case, strategy: str, slicing: str) -> None:
    results = case.loom.run(strategy, slicing=slicing, placement="executors", buckets=3)
    case.check(results)


@on_seeds("technique", [(name,) for name, known in TECHNIQUES.items() if Property.ASSOCIATIVE in known.needs])
def test_every_technique_that_answers_all_aggregates(case: Case, technique: str) -> None:
    case.check(case.loom.run("shared", technique=technique, placement="driver"))
