"""A wide table over time: a row per key and instant, as many joins of the answers would give it."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.files import follow, put
from support.trades import ROWS, trades
from windloom import Loom, WindloomError
from windloom.engine import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Slides that meet often, seldom and at other offsets; two columns; NULL as a key.
QUERIES = {
    "fine": "SELECT symbol, sum(volume) AS v FROM trades [RANGE 30 s SLIDE 10 s] GROUP BY symbol",
    "coarse": "SELECT symbol, count(*) AS n, max(price) AS high FROM trades [TUMBLE 1 minute] GROUP BY symbol",
    "odd": "SELECT symbol, avg(price) AS p FROM trades [RANGE 25 s SLIDE 35 s OFFSET 3 s]"
    " WHERE volume > 3 GROUP BY symbol",
    "ever": "SELECT symbol, count(*) AS n FROM trades [LANDMARK SLIDE 1 minute] GROUP BY symbol",
}
COLUMNS = ["fine", "coarse_n", "coarse_high", "odd", "ever"]
HOLEY = [(ts, None if i % 7 == 3 else symbol, *rest) for i, (ts, symbol, *rest) in enumerate(ROWS)]


def declared(spark: SparkSession, frame: Any) -> Loom:
    loom = Loom(spark)
    loom.stream("trades", frame, time="ts")
    for name, text in QUERIES.items():
        loom.query(name, text)
    loom.table("wide", by="symbol", queries=list(QUERIES))
    return loom


def by_definition(answers: dict[str, pa.Table], windows: dict[str, Any]) -> list[tuple[Any, ...]]:
    """For every instant, the table as of it: the last window of each query that ends at or before it."""
    columns = {"fine": ["v"], "coarse": ["n", "high"], "odd": ["p"], "ever": ["n"]}
    found: dict[str, dict[int, dict[Any, list[Any]]]] = {}
    for name, table in answers.items():
        ends = table["window_end"].cast(pa.int64()).to_pylist()
        for end, row in zip(ends, table.to_pylist(), strict=True):
            found.setdefault(name, {}).setdefault(end, {})[row["symbol"]] = [row[column] for column in columns[name]]
    rows = []
    for instant in sorted(set(chain.from_iterable(ends for ends in found.values()))):
        values: dict[Any, dict[str, list[Any]]] = {}
        for name, ends in found.items():
            end = windows[name].last_start(instant - windows[name].range_ticks) + windows[name].range_ticks
            for symbol, outputs in ends.get(end, {}).items():
                values.setdefault(symbol, {})[name] = outputs
        for symbol, of in values.items():
            flat = chain.from_iterable(of.get(name, [None] * len(columns[name])) for name in columns)
            rows.append((instant, symbol, *flat))
    return rows


def listed(table: pa.Table) -> list[tuple[Any, ...]]:
    assert table.column_names == ["watermark", "symbol", *COLUMNS]
    ticks = table["watermark"].cast(pa.int64()).to_pylist()
    return list(zip(ticks, *(table[name].to_pylist() for name in table.column_names[1:]), strict=True))


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_there_is_a_row_per_key_and_instant_as_the_definition_says(
    spark: SparkSession, tmp_path: Path, placement: str
) -> None:
    loom = declared(spark, trades(spark, HOLEY))
    results = loom.run(placement=placement)
    windows = {name: loom.queries[name].window for name in QUERIES}
    expected = by_definition({name: results.rows(name) for name in QUERIES}, windows)
    every = listed(results.table("wide", at="every"))
    assert in_order(every) == in_order(expected)
    for symbol in {row[1] for row in every}:
        instants = [row[0] for row in every if row[1] == symbol]
        assert instants == sorted(instants)
    stored = loom.run(placement=placement, out=tmp_path / "out")
    assert in_order(listed(stored.table("wide", at="every"))) == in_order(expected)
    (latest,) = {row[0] for row in listed(results.table("wide"))}
    end = max(instant for instant, *_ in expected if instant <= latest)
    assert in_order([row[1:] for row in expected if row[0] == end]) == in_order(
        [row[1:] for row in listed(results.table("wide"))]
    )
    with pytest.raises(WindloomError, match="cannot be read at='each'"):
        results.table("wide", at="each")


def test_a_stream_has_the_rows_up_to_where_all_queries_are_answered(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", HOLEY[:15])
    loom = declared(spark, follow(spark, tmp_path / "in"))
    handle = loom.start("memory", checkpoint=tmp_path / "checkpoint")
    handle.process_all_available()
    whole = in_order(listed(declared(spark, trades(spark, HOLEY)).run().table("wide", at="every")))
    begun = listed(handle.table("wide", at="every"))
    assert begun
    assert set(begun) <= set(whole)
    handle.stop()
    put(tmp_path / "in", "001", HOLEY[15:])
    again = declared(spark, follow(spark, tmp_path / "in"))
    kept = {"path": tmp_path / "out", "checkpoint": tmp_path / "another"}
    handle = again.start("parquet", trigger={"availableNow": True}, finish=True, **kept)
    assert handle.await_termination(300)
    assert in_order(listed(handle.table("wide", at="every"))) == whole


def test_a_sink_of_the_latest_rows_says_that_it_has_no_others(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "000", ROWS)
    loom = declared(spark, follow(spark, tmp_path / "in"))
    handle = loom.start("live", trigger={"availableNow": True}, finish=True)
    assert handle.await_termination(300)
    assert handle.table("wide").num_rows > 0
    with pytest.raises(WindloomError, match="keeps the latest rows only"):
        handle.table("wide", at="every")


def test_no_answers_are_an_empty_table(spark: SparkSession) -> None:
    results: Results = declared(spark, trades(spark, HOLEY).where("false")).run()
    assert results.table("wide", at="every").num_rows == 0
