"""Texts that people have written for other systems are answered as they stand: same columns, same rows.

`pasted/*.sql` hold the texts, all over the trades of `pasted/trades.csv`. Those for Spark are run by Spark itself;
those for other systems have their rows below them.
"""

from __future__ import annotations

import math
import os
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = Path(__file__).with_name("pasted")
_SCHEMA = "ts timestamp, symbol string, venue string, price double, volume int, fee decimal(10,2), flag boolean"


def texts(name: str) -> list[str]:
    """The texts of a file; blank lines divide them, and the first block says what the file is."""
    return (FOLDER / name).read_text(encoding="utf-8").strip("\n").split("\n\n")[1:]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    frame = spark.read.csv(str(FOLDER / "trades.csv"), schema=_SCHEMA, header=True).coalesce(1).persist()
    frame.createOrReplaceTempView("trades")
    return frame


def test_texts_for_spark_are_answered_with_sparks_columns_and_rows_as_texts_and_as_dataframes(
    spark: SparkSession, frame: DataFrame
) -> None:
    written = texts("spark.sql")
    assert len(written) >= 60
    loom = Loom(spark)
    loom.stream("trades", frame, time="ts")
    for number, text in enumerate(written):
        loom.query(f"q{number}", text)
    results = loom.run()
    truths = [spark.sql(text.rstrip(";\n ")) for text in written]
    as_frames = Loom(spark)
    for number, truth in enumerate(truths):
        as_frames.query(f"q{number}", truth)
    assert list(as_frames.streams) == ["trades"]
    of_frames = as_frames.run()
    for number, (text, truth) in enumerate(zip(written, truths, strict=True)):
        name = f"q{number}"
        assert types_of(results[name]) == types_of(truth), text
        assert of_frames[name].schema == truth.schema, text
        expected = in_order(truth.toArrow(), text)
        for found in (in_order(each.arrow(name), text) for each in (results, of_frames)):
            assert len(found) == len(expected), text
            assert all(map(alike, found, expected)), (text, found, expected)


def in_order(table: Any, text: str) -> list[tuple[Any, ...]]:
    """The rows of a text, as they come if it orders them."""
    return rows_of(table) if "ORDER BY" in text else sorted(rows_of(table), key=repr)


def test_texts_for_flink_risingwave_and_duckdb_give_the_rows_written_below_them(
    spark: SparkSession, frame: DataFrame
) -> None:
    written = {name: texts(f"{name}.sql") for name in ("flink", "risingwave", "duckdb")}
    assert len(written["flink"]) >= 30
    assert min(map(len, written.values())) >= 15
    blocks = {f"{name}{number}": block for name in written for number, block in enumerate(written[name])}
    loom = Loom(spark)
    loom.stream("trades", frame, time="ts")
    for name, block in blocks.items():
        loom.query(name, _text_and_rows(block)[0])
    results = loom.run()
    for name, block in blocks.items():
        text, expected = _text_and_rows(block)
        assert expected, text
        found = [" | ".join(map(_shown, row)) for row in zip(*results.arrow(name).to_pydict().values(), strict=True)]
        assert (found if "ORDER BY" in text else sorted(found)) == expected, text


def _text_and_rows(block: str) -> tuple[str, list[str]]:
    """A text, and the rows below it: the lines that begin with `-- ` after it."""
    lines = block.split("\n")
    count = next((count for count, line in enumerate(reversed(lines)) if not line.startswith("-- ")), 0)
    return "\n".join(lines[: len(lines) - count]), [line[3:] for line in lines[len(lines) - count :]]


def _shown(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.9g}"
        case datetime():
            fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
            return f"{value:%Y-%m-%d %H:%M:%S}{fraction}"
    return str(value)


