"""How many Spark jobs answers take: none where expressions are known, one for all that are not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.files import follow, put
from support.trades import ROWS, WINDOW, settings, trades
from windloom import Loom, WindloomError
from windloom.sinks import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAIN = {
    "spread": f"SELECT symbol, max(price) - min(price) AS spread {WINDOW} GROUP BY symbol",
    "vwap": f"SELECT symbol, sum(price * volume) / sum(volume) AS vwap {WINDOW} GROUP BY symbol HAVING count(*) > 1",
    "level": f"SELECT if(max(price) > 10, 'high', 'low') AS level, round(avg(price), 1) AS p {WINDOW}",
    "bare": f"SELECT symbol, count(*) AS n {WINDOW} GROUP BY symbol",
}
SPARKS = {
    "square": f"SELECT symbol, power(max(price), 2) AS square {WINDOW} GROUP BY symbol",
    "name": f"SELECT symbol, upper(symbol) AS name, count(*) AS n {WINDOW} GROUP BY symbol HAVING count(*) > 1",
    "log": f"SELECT ln(max(price)) AS log, CAST(count(*) AS string) AS n {WINDOW}",
    "tags": f"SELECT symbol, array(max(volume), min(volume)) AS tags {WINDOW} GROUP BY symbol",
}


def jobs(spark: SparkSession) -> int:
    """How many jobs the session has run so far, whoever started them."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def woven(frame: DataFrame, queries: dict[str, str]) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts", delay="10 seconds")
    for name, text in queries.items():
        loom.query(name, text)
    return loom


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def test_answers_of_plain_expressions_start_no_job(spark: SparkSession) -> None:
    loom = woven(trades(spark), PLAIN)
    results = loom.run(placement="driver")
    before = jobs(spark)
    answers = {name: results.arrow(name) for name in results}
    assert jobs(spark) == before
    assert all(loom.verify(name, results).ok for name in PLAIN)
    there = loom.run(placement="executors", buckets=2)
    for name, table in answers.items():
        assert there.arrow(name).schema.equals(table.schema)
        assert rows(results[name].toArrow().cast(table.schema)) == rows(table)


def test_answers_that_need_spark_take_one_job_for_all_queries(spark: SparkSession) -> None:
    loom = woven(trades(spark), {**PLAIN, **SPARKS})
    results = loom.run(placement="driver")
    before = jobs(spark)
    answers = {name: results.arrow(name) for name in results}
    assert jobs(spark) == before + 1
    assert all(loom.verify(name, results).ok for name in SPARKS)
    there = loom.run(placement="executors", buckets=2)
    for name in SPARKS:
        assert rows(there.arrow(name)) == rows(answers[name])


def test_a_store_takes_one_job_for_all_shapes_that_need_spark(spark: SparkSession, tmp_path: Path) -> None:
    taken = {}
    for kind, queries in {"plain": PLAIN, "both": {**PLAIN, **SPARKS}}.items():
        loom = woven(trades(spark), queries)
        before = jobs(spark)
        results = loom.run(out=tmp_path / kind, placement="driver")
        taken[kind] = jobs(spark) - before
        expected = loom.run(placement="driver")
        for name in queries:
            assert rows(results.arrow(name)) == rows(expected.arrow(name)), name
    assert taken["both"] == taken["plain"] + 1


def test_a_round_takes_one_job_for_all_shapes_that_need_spark(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", ROWS)
    same_plan = {
        "square": f"SELECT symbol, max(price) * 2 AS square {WINDOW} GROUP BY symbol",
        "log": f"SELECT max(price) + 1 AS log, count(*) AS n {WINDOW}",
        "name": f"SELECT symbol, count(*) AS n {WINDOW} GROUP BY symbol HAVING count(*) > 1",
    }
    taken = {}
    for kind, queries in {"plain": same_plan, "sparks": {name: SPARKS[name] for name in same_plan}}.items():
        loom = woven(follow(spark, tmp_path / "in"), queries)
        before = jobs(spark)
        handle = loom.start("memory", trigger={"availableNow": True}, finish=True, checkpoint=tmp_path / kind)
        assert handle.await_termination(60)
        taken[kind] = jobs(spark) - before
        assert sum(progress.results > 0 for progress in handle.recent_progress) == 2
        batch = woven(trades(spark), queries).run(placement="driver")
        for name in queries:
            assert rows(handle.arrow(name)) == rows(batch.arrow(name))
    assert taken["sparks"] == taken["plain"] + 2


def test_what_waits_for_spark_is_bounded(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PORTION_SHAPES", 2)
    loom = woven(trades(spark), SPARKS)
    loom.run(out=tmp_path / "out", placement="driver")
    expected = loom.run(placement="driver")
    for name in SPARKS:
        table = pq.read_table(next((tmp_path / "out").glob(f"*{name}*/*.parquet")))
        own = table.filter(pa.compute.equal(table["query"], name)).drop_columns("query")
        assert rows(own) == rows(expected.arrow(name))


def test_of_several_queries_the_one_at_fault_is_named(spark: SparkSession, tmp_path: Path) -> None:
    bad = {"bad": f"SELECT symbol, power(sum(volume) / (count(*) - count(*)), 2) AS x {WINDOW} GROUP BY symbol"}
    loom = woven(trades(spark), {**SPARKS, **bad})
    results = loom.run(placement="driver")
    assert results.arrow("square").num_rows > 0
    with pytest.raises(WindloomError, match="Spark cannot evaluate query 'bad'"):
        results.arrow("bad")
    with pytest.raises(WindloomError, match="Spark cannot evaluate query 'bad'"):
        loom.run(out=tmp_path / "out", placement="driver")


def test_a_division_by_zero_is_told_in_the_words_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    text = f"SELECT symbol, sum(volume) / (count(*) - count(*)) AS x {WINDOW} GROUP BY symbol"
    loom = woven(trades(spark), {"bad": text, "good": PLAIN["spread"]})
    results = loom.run(placement="driver")
    assert results.arrow("good").num_rows > 0
    for read in (lambda: results.arrow("bad"), lambda: loom.run(out=tmp_path / "out", placement="driver")):
        with pytest.raises(WindloomError, match="Spark cannot evaluate query 'bad'") as caught:
            read()
        assert "DIVIDE_BY_ZERO" in caught.value.detail


def test_in_a_session_with_other_rules_spark_evaluates_everything(spark: SparkSession) -> None:
    with settings(spark, spark__sql__decimalOperations__allowPrecisionLoss="false"):
        loom = woven(trades(spark), {"q": f"SELECT sum(CAST(price AS decimal(20,8))) / count(*) AS x {WINDOW}"})
        results = loom.run(placement="driver")
        before = jobs(spark)
        answer = results.arrow("q")
        assert jobs(spark) == before + 1
        assert answer.schema.equals(loom.run(placement="executors", buckets=2).arrow("q").schema)
