"""Random joins, beside plain queries that share their sides, equal Spark's own SQL: in a batch and cut into rounds.

`WINDLOOM_SEEDS=5` asks for more catalogs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.compare_joins import assert_equal_ends
from support.frames import table_of
from support.join_catalogs import STREAMS, Drawing, random_rows
from support.join_texts import Asked
from support.spark_joins import SCHEMA, WITHOUT_EQUAL, frames_of, spark_rows
from support.truths import interpreted, spark_truth
from windloom import Loom
from windloom.errors import WindloomError
from windloom.model import Query
from windloom.spark.verify.verify import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(int(os.environ.get("WINDLOOM_SEEDS", "1")))
JOINS, ROUNDS = 8, 3
PLAIN = {
    "by_key": "SELECT k, count(*) AS n, sum(i) AS total FROM s [RANGE 12 microseconds SLIDE 4 microseconds] GROUP BY k",
    "all": "SELECT max(x) AS high FROM t [RANGE 8 microseconds SLIDE 2 microseconds]",
}

Row = dict[str, Any]


@dataclass
class Case:
    loom: Loom
    asked: dict[str, Asked]
    rows: dict[str, list[Row]]
    by_text: dict[str, list[Row]]  # what Spark's SQL answers to the joins
    by_model: dict[str, pa.Table]  # what `verify` compares with

    def check(self, results: Any, queries: Mapping[str, Query] | None = None) -> None:
        for name, query in (queries or self.loom.queries).items():
            found = results.arrow(name)
            outcome = compare(query, self.by_model[name], found)
            assert outcome.ok, f"{query.text}\n{outcome}"
            if name in self.asked:
                found = found.set_column(1, "window_end", found["window_end"].cast(pa.int64()))
                described = self.asked[name].query(name)
                assert_equal_ends(described, self.rows, self.by_text[name], found.to_pylist(), without=WITHOUT_EQUAL)


def loom_of(spark: SparkSession, frames: dict[str, Any], texts: dict[str, str], delay: str = "0 seconds") -> Loom:
    loom = Loom(spark)
    for name, frame in frames.items():
        loom.stream(name, frame, time="tick", unit="us", delay=delay)
    for name, text in texts.items():
        loom.query(name, text)
    return loom


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed{seed}")
def case(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Case]:
    rng = random.Random(request.param)
    asked = {f"j{i}": Drawing(rng.choice).asked() for i in range(JOINS)}
    rows = {name: random_rows(rng, 40) for name in STREAMS}
    frames = {name: frame.persist() for name, frame in frames_of(spark, rows).items()}
    texts = {name: join.cql(style=rng.choice(["on", "comma", "exists", "full"])) for name, join in asked.items()}
    loom = loom_of(spark, frames, {**texts, **PLAIN})
    with interpreted(spark):
        by_text = {name: spark_rows(spark, join, rows) for name, join in asked.items()}
    by_model = spark_truth(loom, frames)
    yield Case(loom, asked, rows, by_text, by_model)
    for frame in frames.values():
        frame.unpersist()


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_batch_equals_spark(case: Case, placement: str) -> None:
    case.check(case.loom.run(placement=placement))


@pytest.mark.parametrize(("joins", "fold"), [("EAP10", "slice_matrix"), ("EAP01", "pairwise"), ("LAP", "recalculate")])
def test_every_plan_of_a_join_equals_spark(spark: SparkSession, case: Case, joins: str, fold: str) -> None:
    """Of the joins that each plan can answer."""
    frames = frames_of(spark, case.rows)
    possible = {}
    for name in case.asked:
        text = case.loom.queries[name].text
        try:
            loom_of(spark, frames, {name: text}).plan(joins=joins, fold=fold)
        except WindloomError:
            continue
        possible[name] = text
    if not possible and SEEDS.stop > 1:
        pytest.skip(f"none of the joins that were drawn can be answered by {joins} and {fold}")
    assert possible
    loom = loom_of(spark, frames, possible)
    case.check(loom.run(joins=joins, fold=fold), loom.queries)


def test_verify_says_so(case: Case) -> None:
    outcome = case.loom.verify("j0")
    assert outcome.ok, outcome
    assert outcome.rows == len(case.by_text["j0"])


def test_a_stream_equals_spark_wherever_its_rounds_are_cut(
    spark: SparkSession, case: Case, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rng = random.Random(request.node.name)
    frames = {}
    for name, rows in case.rows.items():
        cuts = [0, *sorted(rng.sample(range(1, len(rows)), ROUNDS - 1)), len(rows)]
        for number in range(ROUNDS):
            put(tmp_path / name, number, rows[cuts[number] : cuts[number + 1]])
        frames[name] = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / name))
    # No tuple is late: a delay of all the time there is keeps every window open up to the end.
    stream = loom_of(spark, frames, {name: query.text for name, query in case.loom.queries.items()}, "100 microseconds")
    handle = stream.start(
        "parquet",
        path=str(tmp_path / "out"),
        checkpoint=str(tmp_path / "c"),
        trigger={"availableNow": True},
        finish=True,
    )
    assert handle.await_termination(600)
    case.check(handle)


def put(folder: Path, number: int, rows: list[Row]) -> None:
    """One file, which is one round."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:03d}.parquet"
    pq.write_table(table_of([tuple(row.values()) for row in rows], SCHEMA), path)
    os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in order of their times
