"""Relations of both kinds equal Spark's own joins: in a batch, as a stream while they stay the same, round by round.

`WINDLOOM_SEEDS=5` asks for more catalogs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.compare_joins import assert_equal_ends
from support.files import put_round
from support.frames import frame_of
from support.join_catalogs import ATTACHED, RELATIONS, STREAMS, Drawing, random_rows, random_version
from support.join_texts import Asked
from support.spark_joins import SCHEMA, VERSION_SCHEMA, WITHOUT_EQUAL, frames_of, spark_rows
from support.truths import interpreted, spark_truth
from windloom import Loom
from windloom.spark.verify.verify import compare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEEDS = range(int(os.environ.get("WINDLOOM_SEEDS", "1")))
BOTH, JOINS, ROUNDS = [*RELATIONS, *ATTACHED], 6, 3
Row = dict[str, Any]


@dataclass
class Case:
    loom: Loom
    asked: dict[str, Asked]
    rows: dict[str, list[Row]]
    by_text: dict[str, list[Row]]  # what Spark's SQL answers
    by_model: dict[str, pa.Table]  # what `verify` compares with

    def check(self, results: Any) -> None:
        for name, query in self.loom.queries.items():
            found = results.arrow(name)
            outcome = compare(query, self.by_model[name], found)
            assert outcome.ok, f"{query.text}\n{outcome}"
            check_rows(self.asked[name], name, self.rows, self.by_text[name], found)


def check_rows(asked: Asked, name: str, rows: dict[str, list[Row]], wanted: list[Row], found: pa.Table) -> None:
    found = found.set_column(1, "window_end", found["window_end"].cast(pa.int64()))
    assert_equal_ends(asked.query(name), rows, wanted, found.to_pylist(), without=WITHOUT_EQUAL)


def loom_of(
    spark: SparkSession,
    streams: dict[str, DataFrame],
    relations: dict[str, DataFrame | Callable[[], DataFrame]],
    texts: dict[str, str],
    delay: str = "0 seconds",
) -> Loom:
    loom = Loom(spark)
    for name, frame in streams.items():
        loom.stream(name, frame, time="tick", unit="us", delay=delay)
    for name, given in relations.items():
        loom.relation(name, given, retroactive=name in RELATIONS)
    for name, text in texts.items():
        loom.query(name, text)
    return loom


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed{seed}")
def case(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Case]:
    rng = random.Random(f"relations {request.param}")
    asked = {f"j{i}": Drawing(rng.choice, relations=BOTH).asked() for i in range(JOINS)}
    rows = {name: random_rows(rng, 40) for name in STREAMS} | {name: random_version(rng.choice) for name in BOTH}
    frames = {name: frame.persist() for name, frame in frames_of(spark, rows).items()}
    streams, relations = ({name: frames[name] for name in names} for names in (STREAMS, BOTH))
    texts = {name: join.cql(style=rng.choice(["on", "comma", "exists", "full"])) for name, join in asked.items()}
    loom = loom_of(spark, streams, dict(relations), texts)
    with interpreted(spark):
        by_text = {name: spark_rows(spark, join, rows) for name, join in asked.items()}
    by_model = spark_truth(loom, frames)
    yield Case(loom, asked, rows, by_text, by_model)
    for frame in frames.values():
        frame.unpersist()


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_a_batch_equals_spark(case: Case, placement: str) -> None:
    case.check(case.loom.run(placement=placement))


def test_verify_says_so(case: Case) -> None:
    outcome = case.loom.verify("j0")
    assert outcome.ok, outcome
    assert outcome.rows == len(case.by_text["j0"])


def put_rounds(folder: Path, rows: dict[str, list[Row]], rng: random.Random, spark: SparkSession) -> dict[str, Any]:
    """The tuples of every stream, cut into files of which each is one round."""
    frames = {}
    for name in STREAMS:
        cuts = [0, *sorted(rng.sample(range(1, len(rows[name])), ROUNDS - 1)), len(rows[name])]
        for number in range(ROUNDS):
            put_round(folder / name, number, rows[name][cuts[number] : cuts[number + 1]], SCHEMA)
        frames[name] = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
    return frames


def test_while_relations_stay_the_same_a_stream_answers_what_a_batch_does(
    spark: SparkSession, case: Case, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    frames = put_rounds(tmp_path, case.rows, random.Random(request.node.name), spark)
    versions = {
        name: frame_of(spark, [tuple(row.values()) for row in case.rows[name]], VERSION_SCHEMA) for name in BOTH
    }
    texts = {name: query.text for name, query in case.loom.queries.items()}
    # No tuple is late: a delay of all the time there is keeps every window open up to the end.
    stream = loom_of(spark, frames, dict(versions), texts, "100 microseconds")
    handle = stream.start("memory", trigger={"availableNow": True}, finish=True)
    assert handle.await_termination(600)
    case.check(handle)
    assert {told["version"] for told in handle.progress.relations.values()} == {1}


TUMBLING = "FROM s [TUMBLE 10 microseconds] a"
BY_ROUND = {
    "inner": (f"SELECT b.k, sum(a.i) AS total, count(*) AS n {TUMBLING} JOIN r b ON a.k = b.k GROUP BY b.k", "r"),
    "left": (f"SELECT b.i, sum(a.n) AS total, count(*) AS n {TUMBLING} LEFT JOIN r b ON a.k = b.k GROUP BY b.i", "r"),
    "came": (f"SELECT b.i, sum(a.n) AS total, count(*) AS n {TUMBLING} LEFT JOIN p b ON a.k = b.k GROUP BY b.i", "p"),
}


def test_every_round_joins_the_version_that_it_logged(spark: SparkSession, tmp_path: Path) -> None:
    """Windows of the last round see its version of `r`; tuples keep the version of `p` that they came with."""
    rng = random.Random(5)
    parts = [random_rows(rng, 15, 10 * n, 10 * n + 9) for n in range(ROUNDS)]
    versions = [random_version(rng.choice, 6) for _ in range(ROUNDS + 1)]
    frames = [
        frame_of(spark, [tuple(row.values()) for row in version_rows], VERSION_SCHEMA) for version_rows in versions
    ]
    for number, rows in enumerate(parts):
        put_round(tmp_path / "s", number, rows, SCHEMA)
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "s"))
    seen: list[Any] = []

    def current() -> DataFrame:
        return frames[len(seen)]

    texts = {name: text for name, (text, _) in BY_ROUND.items()}
    loom = loom_of(spark, {"s": source}, {"r": current, "p": current}, texts)
    options: dict[str, Any] = {"trigger": {"availableNow": True}, "finish": True}
    handle = loom.start("memory", progress=seen.append, **options)
    assert handle.await_termination(600)
    # A round closes the windows that end up to its last tick, so that of round n closes in round n + 1, or at the end.
    with interpreted(spark):
        for number, rows in enumerate(parts):
            frame_of(spark, [tuple(row.values()) for row in rows], SCHEMA).createOrReplaceTempView("s")
            closed = seen[number + 1].relations["r"]
            assert (closed["version"], closed["round"], closed["changed"]) == (number + 2, number + 1, True)
            for name, (text, relation) in BY_ROUND.items():
                version = frames[number + 1 if relation == "r" else number]
                version.createOrReplaceTempView(relation)
                plain = text.replace(" [TUMBLE 10 microseconds]", "")
                wanted = sorted(map(repr, spark.sql(plain).collect()))
                rows_of = handle[name].where(f"unix_micros(window_end) = {10 * (number + 1)}")
                assert sorted(map(repr, rows_of.drop("window_start", "window_end").collect())) == wanted, name
