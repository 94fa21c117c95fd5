"""Catalogs of everything at once equal DuckDB's answers, row by row: random ones, the bench's, one of recorded data.

`WINDLOOM_SEEDS=5` asks for more random catalogs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from bench.bids import unlike_queries, write_bids

from support.aggregate_texts import exact_aggregates
from support.duck import assert_equals_duckdb, widened
from support.frames import frame_of, table_of
from support.predicates import COLUMNS, Grammar, random_row
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windloom.engine import Results
    from windloom.engine.handle import Handle

INTAKES = ["woven", "native"]
#: What only the woven intake takes in.
HOLISTIC = ("DISTINCT", "median(", "quantile(", "approx_")
SEEDS = range(int(os.environ.get("WINDLOOM_SEEDS", "1")))
#: Two thirds of an hour in three files, which are three rounds of a stream.
BIDS = {"events": 5000, "per_second": 2, "per_file": 1700}
QUERIES, TUPLES, SECONDS = 12, 1500, 200

_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_FIRST = datetime(1969, 12, 31, 23, 58, tzinfo=UTC)  # ticks on both sides of zero
_GROUPINGS = ["", "p", "s, p", "a % 2 AS m", "s", "upper(s) AS u, p"]
_NUMBERS = ["a", "b", "d", "length(s)", "CAST(a AS DOUBLE) / 8", "if(p, a, -1)"]
_VALUES = [*_NUMBERS, "x", "f", "s", "p", "day", "ts", "upper(s)"]
_HAVINGS = ["", "", " HAVING count(*) > 3", " HAVING sum(b) > 0 OR max(s) IS NULL"]


@pytest.fixture
def base() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def ask(loom: Loom, texts: Iterable[str], intake: str) -> None:
    """The queries that the intake can answer."""
    for number, text in enumerate(texts):
        if intake == "woven" or not any(word in text for word in HOLISTIC):
            loom.query(f"q{number}", text)


def check(base: duckdb.DuckDBPyConnection, loom: Loom, results: Results | Handle, fewest: int) -> None:
    """Every query, from the table or view that has the stream's name."""
    rows = 0
    for query in loom.queries.values():
        stream = query.stream
        rows += assert_equals_duckdb(base, stream, query, loom.streams[stream], results.arrow(query.name))
    assert rows >= fewest


