"""Windloom as a Spark operator: its rows are those of a batch run; in streams, after kills and restarts, on Connect."""

from __future__ import annotations

import datetime
import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import windloom
from support.files import follow, put
from support.operator_program import QUERIES, loom_over
from support.trades import settings
from windloom import Loom
from windloom.errors import WindloomError
from windloom.operator.parts import bucket_keys
from windloom.spark.operator.frames import METRICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TESTS = Path(__file__).resolve().parents[1]
KILLS = int(os.environ.get("WINDLOOM_KILLS", "1"))
_MIDNIGHT = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)


def files(seed: int, count: int, late: float = 0.0) -> Iterator[list[tuple[Any, ...]]]:
    """Half a minute of trades per file, in disorder within the delay of 25 seconds; a share comes too late."""
    rng = random.Random(seed)
    for number in range(count):
        rows = []
        for i in range(40):
            second = number * 30 + rng.randrange(30) - rng.randrange(25) * (i % 3 == 0)
            second -= 100 if number > 4 and rng.random() < late else 0
            when = _MIDNIGHT + datetime.timedelta(seconds=second)
            rows.append((when, rng.choice(["A", "B", "C", "", None]), rng.randrange(1000) / 8, rng.randrange(1, 100)))
        yield rows


def put_all(folder: Path, seed: int = 1, count: int = 8, late: float = 0.0, first: int = 0) -> None:
    for number, rows in enumerate(files(seed, first + count, late)):
        if number >= first:
            put(folder / "in", f"{number:04d}", rows)


