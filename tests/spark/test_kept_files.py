"""Tuples that are kept of Parquet files: the driver reads them while Spark makes partials, and they are the same."""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windloom import Loom
from windloom.expressions.arithmetic import DeclinedError
from windloom.spark import kept_tuples, scan
from windloom.spark.projection import projected
from windloom.weave.files import whole_tuples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MIDNIGHT = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
_SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("x", pa.float64()),
        ("n", pa.int64()),
        ("d", pa.date32()),
        ("price", pa.decimal128(12, 2)),
        ("flag", pa.bool_()),
    ]
)
_DDL = "ts timestamp, k string, x double, n bigint, d date, price decimal(12,2), flag boolean"
_ALL = {"q": "SELECT k, sum(n) AS s, max(x) AS m FROM s [RANGE 20 seconds SLIDE 5 seconds] GROUP BY k"}
_SOME = {
    "q": "SELECT k, sum(n) AS s FROM s [RANGE 20 seconds SLIDE 5 seconds] WHERE n > 100 GROUP BY k",
    "rows": "SELECT k, d FROM s [TUMBLE 10 seconds] WHERE n % 3 = 0 AND k <> 'b'",
}


def tuples_of(rng: random.Random, number: int, first: datetime.date) -> list[tuple[Any, ...]]:
    """A round of tuples, of every type, with NULLs in all columns but the time."""

    def some(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    return [
        (
            _MIDNIGHT + datetime.timedelta(seconds=10 * number, microseconds=rng.randrange(10_000_000)),
            some(rng.choice("abc")),
            some(rng.choice([0.5, -0.0, 2.0**40, float("inf")])),
            some(rng.randrange(-5, 300)),
            some(first + datetime.timedelta(days=rng.randrange(1000))),
            some(Decimal(rng.randrange(10_000)) / 100),
            some(rng.random() < 0.5),
        )
        for _ in range(200)
    ]


def put(folder: Path, number: int, rows: list[tuple[Any, ...]], **options: Any) -> None:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)]
    pq.write_table(pa.table(columns, schema=_SCHEMA), folder / f"{number:03d}.parquet", **options)
    os.utime(folder / f"{number:03d}.parquet", (1_700_000_000 + number,) * 2)


def follow(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(_DDL).option("maxFilesPerTrigger", 2).parquet(str(folder))


def kept_by(
    spark: SparkSession,
    folder: Path,
    queries: Mapping[str, str],
    made: Callable[[DataFrame], DataFrame],
    **options: Any,
) -> tuple[list[tuple[Any, ...]], dict[str, list[tuple[Any, ...]]]]:
    """What a stream of the files keeps, and the rows of its queries."""
    loom = Loom(spark)
    loom.stream("s", made(follow(spark, folder / "in")), time="ts")
    for name, text in queries.items():
        loom.query(name, text)
    handle = loom.start("memory", checkpoint=folder / "checkpoint", **options)
    handle.process_all_available()
    tuples = pa.concat_tables([pq.read_table(file) for file in (folder / "checkpoint" / "tuples").rglob("*.parquet")])
    answers = {name: sorted(map(tuple, map(dict.values, handle.arrow(name).to_pylist())), key=repr) for name in queries}
    handle.stop()
    return sorted((tuple(row.values()) for row in tuples.to_pylist()), key=repr), answers


class Watched:
    """Counts what the driver read, and which columns came over from Spark."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses, self.read, self.came = refuses, 0, set[int]()
        self._scope = ExitStack()

    def whole(self, *given: Any) -> pa.Table:
        if self.refuses:
            raise DeclinedError("a test")
        table = whole_tuples(*given)
        self.read += table.num_rows
        return table

    def projected(self, scan: Any, *given: Any) -> DataFrame:
        self.came.add(len(scan.columns))
        return projected(scan, *given)

    def __enter__(self) -> Watched:
        self._scope.enter_context(patch.object(kept_tuples, "whole_tuples", self.whole))
        self._scope.enter_context(patch.object(scan, "projected", self.projected))
        return self

    def __exit__(self, *_: object) -> None:
        self._scope.close()


@pytest.mark.parametrize(
    ("queries", "options"), [(_ALL, {"keep_tuples": "1 day"}), (_SOME, {"keep_tuples": "1 day"}), (_SOME, {})]
)
def test_the_driver_keeps_what_spark_would_bring_over(
    spark: SparkSession, tmp_path: Path, queries: dict[str, str], options: dict[str, str]
) -> None:
    rng = random.Random(5)
    rounds = [tuples_of(rng, number, datetime.date(2020, 1, 1)) for number in range(4)]
    found = []
    for place, made in (("files", lambda frame: frame), ("spark", lambda frame: frame.where("ts IS NOT NULL"))):
        folder = tmp_path / place
        (folder / "in").mkdir(parents=True)
        for number, rows in enumerate(rounds):
            put(folder / "in", number, rows, row_group_size=70)
        with Watched() as watched:
            found.append(kept_by(spark, folder, queries, made, **options))
        if place == "files":
            assert watched.read > 0
            assert max(watched.came) <= 3  # columns that are only kept stay where they are
        else:
            assert watched.read == 0
    assert found[0] == found[1]
    if options:  # every tuple, as it was put
        every = [row for rows in rounds for row in rows]
        assert sorted((row[2:] for row in found[0][0]), key=repr) == sorted(every, key=repr)


@pytest.mark.parametrize("why", ["an old date", "a value", "a type", "a missing column"])
def test_what_only_spark_can_read_comes_over_from_spark(spark: SparkSession, tmp_path: Path, why: str) -> None:
    rng = random.Random(6)
    (tmp_path / "in").mkdir()
    first = datetime.date(1850, 1, 1) if why == "an old date" else datetime.date(2020, 1, 1)
    rounds = [tuples_of(rng, number, first) for number in range(2)]
    for number, rows in enumerate(rounds):
        put(tmp_path / "in", number, rows)
    file = tmp_path / "in" / "001.parquet"
    table = pq.read_table(file)
    if why == "a type":  # Spark reads it as a double
        pq.write_table(table.set_column(2, "x", table["x"].cast(pa.float32())), file)
    if why == "a missing column":
        pq.write_table(table.drop_columns(["flag"]), file)
    with Watched(refuses=why == "a value") as watched:
        kept, _ = kept_by(spark, tmp_path, _ALL, lambda frame: frame, keep_tuples="1 day")
    assert watched.read == 0
    every = [row for rows in rounds for row in rows]
    if why == "a missing column":
        every = [*rounds[0], *((*row[:-1], None) for row in rounds[1])]
    assert sorted((row[2:] for row in kept), key=repr) == sorted(every, key=repr)


@pytest.mark.parametrize("made", ["k, n, ts, x, d, price, flag", "ts, upper(k) AS k, x, n, d, price, flag"])
def test_a_stream_that_only_selects_columns_is_read_from_its_files(
    spark: SparkSession, tmp_path: Path, made: str
) -> None:
    rows = tuples_of(random.Random(7), 0, datetime.date(2020, 1, 1))
    (tmp_path / "in").mkdir()
    put(tmp_path / "in", 0, rows)
    with Watched() as watched:
        kept, _ = kept_by(spark, tmp_path, _ALL, lambda frame: frame.selectExpr(*made.split(", ")), keep_tuples="1 day")
    assert watched.read == (0 if "upper" in made else len(rows))
    assert len(kept) == len(rows)
    names = {value for row in kept for value in row if isinstance(value, str)}
    assert names == (set("ABC") if "upper" in made else set("abc"))
