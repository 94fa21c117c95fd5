"""What a round takes in comes to the driver in portions; what is too large is told with its size and the ways out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from support.files import follow, put
from support.many_groups import QUERIES, random_trades, rows
from support.trades import SCHEMA, settings
from windloom import Loom, WindloomError
from windloom.checkpoint.logs import RoundLog
from windloom.engine import batch
from windloom.spark import collect, jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TESTS = Path(__file__).resolve().parents[1]
TOO_LARGE = "Total size of serialized results of 2 tasks (2.0 MiB) is bigger than spark.driver.maxResultSize (1.0 MiB)"
#: Of every kind of cells: sums, lists, picks, windows of rows.
KINDS = {
    **QUERIES,
    "lists": "SELECT symbol, count(DISTINCT volume) AS d, median(price) AS m FROM trades [TUMBLE 60 s] GROUP BY symbol",
    "rows": "SELECT sum(volume) AS v FROM trades [ROWS 20 SLIDE 10]",
    "own_rows": "SELECT symbol, max(price) AS p FROM trades [PARTITION BY symbol ROWS 5 SLIDE 5] GROUP BY symbol",
}


@pytest.fixture
def tiny_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a result is, it comes in portions of about one partition."""
    monkeypatch.setattr(collect, "SMALL_BYTES", -1)
    monkeypatch.setattr(collect, "PORTION_BYTES", 1)


def numbers(spark: SparkSession, partitions: int = 7) -> DataFrame:
    return spark.range(1000, numPartitions=partitions).selectExpr("id", "CAST(id AS STRING) AS text", "id / 3 AS x")


def assert_same(frame: DataFrame, tables: list[pa.Table]) -> None:
    assert pa.concat_tables(tables).equals(frame.toArrow())


def test_a_result_that_is_small_comes_at_once(spark: SparkSession) -> None:
    assert len(list(collect.collected(numbers(spark), "numbers"))) == 1


@pytest.mark.usefixtures("tiny_portions")
def test_a_result_that_is_not_comes_in_portions_that_are_all_of_it(spark: SparkSession) -> None:
    found = list(collect.collected(numbers(spark), "numbers"))
    assert len(found) > 2
    assert_same(numbers(spark), found)
    # Behind a shuffle, whose partitions are few and some of them empty.
    grouped = numbers(spark).groupBy("text").count().where("text < '3'").orderBy("text")
    assert_same(grouped, list(collect.collected(grouped, "groups")))
    (nothing,) = collect.collected(numbers(spark).where("id < 0"), "nothing")
    assert (nothing.num_rows, nothing.column_names) == (0, ["id", "text", "x"])
    (none,) = collect.collected(spark.createDataFrame([], "id bigint, text string"), "no partitions")
    assert none.schema.names == ["id", "text"]


@pytest.mark.usefixtures("tiny_portions")
def test_strings_of_another_layout_are_read_as_the_session_writes_them(spark: SparkSession) -> None:
    with settings(spark, spark__sql__execution__arrow__useLargeVarTypes="true"):
        assert_same(numbers(spark), list(collect.collected(numbers(spark), "numbers")))


