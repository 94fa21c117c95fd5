"""Answers as Parquet: few files, one table a shape, a manifest that tells the truth, all of it or nothing."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.trades import WINDOW, trades
from windloom import Loom, WindloomError
from windloom.engine import Results
from windloom.sinks.parquet import ParquetStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The files about the tables, for ourselves and for other readers.
ABOUT = ["_common_metadata", "_manifest.json", "columns.parquet"]
PLACEMENTS = ["driver", "executors"]

QUERIES = {
    "flow": "SELECT symbol, sum(volume) AS volume, count(*) AS n … GROUP BY symbol",
    "slow flow": "SELECT symbol, sum(volume) AS volume, count(*) AS n FROM trades [TUMBLE 1 minute] GROUP BY symbol",
    "busy": "SELECT symbol, sum(volume) AS volume, count(*) AS n … GROUP BY symbol HAVING count(*) > 1",
    "filled": "SELECT symbol, coalesce(sum(volume), 0L) AS volume, count(*) AS n … WHERE price > 12 GROUP BY symbol",
    "vwap": "SELECT symbol, sum(price * volume) / sum(volume) AS `vwap (in %, {x})` … GROUP BY symbol",
    "times": "SELECT ts, max(date(ts)) AS `dáy`, min(CAST(price AS DECIMAL(10,2))) AS low … GROUP BY ts",
    "nothing": "SELECT symbol AS who, max(price) AS high … WHERE volume < 0 GROUP BY symbol",
    "no group": "SELECT symbol AS nobody, max(ts) AS last … GROUP BY symbol HAVING count(*) > 1000",
}
TABLE_OF_FLOW = {"query": "string", "window_start": "timestamp", "window_end": "timestamp"}
TABLE_OF_FLOW |= {"symbol": "string", "volume": "bigint", "n": "bigint"}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    cached = trades(spark).persist()
    cached.count()
    yield cached
    cached.unpersist()


def woven(frame: DataFrame, queries: dict[str, str]) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts")
    for name, text in queries.items():
        loom.query(name, text.replace("…", WINDOW))
    return loom


@pytest.fixture(scope="module")
def loom(frame: DataFrame) -> Loom:
    return woven(frame, QUERIES)


@pytest.fixture(scope="module")
def in_memory(loom: Loom) -> Results:
    return loom.run()


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_tables_hold_what_the_same_run_answers_in_memory(
    spark: SparkSession, loom: Loom, in_memory: Results, tmp_path: Path, placement: str
) -> None:
    out = tmp_path / "new" / "answers [1]"
    stored = loom.run(placement=placement, out=out)
    assert stored.stats.results == in_memory.stats.results
    expected = {name: in_memory.arrow(name) for name in QUERIES}
    for name, table in expected.items():
        found = stored.arrow(name)
        assert found.schema.equals(table.schema)
        assert rows(found) == rows(table)
    assert stored["busy"].dtypes == in_memory["busy"].dtypes

    tables = json.loads((out / "_manifest.json").read_text(encoding="utf-8"))["tables"]
    assert sorted(path.name for path in out.iterdir()) == sorted([*tables, *ABOUT])
    flow = next(name for name in tables if name.startswith("table=symbol_volume_n"))
    assert tables[flow] == {"columns": TABLE_OF_FLOW, "queries": ["busy", "filled", "flow", "slow flow"]}
    for name, entry in tables.items():
        read = pq.read_table(out / name)
        assert read.column_names == list(entry["columns"])
        counted = Counter(read["query"].to_pylist())
        assert counted == {query: n for query in entry["queries"] if (n := expected[query].num_rows)}
        literal = str(out / name).replace("[", "\\[").replace("]", "\\]")
        assert dict(spark.read.parquet(f"file://{literal}").dtypes) == entry["columns"]
    assert len(files(out)) == len(tables) + len(ABOUT), "one file a table where the rows are few"


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_hundreds_of_queries_are_a_handful_of_files(frame: DataFrame, tmp_path: Path, placement: str) -> None:
    text = "SELECT max(price) AS m, count(*) AS n FROM trades [RANGE {} s SLIDE 5 s]"
    queries = {f"q{i}": text.format(i + 1) for i in range(300)}
    queries |= {f"h{i}": f"SELECT symbol, count(*) AS n … GROUP BY symbol HAVING count(*) > {i}" for i in range(8)}
    results = woven(frame, queries).run(placement=placement, out=tmp_path / "out")
    assert len(files(tmp_path / "out")) == 2 + len(ABOUT)
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert manifest["format"] == "windloom-answers/2"
    assert sorted(len(table["queries"]) for table in manifest["tables"].values()) == [8, 300]
    assert results.arrow("q299").num_rows > results.arrow("q0").num_rows > 0
    assert results.arrow("h7").num_rows == 0


def test_an_empty_directory_is_filled_and_stays_the_same_directory(loom: Loom, tmp_path: Path) -> None:
    before = os.stat(tmp_path).st_ino
    results = loom.run(out=tmp_path)
    assert os.stat(tmp_path).st_ino == before, "it may be the root of a volume, or somebody's working directory"
    assert (tmp_path / "_manifest.json").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert results.arrow("flow").num_rows > 0


def test_relative_paths_are_those_of_python(loom: Loom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the JVM stays where it was started
    results = loom.run(placement="executors", out="answers")
    assert (tmp_path / "answers" / "_manifest.json").exists()
    monkeypatch.chdir("/")
    assert results.arrow("flow").num_rows > 0


@pytest.mark.parametrize(("place", "placement"), [("new/out", "driver"), ("empty", "driver"), ("empty", "executors")])
def test_a_run_that_fails_leaves_everything_as_it_was(
    frame: DataFrame, tmp_path: Path, placement: str, place: str
) -> None:
    (tmp_path / "empty").mkdir()
    huge = frame.selectExpr("ts", "symbol", "price", "if(volume > 25, 9223372036854775807, volume) AS volume")
    loom = woven(huge, {"n": "SELECT count(*) AS n …", "flow": QUERIES["flow"]})
    with pytest.raises(WindloomError, match="query 'flow': a value does not fit its type"):
        loom.run(placement=placement, out=tmp_path / place)
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*")] == [Path("empty")]


@pytest.mark.parametrize("step", ["write", "_complete", "_publish"])
def test_a_disk_that_is_full_is_an_error_and_leaves_nothing(
    loom: Loom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ParquetStore, step, full)
    with pytest.raises(WindloomError) as caught:
        loom.run(out=tmp_path / "a" / "out")
    assert caught.value.message == f"cannot write to '{tmp_path / 'a' / 'out'}'"
    assert "No space left on device" in caught.value.detail
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_stopped_leaves_nothing(loom: Loom, tmp_path: Path) -> None:
    def stop(line: str) -> None:
        if "written" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loom.run(out=tmp_path / "out", progress=stop)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_does_not_stand_in_the_way(loom: Loom, tmp_path: Path) -> None:
    left = tmp_path / f".out.unfinished-{os.getpid()}" / "old"
    left.mkdir(parents=True)
    loom.run(out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not (tmp_path / "out" / "old").exists()


def test_a_place_below_a_file_is_refused_before_anything_runs(loom: Loom, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said: list[str] = []
    with pytest.raises(WindloomError, match="cannot write to"):
        loom.run(out=tmp_path / "file" / "out", progress=said.append)
    assert not [line for line in said if not line.startswith("planning")]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
