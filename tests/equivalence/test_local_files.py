"""Files that the driver reads itself give the rows of Spark's own window(); what may differ is left to Spark.

`WINDLOOM_SEEDS=5` asks for more queries.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.frames import table_of
from support.predicates import COLUMNS, Grammar, random_row
from support.trades import settings
from support.truths import spark_truth
from windloom import Loom, WindloomError
from windloom.expressions import predicate_index
from windloom.expressions.arithmetic import DeclinedError
from windloom.plan.scans import WovenScan
from windloom.spark import scan as take
from windloom.spark.projection import projected
from windloom.spark.verify.verify import compare
from windloom.weave import round_input
from windloom.weave.files import file_tuples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = 24 * int(os.environ.get("WINDLOOM_SEEDS", "1"))
_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_GROUPINGS = ["", "p", "s, p", "s", "day", "a % 2 AS m", "x"]
_AGGREGATES = [
    "count(*)",
    "count(x)",
    "sum(b)",
    "sum(a * 2L)",
    "avg(x)",
    "sum(d)",
    "min(s)",
    "max(f)",
    "max(CASE WHEN a <> 0 THEN b / a END)",
    "stddev_pop(a)",
    "max_by(s, x)",
    "last(day)",
    "count(DISTINCT s)",
    "median(b)",
    "approx_count_distinct(a)",
    "approx_count_distinct(b)",
    "sum(b) FILTER (WHERE s >= 'ab')",
    "count(*) FILTER (WHERE a <> 0 AND b / a > 1)",
    "bool_or(p)",
]


COUNTED = "SELECT count(*) AS n, max(a) AS a FROM events [TUMBLE 10 seconds]"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of several row groups each, one of them with a time that is NULL nowhere and tuples in any order."""
    rng = random.Random(23)
    folder = tmp_path_factory.mktemp("events")
    for number in range(3):
        rows = [random_row(rng.choice) for _ in range(120)]
        timed = [(_FIRST + timedelta(seconds=rng.randrange(60)), *row.values()) for row in rows]
        pq.write_table(table_of(timed, _SCHEMA), folder / f"{number} a,b.parquet", row_group_size=50)
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For every scan that the driver was to read: whether it has."""
    found: list[bool] = []
    original: Callable[..., Any] = take._file_chunks

    @contextmanager
    def noted(*given: Any, **named: Any) -> Iterator[Any]:
        try:
            with original(*given, **named) as chunks:
                yield chunks
        except DeclinedError:
            found.append(False)
            raise
        found.append(True)

    monkeypatch.setattr(take, "_file_chunks", noted)
    return found


def loom_of(frame: DataFrame, *texts: str, **options: Any) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("events", frame, **{"time": "ts", **options})
    for number, text in enumerate(texts):
        loom.query(f"q{number}", text)
    return loom


def is_local(loom: Loom) -> bool:
    (scan,) = loom.plan(intake="woven").scans
    return isinstance(scan, WovenScan) and scan.local is not None


def check(loom: Loom, frame: DataFrame) -> None:
    results = loom.run(intake="woven", placement="driver")
    expected = spark_truth(loom, {"events": frame})
    for name, query in loom.queries.items():
        outcome = compare(query, expected[name], results.rows(name))
        assert outcome.ok, f"{query.text}\n{outcome}"


def test_random_queries_equal_spark(spark: SparkSession, files: Path, read: list[bool]) -> None:
    rng, frame = random.Random(5), spark.read.parquet(str(files))
    grammar = Grammar(rng.choice)
    unknown = 0
    for _ in range(QUERIES):
        where = grammar.predicate(2)
        groups, wanted = rng.choice(_GROUPINGS), rng.sample(_AGGREGATES, 3)
        by = f" GROUP BY {groups.split(' AS ')[0]}" if groups else ""
        named = [f"{aggregate} AS c{i}" for i, aggregate in enumerate(wanted)]
        select = ", ".join([*([groups] if groups else []), *named])
        text = f"SELECT {select} FROM events [RANGE 20 seconds SLIDE 10 seconds] WHERE {where}{by}"
        loom = loom_of(frame, text, f"SELECT count(*) AS n FROM events [TUMBLE 15 seconds]{by}")
        unknown += not is_local(loom)
        check(loom, frame)
    assert read.count(True) > QUERIES // 3, f"{read}, of {unknown} only Spark knows an expression"


def test_all_aggregates_are_read_without_a_job(spark: SparkSession, files: Path, read: list[bool]) -> None:
    frame = spark.read.parquet(str(files)).select(*COLUMNS)
    texts = [
        f"SELECT s, {aggregate} AS c FROM events [RANGE 20 seconds SLIDE 10 seconds] GROUP BY s"
        for aggregate in _AGGREGATES
    ]
    loom = loom_of(frame, *texts)
    assert is_local(loom)
    assert "woven: the driver reads the files, kernels aggregate" in loom.explain(intake="woven")
    tracker = spark.sparkContext._jsc.sc().statusStore()
    before = tracker.jobsList(None).size()
    results = loom.run(intake="woven")
    assert all(results.arrow(name).num_rows for name in loom.queries)
    assert tracker.jobsList(None).size() == before
    assert read == [True]
    check(loom, frame)


def test_projected_tuples_are_those_of_spark(spark: SparkSession, files: Path) -> None:
    """Bit for bit, hashes and signatures included."""
    frame = spark.read.parquet(str(files))
    texts = [f"SELECT s, {aggregate} AS c FROM events [TUMBLE 10 seconds] GROUP BY s" for aggregate in _AGGREGATES]
    wheres = ["s IN ('a', 'b')", "a <> 0 AND b / a > 1", "x > 1", "NOT (s = 'é' OR p)", "day >= DATE '2024-02-01'"]
    for where in wheres:
        guarded = f"SELECT max(b / a) AS c FROM events [TUMBLE 10 seconds] WHERE a > 0 AND ({where})"
        check_projected(frame, files, guarded, f"{COUNTED} WHERE {where}")
    check_projected(frame, files, *texts, *(f"{COUNTED} WHERE {where}" for where in wheres))


def test_times_of_96_bits_are_instants(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    """As Spark itself writes them by default."""
    whole = pa.concat_tables(map(pq.read_table, sorted(files.iterdir())))
    pq.write_table(whole, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    frame = spark.read.parquet(str(tmp_path))
    check_projected(
        frame, tmp_path, "SELECT ts, max(ts) AS c, count(*) AS n FROM events [TUMBLE 10 seconds] GROUP BY ts"
    )


def check_projected(frame: DataFrame, files: Path, *texts: str) -> None:
    loom = loom_of(frame, *texts)
    (scan,) = loom.plan(intake="woven").scans
    assert isinstance(scan, WovenScan)
    assert scan.local is not None
    stream = loom.streams["events"]
    ours = pa.concat_tables(file_tuples(scan, stream, sorted(map(str, files.iterdir()))))
    theirs = projected(scan, stream, frame).toArrow()
    assert ours.column_names == theirs.column_names
    assert tuple_bag(ours) == tuple_bag(theirs)


def tuple_bag(table: pa.Table) -> list[str]:
    """Rows as text, which tells NaN and -0.0 apart, in one order."""
    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    instants = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in plain]
    return sorted(map(repr, zip(*(column.to_pylist() for column in instants), strict=True)))


def test_portions_are_merged(
    spark: SparkSession, files: Path, read: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(take, "LARGE_PORTION_BYTES", 1 << 12)
    monkeypatch.setattr(take, "SMALL_PORTION_BYTES", 1 << 11)
    monkeypatch.setattr("windloom.weave.files.UNIT_ROWS", 20)
    frame, by = spark.read.parquet(str(files)), ["s", "p", "day", "s, p"]
    texts = [f"SELECT {one}, sum(b) AS b, median(a) AS m FROM events [TUMBLE 7 seconds] GROUP BY {one}" for one in by]
    check(loom_of(frame, texts[0]), frame)  # fewer sets than threads
    check(loom_of(frame, *texts), frame)
    assert read == [True, True]


@pytest.mark.parametrize("tuples_per_entry", [0, 1])
def test_portions_of_threads_are_rolled_up_from_signatures_and_merged(
    spark: SparkSession,
    files: Path,
    read: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    tuples_per_entry: int,
) -> None:
    """With one tuple per entry, tables have too many entries for these files: predicates are evaluated one by one."""
    monkeypatch.setattr(predicate_index, "TUPLES_PER_ENTRY", tuples_per_entry)
    monkeypatch.setattr(take, "SMALL_PORTION_BYTES", 1 << 11)
    monkeypatch.setattr("windloom.weave.files.UNIT_ROWS", 20)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    monkeypatch.setattr(round_input, "weave", partial(round_input.weave, by_signature=True))
    frame = spark.read.parquet(str(files))
    wheres = [*(f"a > {bound}" for bound in range(-2, 3)), *(f"x < {bound} OR a = 1" for bound in range(3))]
    window = "FROM events [RANGE 7 seconds SLIDE 3 seconds]"
    texts = [f"SELECT s, sum(b) AS b, max(x) AS m {window} WHERE {where} GROUP BY s" for where in wheres]
    loom = loom_of(frame, *texts)
    (scan,) = loom.plan(intake="woven").scans
    assert isinstance(scan, WovenScan)
    assert len(scan.feeds) == len(wheres)
    found = list(file_tuples(scan, loom.streams["events"], sorted(map(str, files.iterdir())), 1 << 11))
    assert len(found) > 3
    assert all(pa.types.is_dictionary(table["s0"].type) for table in found)
    check(loom, frame)
    assert read == [True]


def test_times_may_be_whole_numbers_and_unknown(spark: SparkSession, tmp_path: Path, read: list[bool]) -> None:
    ticks = pa.array([1_700_000_000, 1_700_000_007, 1_700_000_020, 2**62], pa.int64())
    pq.write_table(pa.table({"ts": ticks, "a": pa.array([1, 2, 3, 4], pa.int32())}), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path))
    with pytest.raises(WindloomError, match="time"):
        loom_of(frame, COUNTED, unit="s").run(intake="woven", untimed="stop")
    pq.write_table(pa.table({"ts": ticks[:3], "a": pa.array([1, 2, 3], pa.int32())}), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path))
    assert loom_of(frame, COUNTED, unit="s").run(intake="woven").arrow("q0")["n"].to_pylist() == [2, 1]
    assert read == [True, True]


@pytest.mark.parametrize(
    "way", ["filtered", "held", "partitioned", "with an option", "another type", "renamed", "not ANSI"]
)
def test_other_frames_are_spark_s(spark: SparkSession, files: Path, tmp_path: Path, read: list[bool], way: str) -> None:
    frame = spark.read.parquet(str(files))
    match way:
        case "filtered":
            frame = frame.where("a > 1")
        case "held":
            frame.persist()
        case "partitioned":
            frame.write.partitionBy("p").parquet(str(tmp_path / "parts"))
            frame = spark.read.parquet(str(tmp_path / "parts"))
        case "with an option":
            frame = spark.read.option("mergeSchema", "true").parquet(str(files))
        case "another type":
            wider = _SCHEMA.replace("a int", "a bigint")
            frame = spark.read.schema(wider).parquet(str(files))
        case "renamed":
            frame = frame.withColumnRenamed("b", "bb")
    try:
        with settings(spark, spark__sql__ansi__enabled=str(way != "not ANSI").lower()):
            check(loom_of(frame, COUNTED), frame)
    finally:
        frame.unpersist()
    assert True not in read


def test_what_is_selected_of_a_held_frame_is_spark_s(spark: SparkSession, tmp_path: Path, read: list[bool]) -> None:
    """The files have changed since, and what Spark holds has not."""
    ts, file = pa.array([_FIRST], pa.timestamp("us", "UTC")), tmp_path / "0.parquet"
    pq.write_table(pa.table({"ts": ts, "a": pa.array([1], pa.int32()), "b": ts}), file)
    held = spark.read.parquet(str(tmp_path)).persist()
    try:
        held.count()
        pq.write_table(pa.table({"ts": ts, "a": pa.array([100], pa.int32()), "b": ts}), file)
        selected = held.select("ts", "a", "b").select("a", "ts")
        assert loom_of(selected, COUNTED).run(intake="woven").arrow("q0")["a"].to_pylist() == [1]
        check(loom_of(selected, COUNTED), selected)
    finally:
        held.unpersist()
    check(loom_of(selected, COUNTED), selected)
    assert read[-1], "Spark no longer holds it"


def test_a_column_that_a_file_lacks_is_null(spark: SparkSession, tmp_path: Path, read: list[bool]) -> None:
    ts = pa.array([_FIRST, _FIRST + timedelta(seconds=1)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": ts, "a": pa.array([1, 2], pa.int32())}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"ts": ts}), tmp_path / "1.parquet")
    frame = spark.read.schema("ts timestamp, a int").parquet(str(tmp_path))
    check(loom_of(frame, COUNTED, "SELECT count(a) AS n FROM events [TUMBLE 10 seconds]"), frame)
    assert read == [], "its types are looked at before the plan is made"


def test_old_dates_are_spark_s(spark: SparkSession, tmp_path: Path, read: list[bool]) -> None:
    columns = {
        "ts": pa.array([_FIRST] * 2, pa.timestamp("us", "UTC")),
        "day": pa.array([date(1500, 1, 1), date(2024, 1, 1)]),
        "a": pa.array([1, 2], pa.int32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "0.parquet")
    frame = spark.read.parquet(str(tmp_path))
    check(loom_of(frame, "SELECT day, count(*) AS n FROM events [TUMBLE 10 seconds] GROUP BY day"), frame)
    check(loom_of(frame, COUNTED), frame)
    assert read == [False, True]


@pytest.mark.parametrize("text", ["1 DIV a > 0", "CAST(x AS INT) > 0", "a * 2 > 0"])
def test_what_spark_refuses_it_refuses_in_its_own_words(
    spark: SparkSession, files: Path, read: list[bool], text: str
) -> None:
    frame = spark.read.parquet(str(files))
    asked = f"SELECT count(*) AS n FROM events [TUMBLE 10 seconds] WHERE {text}"
    with pytest.raises(WindloomError) as ours:
        loom_of(frame, asked).run(intake="woven")
    with pytest.raises(WindloomError) as theirs:
        loom_of(frame.where("a IS NULL OR a IS NOT NULL OR x > 0"), asked).run(intake="woven")
    # Which of several values is refused depends on which task is first.
    assert ours.value.detail.split("]")[0] == theirs.value.detail.split("]")[0]
    assert True not in read


def test_a_file_that_is_gone_is_spark_s_error(spark: SparkSession, tmp_path: Path, read: list[bool]) -> None:
    ts = pa.array([_FIRST], pa.timestamp("us", "UTC"))
    for number in range(2):
        pq.write_table(pa.table({"ts": ts, "a": pa.array([1], pa.int32())}), tmp_path / f"{number}.parquet")
    loom = loom_of(spark.read.parquet(str(tmp_path)), COUNTED)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(WindloomError):
        loom.run(intake="woven")
    assert read == [], "its types are looked at before the plan is made"