@pytest.mark.usefixtures("tiny_portions")
def test_a_portion_that_spark_refuses_is_halved_and_a_partition_it_refuses_is_an_error(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch, refused = collect._Portions._fetch, list[range]()

    def fetch_two(self: Any, partitions: range) -> pa.Table:
        if len(partitions) > most:
            refused.append(partitions)
            raise PySparkException(f"Job aborted due to stage failure: {TOO_LARGE}")
        return fetch(self, partitions)

    monkeypatch.setattr(collect._Portions, "_fetch", fetch_two)
    most = 1
    assert_same(numbers(spark), list(collect.collected(numbers(spark), "numbers")))
    assert refused
    most = 0
    with pytest.raises(WindloomError, match="numbers cannot be brought to the driver") as raised:
        list(collect.collected(numbers(spark), "numbers"))
    assert "partition 0 of 7 alone is larger than 1,024 MiB (spark.driver.maxResultSize)" in raised.value.detail
    assert "repartition" in raised.value.hint
    assert "placement='executors'" in raised.value.hint


def test_another_failure_of_a_portion_is_not_taken_for_a_large_one(spark: SparkSession) -> None:
    failing = numbers(spark).selectExpr("id", "1 / (id - 500) AS y")
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        list(collect.collected(failing, "quotients"))


def trades_loom(frame: DataFrame, queries: dict[str, str] = KINDS) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts", delay="10 seconds")
    for name, text in queries.items():
        loom.query(name, text)
    return loom


@pytest.fixture(scope="module")
def trades(spark: SparkSession) -> Iterator[DataFrame]:
    made = spark.createDataFrame(random_trades(9, 400), SCHEMA).repartition(5).persist()
    yield made
    made.unpersist()


@pytest.fixture(scope="module")
def expected(trades: DataFrame) -> dict[str, list[tuple[Any, ...]]]:
    results = trades_loom(trades).run(placement="driver")
    return {name: rows(results.arrow(name)) for name in KINDS}


@pytest.mark.usefixtures("tiny_portions")
def test_cells_of_portions_are_those_of_the_whole(trades: DataFrame, expected: Any) -> None:
    for intake, queries in (("woven", KINDS), ("native", QUERIES)):
        results = trades_loom(trades, queries).run(placement="driver", intake=intake)
        assert {name: rows(results.arrow(name)) for name in queries} == {name: expected[name] for name in queries}
        assert results.stats.events == 400


@pytest.mark.usefixtures("tiny_portions")
def test_a_round_in_portions_logs_cells_and_one_that_is_not_may_log_tuples(spark: SparkSession, tmp_path: Path) -> None:
    made = sorted(random_trades(9, 60), key=lambda row: row[0])  # nothing is late, in one round or in two
    put(tmp_path / "in", "000", made[:30])
    put(tmp_path / "in", "001", made[30:])

    def answers(place: str, files: int) -> tuple[Any, list[bool]]:
        frame = follow(spark, tmp_path / "in", files)
        if files > 1:
            frame = frame.repartition(3)
        handle = trades_loom(frame).start(
            path=tmp_path / place / "out",
            checkpoint=tmp_path / place / "c",
            trigger={"availableNow": True},
            finish=True,
            intake="woven",
        )
        assert handle.await_termination(120)
        logs = sorted((tmp_path / place / "c" / "log").iterdir())[:-1]
        held = [bool(RoundLog.from_bytes(log.name, log.read_bytes()).tuples) for log in logs]
        return {name: rows(handle.arrow(name)) for name in KINDS}, held

    whole, in_one = answers("whole", 1)
    portions, in_several = answers("portions", 2)
    assert (in_one, in_several) == ([True, True], [False])
    assert whole == portions


def test_cells_larger_than_the_driver_holds_are_made_by_executors(
    trades: DataFrame, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "inputs_are_small", lambda frames: False)
    monkeypatch.setattr(batch, "driver_bytes", lambda: 5000)
    for intake, queries in (("woven", KINDS), ("native", QUERIES)):
        said: list[str] = []
        results = trades_loom(trades, queries).run(intake=intake, progress=said.append)
        assert results.stats.placement == "executors"
        assert any("stream 'trades'" in line and "going on with executors" in line for line in said)
        assert {name: rows(results.arrow(name)) for name in queries} == {name: expected[name] for name in queries}


def test_a_round_larger_than_the_driver_holds_is_told_with_the_ways_out_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = random_trades(9, 120)
    for number in range(4):
        put(tmp_path / "in", f"{number:03d}", made[30 * number : 30 * number + 30])

    def start(place: str, files: int) -> Any:
        return trades_loom(follow(spark, tmp_path / "in", files)).start(
            path=tmp_path / place / "out",
            checkpoint=tmp_path / place / "c",
            trigger={"availableNow": True},
            finish=True,
        )

    undisturbed = start("a", 3)
    assert undisturbed.await_termination(120)
    with monkeypatch.context() as little:
        little.setattr(jobs, "driver_bytes", lambda: 4 << 10)
        with pytest.raises(WindloomError, match="a round brings more than the driver can hold") as raised:
            start("b", 3).await_termination(120)
    assert "stream 'trades'" in raised.value.detail
    assert "MiB of cells" in raised.value.detail
    assert "same checkpoint" in raised.value.hint
    assert "loom.answers().writeStream" in raised.value.hint
    assert not list((tmp_path / "b" / "c" / "log").glob("*.arrow"))
    # With more memory; Spark brings the same files again, and from then on as few as it is told to.
    again = start("b", 1)
    assert again.await_termination(120)
    assert [progress.events for progress in again.recent_progress] == [90, 30, 0]
    for name in KINDS:
        assert rows(again.arrow(name)) == rows(undisturbed.arrow(name)), name


def test_a_driver_that_takes_one_megabyte_per_job_takes_more_in_several(tmp_path: Path) -> None:
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "support.small_driver"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "\tat org.apache" not in done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["groups"] == found["rows"] == found["in_files"] == 60_000
    assert found["sum"] == sum(range(60_000))
    for refused in (found["one_partition"], found["one_partition_of_rows"]):
        message, detail, hint = refused
        assert message.endswith("of stream 'events' cannot be brought to the driver")
        assert detail.startswith("partition 0 of 1 alone is larger than 1 MiB (spark.driver.maxResultSize)")
        assert "repartition" in hint
        assert "placement='executors'" in hint