def types_of(frame: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """Rows with times as ticks, whatever zone they are told in."""
    return [tuple(map(_plain, column)) for column in zip(*(each.to_pylist() for each in table.columns), strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    if isinstance(value, float):
        return float(f"{value:.12g}")
    return value.timestamp() if hasattr(value, "timestamp") else value


def alike(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(left, right, strict=True)
    )


#: One text of every form, for what is slower to run.
_FEW = {
    "struct": "SELECT symbol, window AS w, count(*) AS n FROM trades GROUP BY window(ts, '10 minutes'), symbol",
    "ordered": "SELECT window.start AS s, sum(volume) AS v FROM trades GROUP BY window(ts, '30 minutes', '10 minutes')"
    " HAVING hour(window.end) < 11 ORDER BY v DESC NULLS LAST, s",
    "computed": "SELECT date_format(window.end, 'HH:mm') AS e, max(price) - 1 AS m FROM trades"
    " GROUP BY window(ts, '20 minutes') ORDER BY e",
    "no window": "SELECT max(price) AS m FROM trades GROUP BY window(ts, '10 minutes') ORDER BY count(*), m",
}


def test_streams_and_executors_have_the_columns_of_the_text(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    truths = {name: spark.sql(text) for name, text in _FEW.items()}
    batch = Loom(spark)
    batch.stream("trades", frame, time="ts")
    for name, text in _FEW.items():
        batch.query(name, text)
    results = batch.run(placement="executors")
    folder = tmp_path / "in"
    frame.write.parquet(str(folder))
    loom = Loom(spark)
    loom.stream("trades", spark.readStream.schema(frame.schema).parquet(str(folder)), time="ts")
    for name, text in _FEW.items():
        loom.query(name, text)
    handle = loom.start("memory", trigger={"availableNow": True}, finish=True)
    handle.await_termination()
    for name, truth in truths.items():
        expected = rows_of(truth.toArrow())
        for answers in (results, handle):
            assert types_of(answers[name]) == types_of(truth), name
            found, as_frame = rows_of(answers.arrow(name)), rows_of(answers[name].toArrow())
            if "ORDER BY" not in _FEW[name]:
                expected, found, as_frame = (sorted(each, key=repr) for each in (expected, found, as_frame))
            assert found == as_frame == expected, name
        assert (
            results.rows(name).column_names[:2] == handle.rows(name).column_names[:2] == ["window_start", "window_end"]
        )
        assert batch.verify(name).ok


def test_a_window_in_brackets_keeps_its_columns_and_may_be_computed_with(frame: DataFrame, spark: SparkSession) -> None:
    loom = Loom(spark)
    loom.stream("trades", frame, time="ts")
    loom.query("q", "SELECT symbol, count(*) AS n FROM trades [TUMBLE 1 hour] GROUP BY symbol ORDER BY n DESC, symbol")
    loom.query(
        "computed",
        "SELECT hour(window_start) AS h, window_end AS e, sum(volume) / minute(window_end - INTERVAL 1 MINUTE) AS v"
        " FROM trades [TUMBLE 30 minutes] HAVING window_start >= TIMESTAMP '2026-03-02 09:30:00' ORDER BY h",
    )
    results = loom.run()
    assert results["q"].columns == ["window_start", "window_end", "symbol", "n"]
    counts = results.arrow("q")["n"].to_pylist()
    assert counts == sorted(counts, reverse=True)
    assert results["computed"].columns == ["window_start", "window_end", "h", "e", "v"]
    assert results.arrow("computed")["h"].to_pylist() == [9, 10, 10, 11]
    assert loom.verify("computed").ok
    explained = loom.explain(query="q")
    assert "in the order of n DESC, symbol" in explained


#: How many random texts are drawn; `WINDLOOM_TEXTS=500` draws more.
_RANDOM = int(os.environ.get("WINDLOOM_TEXTS", "30"))
_KEYS = ("symbol", "venue", "flag", "upper(venue)", "coalesce(symbol, 'none')", "volume % 3", "price > 10")
_AGGREGATES = (
    *("count(*)", "count(price)", "sum(volume)", "max(price)", "min(price)", "avg(price)", "sum(fee)", "max(venue)"),
    *("count(DISTINCT symbol)", "sum(price * volume)", "max(price) - min(price)", "sum(volume) / count(*)"),
    *("count(*) FILTER (WHERE flag)", "arg_max(symbol, price)", "max(volume) + 1", "min(fee)"),
)
_CONDITIONS = ("price > 9", "volume IS NOT NULL", "symbol IN ('A', 'B')", "flag", "price * 2 < 30 OR symbol IS NULL")
_OF_WINDOWS = ("hour({})", "minute({})", "{} + INTERVAL 1 HOUR", "minute({} + INTERVAL 5 MINUTE)", "{}")
_NULLS = ("FIRST", "LAST")
_OF_GROUPS = ("count(*) > 1", "max(price) > 10", "hour({}) < 11", "{} >= TIMESTAMP '2026-03-02 09:20:00'")


def random_text(random: Random) -> str:
    """A text for DuckDB that computes with its windows, and says the whole order of its rows."""
    bucket = f"time_bucket(INTERVAL '{random.choice((5, 10, 15, 20, 30, 45, 60, 120, 1440))} minutes', ts)"
    bucket = bucket.replace(", ts)", ", ts, INTERVAL '3 minutes')") if random.random() < 0.2 else bucket
    keys = random.sample(_KEYS, random.randint(0, 2))
    items = [*keys, *random.sample(_AGGREGATES, random.randint(1, 3))]
    items += [each.format(bucket) for each in random.sample(_OF_WINDOWS, random.randint(0, 2))]
    random.shuffle(items)
    order = []
    for place in random.sample(range(1, len(items) + 1), len(items)):
        key, way, nulls = (
            random.choice((str(place), f"c{place}")),
            random.choice(("ASC", "DESC")),
            random.choice(_NULLS),
        )
        order.append(f"{key} {way} NULLS {nulls}")
    listed = ", ".join(f"{item} AS c{place}" for place, item in enumerate(items, 1))
    where = f" WHERE {random.choice(_CONDITIONS)}" if random.random() < 0.5 else ""
    having = f" HAVING {random.choice(_OF_GROUPS).format(bucket)}" if random.random() < 0.5 else ""
    return (
        f"SELECT {listed} FROM trades{where} GROUP BY {', '.join([bucket, *keys])}{having} ORDER BY {', '.join(order)}"
    )


def test_random_texts_have_the_rows_of_duckdb_in_its_order(spark: SparkSession, frame: DataFrame) -> None:
    random = Random(32)
    written = [random_text(random) for _ in range(_RANDOM)]
    loom = Loom(spark)
    loom.stream("trades", frame, time="ts")
    for number, text in enumerate(written):
        loom.query(f"q{number}", text)
    results = loom.run()
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        kinds = ", ".join(each.replace("timestamp", "timestamptz") for each in _SCHEMA.split(", "))
        database.execute(f"CREATE TABLE trades ({kinds})")
        database.execute(f"COPY trades FROM '{FOLDER / 'trades.csv'}' (HEADER)")
        for number, text in enumerate(written):
            expected = [tuple(map(_plain, row)) for row in database.execute(text).fetchall()]
            found = rows_of(results.arrow(f"q{number}"))
            assert len(found) == len(expected), text
            assert all(map(alike, found, expected)), (text, found, expected)