def random_window(rng: random.Random) -> str:
    """Slides that divide the range, that do not, and that leave gaps."""
    slide = rng.choice([5, 10, 12, 15, 40])
    length = rng.choice([slide * rng.randint(1, 4), rng.randint(1, 2 * slide), max(1, slide // 3)])
    offset = rng.choice(["", f" OFFSET {rng.randint(-9, 9)} seconds", " OFFSET 1 ms"])
    return f"[RANGE {length} seconds SLIDE {slide} seconds{offset}]"


def random_aggregate(rng: random.Random, condition: str) -> str:
    number, value, other = rng.choice(_NUMBERS), rng.choice(_VALUES), rng.choice(_VALUES)
    text = rng.choice(exact_aggregates(rng, number, value, other))
    return text + rng.choice(["", "", f" FILTER (WHERE {condition})"])


def random_output(rng: random.Random, condition: str) -> str:
    aggregate = random_aggregate(rng, condition)
    return rng.choice(
        [
            aggregate,
            aggregate,
            aggregate,
            "max(b) - min(a)",
            "sum(b) / count(*)",
            f"coalesce(sum(a) FILTER (WHERE {condition}), 0) + 1",
            "CASE WHEN count(*) > 5 THEN avg(a) ELSE -1 END",
            f"{aggregate} IS NULL",
        ]
    )


def random_query(rng: random.Random, grammar: Grammar) -> str:
    grouping = rng.choice(_GROUPINGS)
    outputs = [f"{random_output(rng, grammar.predicate(1))} AS o{i}" for i in range(rng.randint(1, 3))]
    head = f"{grouping}, " if grouping else ""
    by = ", ".join(item.split(" AS ")[0] for item in grouping.split(", ")) if grouping else ""
    tail = f" GROUP BY {by}" if by else ""
    where = rng.choice(["", f" WHERE {grammar.predicate()}"])
    return f"SELECT {head}{', '.join(outputs)} FROM events {random_window(rng)}{where}{tail}{rng.choice(_HAVINGS)}"


def random_tuples(rng: random.Random) -> list[tuple[Any, ...]]:
    times = [rng.randrange(SECONDS * 1000) for _ in range(TUPLES)]  # some tie: then values decide what is first
    return [(_FIRST + timedelta(milliseconds=milliseconds), *random_row(rng.choice).values()) for milliseconds in times]


@pytest.mark.parametrize("intake", INTAKES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_catalog_equals_duckdb(
    spark: SparkSession, base: duckdb.DuckDBPyConnection, seed: int, intake: str
) -> None:
    rng = random.Random(seed)
    tuples, grammar = random_tuples(rng), Grammar(rng.choice)
    loom = Loom(spark)
    loom.stream("events", frame_of(spark, tuples, _SCHEMA).repartition(3), time="ts")
    ask(loom, [random_query(rng, grammar) for _ in range(QUERIES)], intake)
    base.register("events", widened(table_of(tuples, _SCHEMA)))
    check(base, loom, loom.run(intake=intake), fewest=100)


@pytest.mark.parametrize("intake", INTAKES)
@pytest.mark.parametrize("mixed", [False, True], ids=["plain", "mixed"])
def test_the_catalog_of_the_bench_equals_duckdb(
    spark: SparkSession, base: duckdb.DuckDBPyConnection, tmp_path: Path, mixed: bool, intake: str
) -> None:
    write_bids(tmp_path, **BIDS)
    loom = Loom(spark)
    loom.stream("bids", spark.read.parquet(str(tmp_path)), time="ts")
    ask(loom, [query.cql for query in unlike_queries(12, mixed)], intake)
    view(base, "bids", tmp_path / "*.parquet")
    check(base, loom, loom.run(intake=intake), fewest=1000)


@pytest.mark.parametrize("intake", INTAKES)
def test_the_catalog_of_the_bench_equals_duckdb_on_a_stream(
    spark: SparkSession, base: duckdb.DuckDBPyConnection, tmp_path: Path, intake: str
) -> None:
    folder = tmp_path / "in"
    write_bids(folder, **BIDS)
    schema = spark.read.parquet(str(folder)).schema
    bids = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    loom = Loom(spark)
    loom.stream("bids", bids, time="ts")
    ask(loom, [query.cql for query in unlike_queries(12, mixed=True)], intake)
    places = {"checkpoint": tmp_path / "checkpoint", "trigger": {"availableNow": True}}
    handle = loom.start("memory", **places, finish=True, intake=intake)
    assert handle.await_termination(600)
    view(base, "bids", folder / "*.parquet")
    check(base, loom, handle, fewest=1000)


def view(base: duckdb.DuckDBPyConnection, name: str, files: Path) -> None:
    base.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}')")


RECORDED = [
    "SELECT status, count(*) AS n, sum(bytes) AS b, avg(bytes) AS m FROM logs [RANGE 1 hour SLIDE 7 minutes]"
    " GROUP BY status",
    "SELECT method, max(bytes) AS b, min(path) AS p, count(DISTINCT host) AS h FROM logs"
    " [RANGE 10 minutes SLIDE 1 hour] GROUP BY method",
    "SELECT host, last(path) AS l, max_by(path, bytes) AS m FROM logs [RANGE 2 hours SLIDE 1 hour OFFSET 20 minutes]"
    " WHERE status = 200 GROUP BY host HAVING count(*) > 3",
    "SELECT median(bytes) AS m, stddev(bytes) AS d, count(*) FILTER (WHERE bytes IS NULL) / count(*) AS share"
    " FROM logs [TUMBLE 30 minutes]",
]


@pytest.mark.parametrize("intake", INTAKES)
def test_a_recorded_stream_with_nulls_and_disorder_equals_duckdb(
    spark: SparkSession, base: duckdb.DuckDBPyConnection, shared_data: Path, intake: str
) -> None:
    file = shared_data / "http_logs" / "elastic_apache_logs.parquet"
    loom = Loom(spark)
    loom.stream("logs", spark.read.parquet(str(file)), time="ts")
    ask(loom, RECORDED, intake)
    view(base, "logs", file)
    check(base, loom, loom.run(intake=intake), fewest=1000)
