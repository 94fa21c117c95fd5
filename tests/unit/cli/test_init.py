"""`windloom init`: a catalog that parses, whatever the columns are called, with the event time guessed and said."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from windloom.cli.init import guess_time, init
from windloom.cli.main import cli
from windloom.errors import WindloomError
from windloom.language.catalog import parse_catalog

NOW = datetime(2026, 1, 5, tzinfo=UTC)
INSTANT = pa.array([NOW], pa.timestamp("us", tz="UTC"))


def written(tmp_path: Path, file: Path, *given: str) -> tuple[str, str]:
    out = tmp_path / "made.cql"
    done = CliRunner().invoke(init, [str(file), "--out", str(out), *given], catch_exceptions=False)
    assert done.exit_code == 0
    return out.read_text(), done.output


def test_a_csv_becomes_a_catalog_that_parses(tmp_path: Path) -> None:
    file = tmp_path / "My trades.csv"
    file.write_text("ts,symbol,price,volume\n2026-01-05 00:00:00,A,1.5,7\n")
    text, said = written(tmp_path, file)
    catalog = parse_catalog(text)
    stream = catalog.streams[0].stream
    assert (stream.name, stream.time) == ("my_trades", "ts")
    assert {name: kind.name for name, kind in stream.columns.items()} == {
        "ts": "timestamp",
        "symbol": "string",
        "price": "double",
        "volume": "bigint",
    }
    assert [query.name for query in catalog.parse()] == ["per_minute", "last_hour"]
    assert "event time ts (the only timestamp)" in said
    assert "windloom run" in said


def test_columns_may_be_called_anything(tmp_path: Path) -> None:
    names = ["date", "order", "group", "from", "select", "a b", "1st", "ä`b", "window", "range", "time", "Query", "by"]
    rows = pa.table({"when": INSTANT, **{name: pa.array([1.0]) for name in names}, "where": pa.array(["x"])})
    pq.write_table(rows, tmp_path / "odd.parquet")
    text, _ = written(tmp_path, tmp_path / "odd.parquet", "--name", "table")
    catalog = parse_catalog(text)
    assert list(catalog.streams[0].stream.columns) == ["when", *names, "where"]
    assert len(catalog.parse()) == 2


def test_nested_columns_and_bytes_are_declared_as_spark_reads_them(tmp_path: Path) -> None:
    columns = {
        "ts": INSTANT,
        "s": pa.array([{"a": 1, "b c": [{"x": "y"}]}]),
        "m": pa.array([[("a", [1.5])]], pa.map_(pa.string(), pa.list_(pa.float64()))),
        "d": pa.array([1], pa.duration("us")),
        "f": pa.array([[1, 2]], pa.list_(pa.int32(), 2)),
        "b": pa.array([b"ab"], pa.binary(2)),
        "last": pa.array([1]),
    }
    pq.write_table(pa.table(columns), tmp_path / "nested.parquet")
    text, _ = written(tmp_path, tmp_path / "nested.parquet")
    found = parse_catalog(text).streams[0].stream.columns
    assert {name: kind.name.replace(" ", "") for name, kind in found.items()} == {
        "ts": "timestamp",
        "s": "struct<a:bigint,`bc`:array<struct<x:string>>>",
        "m": "map<string,array<double>>",
        "d": "bigint",
        "f": "array<int>",
        "b": "binary",
        "last": "bigint",
    }


@pytest.mark.parametrize("as_int96", [True, False], ids=["as Spark writes them", "as Arrow writes them"])
def test_nanoseconds_are_a_time(tmp_path: Path, as_int96: bool) -> None:
    rows = pa.table({"ts": pa.array([datetime(2026, 1, 5, tzinfo=UTC)], pa.timestamp("ns", tz="UTC")), "n": [1]})
    pq.write_table(rows, tmp_path / "t.parquet", use_deprecated_int96_timestamps=as_int96)
    text, _ = written(tmp_path, tmp_path / "t.parquet")
    assert "TIME ts" in text


def test_the_commands_it_prints_can_be_pasted(tmp_path: Path) -> None:
    file = tmp_path / "a b.csv"
    file.write_text("ts,x\n2026-01-05,1\n")
    text, said = written(tmp_path, file, "--name", "my trades")
    assert f"windloom run {tmp_path / 'made.cql'} --stream 'my trades={file}'" in said
    assert f"windloom run {tmp_path / 'made.cql'} --stream 'my trades={file}'" in text


@pytest.mark.parametrize(
    ("columns", "column", "unit"),
    [
        ({"created_at": INSTANT, "x": [1]}, "created_at", None),
        ({"updated": INSTANT, "ts": INSTANT}, "ts", None),
        ({"id": [5], "t": [1_767_571_200]}, "t", "s"),
        ({"id": [5], "t": [1_767_571_200_000]}, "t", "ms"),
        ({"t": [1_767_571_200_000_000], "x": [1.5]}, "t", "us"),
        ({"day": [date(2026, 1, 5)], "x": [1]}, "day", None),
    ],
)
def test_the_time_is_guessed(columns: dict[str, Any], column: str, unit: str | None) -> None:
    found = guess_time(pa.table(columns))
    assert (found.column, found.unit) == (column, unit)


def test_without_a_time_it_says_what_there_is() -> None:
    with pytest.raises(WindloomError, match="no column looks like a time") as refused:
        guess_time(pa.table({"x": [1], "name": ["a"]}))
    assert "x int64" in refused.value.detail


def test_nothing_is_overwritten_and_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts,x\n2026-01-05,1\n")
    (tmp_path / "t.cql").write_text("mine")
    runner = CliRunner()
    for given, words in {
        ("t.csv", "t.cql"): "is there already",
        ("none.csv", "n.cql"): "cannot read",
        ("t.cql", "n.cql"): "cannot read",
    }.items():
        done = runner.invoke(init, [str(tmp_path / given[0]), "--out", str(tmp_path / given[1])])
        assert isinstance(done.exception, WindloomError)
        assert words in done.exception.message
    assert (tmp_path / "t.cql").read_text() == "mine"


def test_without_arguments_it_says_what_it_can_do() -> None:
    said = CliRunner().invoke(cli, []).output
    for command in ("demo", "init", "explain", "run", "verify", "serve"):
        assert f"windloom {command} " in said