def run(answers: DataFrame, folder: Path, name: str = "out") -> Any:
    """Answer what is there, into Parquet by Spark's own sink; return the query that has ended."""
    writing = (
        answers.writeStream.format("parquet")
        .option("path", str(folder / name))
        .option("checkpointLocation", str(folder / f"checkpoint-{name}"))
        .trigger(availableNow=True)
    )
    with settings(answers.sparkSession, spark__sql__shuffle__partitions="2"):
        query = writing.start()
    query.awaitTermination(240)
    assert query.exception() is None
    return query


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in any order; sums of floats of other orders differ in the last digits."""
    values = (
        [round(each, 9) if isinstance(each, float) else each for each in row.values()] for row in table.to_pylist()
    )
    return sorted(map(tuple, values), key=repr)


def closed(table: pa.Table, until: datetime.datetime) -> pa.Table:
    return table.filter(pa.compute.less_equal(table["window_end"], pa.scalar(until, table["window_end"].type)))


def watermark(folder: Path) -> datetime.datetime:
    """Where windows are closed when all files are read: the largest time, less the delay."""
    last = max(pa.compute.max(pq.read_table(file)["ts"]).as_py() for file in (folder / "in").glob("*.parquet"))
    return last - datetime.timedelta(seconds=25)


def written(spark: SparkSession, folder: Path, query: str, loom: Loom, name: str = "out") -> pa.Table:
    columns = ["window_start", "window_end", *(group.name for group in loom.queries[query].group_by)]
    columns += [output.name for output in loom.queries[query].outputs]
    frame = spark.read.parquet(str(folder / name))
    return frame.where(frame["query"] == query).select(*columns).toArrow()


def assert_workers_spare_the_collector(spark: SparkSession) -> None:
    """What a worker keeps from task to task (modules, kernels, plans) is not looked at after each of them."""

    def spared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([gc.get_freeze_count()] * batch.num_rows)], ["id"])

    # Spark takes the worker that has waited longest, so several tasks find one that has run the operator.
    found = spark.range(0, 16, 1, 16).mapInArrow(spared, "id bigint").toArrow()
    assert max(found["id"].to_pylist()) > 10_000


def test_the_answers_of_a_batch_are_those_of_a_run_query_by_query_and_all_in_one_frame(
    spark: SparkSession, tmp_path: Path
) -> None:
    put_all(tmp_path)
    loom = loom_over(spark, tmp_path, batch=True)
    loom.query("visits", "SELECT symbol, count(*) AS n FROM trades [SESSION GAP 5 seconds] GROUP BY symbol")
    loom.query("by_price", "SELECT a.volume % 3 AS rest, count(*) AS n FROM trades [TUMBLE 60 s] a"
               " JOIN trades [TUMBLE 60 s] b ON a.symbol = b.symbol GROUP BY a.volume % 3")  # fmt: skip
    together = loom.answers(intake="spark").toArrow()
    assert_workers_spare_the_collector(spark)
    assert together.column_names[:3] == ["query", "window_start", "window_end"]
    loom.query("shouted", "SELECT symbol, upper(first(symbol)) AS s FROM trades [TUMBLE 60 s] GROUP BY symbol")
    with pytest.raises(WindloomError, match="cannot be in one frame with others"):
        loom.answers()
    loom.query("pasted", "SELECT window, symbol, count(1) AS n FROM trades GROUP BY window(ts, '60 seconds'), symbol"
               " ORDER BY n DESC")  # fmt: skip
    wanted = loom.run()
    for name in ("avg", "visits", "shouted", "by_price", "pasted"):
        answer = loom.answers(name)
        assert answer.columns == wanted[name].columns
        assert answer.dtypes == wanted[name].dtypes
        assert rows_of(answer.toArrow()) == rows_of(wanted.arrow(name))
    for name in (*QUERIES, "visits", "by_price"):
        own = together.filter(pa.compute.equal(together["query"], name)).select(wanted.arrow(name).column_names)
        assert rows_of(own) == rows_of(wanted.arrow(name))


def test_all_answers_of_a_run_on_executors_come_with_the_jobs_of_one_query_and_reading_them_starts_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    put_all(tmp_path, count=3)
    jobs: dict[str, list[int]] = {}

    def of(group: str, work: Callable[[], Any]) -> Any:
        spark.sparkContext.setJobGroup(group, group)
        try:
            done = work()
            jobs[group] = spark.sparkContext.statusTracker().getJobIdsForGroup(group)
        finally:
            spark.sparkContext.setJobGroup("", "")
        return done

    one = loom_over(spark, tmp_path, ["avg"], batch=True)
    of("one", lambda: one.run(placement="executors", buckets=2))
    loom = loom_over(spark, tmp_path, batch=True)
    for number in range(20):
        loom.query(f"q{number}", f"SELECT sum(volume) AS v{number} FROM trades [RANGE {number + 2} s SLIDE 2 s]")
    results = of("many", lambda: loom.run(placement="executors", buckets=2))
    assert 0 < len(jobs["many"]) <= len(jobs["one"])
    wanted = loom.run(placement="driver")
    read = of("read", lambda: {name: (results.arrow(name), results[name].columns) for name in loom.queries})
    assert jobs["read"] == []
    for name, (table, columns) in read.items():
        assert columns == table.column_names
        assert rows_of(table) == rows_of(wanted.arrow(name))
    loom.run(placement="executors", buckets=2, out=tmp_path / "stored")
    assert set(windloom.read(tmp_path / "stored")) == set(loom.queries)
    for name in ("avg", "q7"):
        assert rows_of(windloom.read(tmp_path / "stored").arrow(name)) == rows_of(wanted.arrow(name))
    with pytest.raises(WindloomError, match="do not fit into memory=1 KiB"):
        loom.run(placement="executors", buckets=2, memory="1 KiB")


def test_a_stream_closes_windows_in_the_micro_batch_that_brings_the_data_and_counts_what_is_late(
    spark: SparkSession, tmp_path: Path
) -> None:
    put_all(tmp_path, count=9, late=0.1)
    loom = loom_over(spark, tmp_path)
    handle = loom.start("parquet", path=tmp_path / "own", checkpoint=tmp_path / "c", trigger={"availableNow": True})
    handle.await_termination()
    query = run(loom.answers(), tmp_path)
    told = [progress["observedMetrics"][METRICS] for progress in query.recentProgress if progress["numInputRows"]]
    rounds = handle.recent_progress
    assert [row["events"] for row in told] == [progress.events for progress in rounds] == [40] * 9
    late = [progress.late.get("trades") for progress in rounds]
    assert [(row["late_partly"], row["late_dropped"]) for row in told] == [
        (0, 0) if count is None else (count["partly"], count["dropped"]) for count in late
    ]
    assert sum(row["late_partly"] for row in told) > 0
    for name in QUERIES:
        assert rows_of(written(spark, tmp_path, name, loom)) == rows_of(handle.arrow(name))


def test_rows_that_spark_has_read_and_files_that_workers_read_give_the_same_answers(
    spark: SparkSession, tmp_path: Path
) -> None:
    put_all(tmp_path, count=5)
    loom = loom_over(spark, tmp_path, ["avg", "odd"])
    for intake in ("spark", "files"):
        run(loom.answers(intake=intake), tmp_path, intake)
    for name in loom.queries:
        by_rows, by_names = (written(spark, tmp_path, name, loom, intake) for intake in ("spark", "files"))
        assert by_rows.num_rows > 0
        assert rows_of(by_rows) == rows_of(by_names)


def test_a_checkpoint_goes_on_with_other_queries_and_a_query_that_stays_misses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    put_all(tmp_path, count=6)
    run(loom_over(spark, tmp_path, ["avg", "odd", "grown"]).answers(), tmp_path)
    put_all(tmp_path, count=6, first=6)
    loom = loom_over(spark, tmp_path, ["high", "avg", "grown"])
    run(loom.answers(), tmp_path)
    batch = loom_over(spark, tmp_path, batch=True).run()
    until = watermark(tmp_path)
    for name in ("avg", "grown"):
        wanted = batch.arrow(name)
        assert rows_of(written(spark, tmp_path, name, loom)) == rows_of(closed(wanted, until))
    added = written(spark, tmp_path, "high", loom)
    exact = closed(batch.arrow("high"), until)
    first = pa.compute.min(added["window_start"])
    assert rows_of(added) == rows_of(exact.filter(pa.compute.greater_equal(exact["window_start"], first)))
    assert 0 < added.num_rows < exact.num_rows


def test_kill_minus_nine_changes_no_row(tmp_path: Path) -> None:
    put_all(tmp_path, count=12)
    rng, kills = random.Random(7), 0
    while not (tmp_path / "done").exists():
        process = start_program(tmp_path, "classic")
        if kills < KILLS:
            # Somewhere between the first round that is written down and the end.
            reached = wait_for(tmp_path / "checkpoint" / "commits" / str(rng.randrange(1, 8)), process)
            if reached and process.poll() is None:
                time.sleep(rng.random() * 0.3)
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
        assert process.wait(300) in (0, -signal.SIGKILL)
    check_program(tmp_path)


def test_a_connect_session_runs_the_same_code(tmp_path: Path) -> None:
    put_all(tmp_path, count=6)
    process = start_program(tmp_path, "connect")
    assert process.wait(300) == 0
    check_program(tmp_path, batch=True)


def start_program(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "support.operator_program", str(folder), kind],
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,  # so that the JVM and its workers are killed with it
        )


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists():
            return True
        time.sleep(0.02)
    return False


def check_program(folder: Path, *, batch: bool = False) -> None:
    """The rows that the program has written are those of a run over all files, as far as windows are closed."""
    from windloom.spark.session import local_session

    spark = local_session()
    loom = loom_over(spark, folder, batch=True)
    wanted, until = loom.run(), watermark(folder)
    for name in QUERIES:
        expected = wanted.arrow(name)
        assert rows_of(written(spark, folder, name, loom)) == rows_of(closed(expected, until))
        if batch:
            table = pq.read_table(folder / "batch.parquet")
            own = table.filter(pa.compute.equal(table["query"], name)).select(expected.column_names)
            assert rows_of(own) == rows_of(expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT symbol, count(*) AS n FROM trades [SESSION GAP 5 seconds] GROUP BY symbol", "sessions of a stream"),
        ("SELECT symbol, count(*) AS n FROM trades [ROWS 5 SLIDE 1] GROUP BY symbol", "count rows"),
        ("SELECT symbol, count(*) AS n FROM trades [TUMBLE 5 s] GROUP BY symbol EMIT CHANGES", "EMIT CHANGES"),
        ("SELECT symbol FROM trades [TUMBLE 5 s]", "rows of the stream"),
    ],
)
def test_what_the_operator_cannot_do_yet_is_refused_by_name_with_what_works(
    spark: SparkSession, tmp_path: Path, text: str, why: str
) -> None:
    loom = Loom(spark)
    loom.stream("trades", follow(spark, tmp_path / "in"), time="ts")
    loom.query("q", text)
    with pytest.raises(WindloomError, match="query 'q' cannot run as a Spark operator yet") as raised:
        loom.answers("q")
    assert why in raised.value.detail
    assert "loom.start(" in raised.value.hint


@pytest.mark.parametrize("partitions", [2, 3, 8])
def test_buckets_are_spread_evenly_over_the_tasks_of_spark(spark: SparkSession, partitions: int) -> None:
    keys = pa.table({"bucket": pa.array(bucket_keys(24), pa.int32())})
    parts = spark.createDataFrame(keys).repartition(partitions, "bucket").groupBy(F.spark_partition_id()).count()
    assert [row["count"] for row in parts.collect()] == [24 // partitions] * partitions
    assert bucket_keys(5) == bucket_keys(24)[:5]
    assert len(set(bucket_keys(5000))) == 5000


def test_a_stream_needs_the_state_store_that_can_keep_its_state(spark: SparkSession, tmp_path: Path) -> None:
    loom = loom_over(spark, tmp_path, ["avg"])
    other = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    with (
        settings(spark, spark__sql__streaming__stateStore__providerClass=other),
        pytest.raises(WindloomError, match="RocksDB state store") as raised,
    ):
        loom.answers()
    assert "spark.conf.set(" in raised.value.hint


def test_unknown_queries_intakes_and_buckets_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    put_all(tmp_path, count=1)
    loom = loom_over(spark, tmp_path, ["avg"], batch=True)
    with pytest.raises(WindloomError, match="'avgg'"):
        loom.answers("avgg")
    with pytest.raises(WindloomError, match="unknown intake 'fast'"):
        loom.answers("avg", intake="fast")
    with pytest.raises(WindloomError, match="buckets cannot be 0"):
        loom.answers("avg", buckets=0)
    loom.query("text", "SELECT symbol, max(symbol) AS n FROM trades [TUMBLE 60 s] GROUP BY symbol")
    with pytest.raises(WindloomError, match="'n' has two types"):
        loom.answers()
