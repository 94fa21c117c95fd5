"""Random catalogs of everything at once equal Spark's own SQL, in a batch and over random cuts into rounds.

Predicates come from a grammar with NULLs and three-valued logic, no two alike; windows are of every kind, aggregates of
every family. `WINDLOOM_PREDICATES=200` asks for more of them, `WINDLOOM_SEEDS=5` for more catalogs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.aggregate_texts import exact_aggregates
from support.frames import frame_of, table_of
from support.predicates import COLUMNS, Grammar, random_row
from support.truths import spark_truth
from windloom import Loom
from windloom.spark.verify.verify import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(int(os.environ.get("WINDLOOM_SEEDS", "1")))
PREDICATES = int(os.environ.get("WINDLOOM_PREDICATES", "12"))
TUPLES, SECONDS, ROUNDS = 240, 120, 3

_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_GROUPINGS = ["", "p", "s, p", "a % 2 AS m", "s"]
_NUMBERS = ["a", "b", "d", "length(s)", "CAST(a AS DOUBLE) / 8", "if(p, a, -1)"]
_VALUES = [*_NUMBERS, "x", "f", "s", "p", "day", "ts", "upper(s)"]

Case = tuple[Loom, list[tuple[Any, ...]], dict[str, pa.Table]]


def random_window(rng: random.Random) -> str:
    slide = rng.choice([5, 10, 12, 15, 40])
    length = rng.choice([slide * rng.randint(1, 4), rng.randint(1, 2 * slide)])
    count = rng.choice([10, 20, 35])
    return rng.choice(
        [
            f"[RANGE {length} seconds SLIDE {slide} seconds OFFSET {rng.randint(-9, 9)} seconds]",
            f"[RANGE {length} seconds SLIDE {slide} seconds]",
            f"[TUMBLE {slide} seconds]",
            f"[LANDMARK SLIDE {slide} seconds]",
            f"[UNTIL NOW SLIDE {slide} seconds OFFSET 3 seconds]",
            f"[CUMULATE {slide * rng.randint(1, 4)} seconds SLIDE {slide} seconds OFFSET {rng.randint(-9, 9)} seconds]",
            f"[ROWS {count} SLIDE {rng.choice([10, 20])}]",
            f"[SESSION GAP {rng.choice([1, 2, 5])} seconds]",
            f"[PARTITION BY p ROWS {count} SLIDE {rng.choice([5, 15])}]",
        ]
    )


def random_aggregate(rng: random.Random, condition: str) -> str:
    number, value, other = rng.choice(_NUMBERS), rng.choice(_VALUES), rng.choice(_VALUES)
    k = rng.randint(1, 3)
    text = rng.choice(
        [
            *exact_aggregates(rng, number, value, other),
            f"top({k}, {value})",
            f"frequent({k}, {value})",
            f"approx_count_distinct({value})",
            f"approx_quantile({number}, 0.9)",
            f"approx_top({k}, {value})",
        ]
    )
    return text + rng.choice(["", "", "", f" FILTER (WHERE {condition})"])


def random_query(rng: random.Random, predicate: str, condition: str) -> str:
    window, grouping = random_window(rng), rng.choice(_GROUPINGS)
    if "PARTITION" in window:
        grouping = rng.choice(["p", "s, p"])
    chosen = [random_aggregate(rng, condition) for _ in range(rng.randint(1, 3))]
    if any(word in window for word in ("LANDMARK", "UNTIL NOW", "CUMULATE", "SESSION")):  # FREQUENT is refused there
        chosen = [text.replace("frequent", "top") for text in chosen]
    outputs = ", ".join(f"{text} AS o{i}" for i, text in enumerate(chosen))
    head = f"{grouping}, " if grouping else ""
    tail = f" GROUP BY {grouping.removesuffix(' AS m')}" if grouping else ""
    having = rng.choice(["", "", " HAVING count(*) > 1"])
    return f"SELECT {head}{outputs} FROM events {window} WHERE {predicate}{tail}{having}"


def random_tuples(rng: random.Random) -> list[tuple[Any, ...]]:
    """In the order in which they come: a little out of order, no two of one time (they have no order, then)."""
    times = rng.sample(range(SECONDS * 1000), TUPLES)
    made = [(_FIRST + timedelta(milliseconds=milliseconds), *random_row(rng.choice).values()) for milliseconds in times]
    return sorted(made, key=lambda row: row[0] + timedelta(seconds=rng.choice([0, 0, 0, 2])))


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed{seed}")
def case(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Case]:
    rng = random.Random(request.param)
    grammar, tuples = Grammar(rng.choice), random_tuples(rng)
    frame = frame_of(spark, tuples, _SCHEMA).repartition(3).persist()
    loom, predicates = Loom(spark), dict[str, None]()
    loom.stream("events", frame, time="ts")
    while len(predicates) < PREDICATES:
        predicate = grammar.predicate()
        if predicate not in predicates:
            loom.query(f"q{len(predicates)}", random_query(rng, predicate, grammar.predicate(1)))
            predicates[predicate] = None
    yield loom, tuples, spark_truth(loom, {"events": frame})
    frame.unpersist()


def check(case: Case, results: Any) -> None:
    loom, _, expected = case
    for name, query in loom.queries.items():
        outcome = compare(query, expected[name], results.rows(name))
        assert outcome.ok, f"{query.text}\n{outcome}"


def test_a_batch_equals_spark(case: Case) -> None:
    check(case, case[0].run(placement="driver"))


def test_a_stream_equals_spark_wherever_its_rounds_are_cut(
    spark: SparkSession, case: Case, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    loom, tuples, _ = case
    rng = random.Random(request.node.name)
    cuts = [0, *sorted(rng.sample(range(1, TUPLES), ROUNDS - 1)), TUPLES]
    source = tmp_path / "in"
    for number in range(ROUNDS):
        put(source, number, tuples[cuts[number] : cuts[number + 1]])
    frame = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
    stream = Loom(spark)
    stream.stream("events", frame, time="ts", delay="3 seconds")
    for name, query in loom.queries.items():
        stream.query(name, query.text)
    handle = stream.start(
        "parquet",
        path=str(tmp_path / "out"),
        checkpoint=str(tmp_path / "c"),
        trigger={"availableNow": True},
        finish=True,
    )
    assert handle.await_termination(600)
    assert sum(progress.late_partly + progress.late_dropped for progress in handle.recent_progress) == 0
    check(case, handle)


def put(folder: Path, number: int, rows: list[tuple[Any, ...]]) -> None:
    """One file, which is one round."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:03d}.parquet"
    pq.write_table(table_of(rows, _SCHEMA), path)
    os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in order of their times
