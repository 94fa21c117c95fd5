"""User errors on the command line: exit code 2, a message that names the thing, no traceback, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.bad_input import BAD_QUERIES
from support.command import Command
from support.trades import ROWS, STREAM, catalog, csv_text

Refused = Callable[..., str]


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return put(tmp_path, "trades.csv", csv_text())


@pytest.mark.parametrize("mistake", BAD_QUERIES)
def test_a_mistake_in_a_query_is_explained(refused: Refused, tmp_path: Path, data: Path, mistake: str) -> None:
    text, words = BAD_QUERIES[mistake]
    path = put(tmp_path, "c.cql", catalog(good="SELECT count(*) …", wrong=text))
    said = refused("run", path, "--stream", f"trades={data}", "--out", tmp_path / "out")
    assert "query 'wrong'" in said
    for word in words:
        assert word in said


CATALOGS = {
    "a query name used twice": (
        catalog(same="SELECT count(*) …") + "CREATE QUERY same AS SELECT max(price) FROM trades [TUMBLE 1 hour];",
        ("query 'same' is created twice", "line 2"),
    ),
    "a stream name used twice": (STREAM + STREAM, ("stream 'trades' is created twice",)),
    "an empty catalog": ("", ("no CREATE STREAM or CREATE QUERY",)),
    "a catalog of comments": ("-- nothing yet\n", ("no CREATE STREAM or CREATE QUERY",)),
    "a catalog without queries": (STREAM, ("there is no query to plan",)),
    "a time column that is not declared": (STREAM.replace("TIME ts", "TIME at"), ("'at'",)),
    "an integer time without a unit": (STREAM.replace("ts TIMESTAMP", "ts BIGINT"), ("'ts'", "UNIT", "ms")),
    "a delay of months": (STREAM.replace("10 seconds", "1 month"), ("'month'", "fixed length")),
}


@pytest.mark.parametrize("mistake", CATALOGS)
def test_a_mistake_in_a_catalog_is_explained(refused: Refused, tmp_path: Path, data: Path, mistake: str) -> None:
    text, words = CATALOGS[mistake]
    path = put(tmp_path, "c.cql", text)
    for command in (("run", "--out", tmp_path / "out"), ("explain",), ("verify",)):
        said = refused(command[0], path, "--stream", f"trades={data}", *command[1:])
        for word in words:
            assert word in said


def test_a_catalog_that_is_not_there(refused: Refused, tmp_path: Path) -> None:
    for command in ("run", "explain", "verify"):
        assert f"cannot read the catalog '{tmp_path / 'no.cql'}'" in refused(command, tmp_path / "no.cql")


ARGUMENTS = {
    "an unknown strategy": (
        ("--strategy", "weave_shar"),
        ("unknown strategy 'weave_shar'", "did you mean 'weave_share'"),
    ),
    "an unknown slicing": (("--slicing", "pair"), ("unknown slicing 'pair'", "did you mean 'pairs'")),
    "an unknown technique": (("--technique", "slick"), ("unknown technique 'slick'", "did you mean 'slick_deque'")),
    "a technique that an aggregate does not allow": (
        ("--technique", "prefix_ring"),
        ("'prefix_ring' cannot evaluate", "max(price)", "invertible", "block_decomposition"),
    ),
    "an unknown placement": (("--placement", "cloud"), ("unknown placement 'cloud'", "executors")),
    "a stream that is not in the catalog": (("--stream", "quotes=x.csv"), ("no stream 'quotes'", "trades")),
    "a relation where none is declared": (
        ("--relation", "shop=x.csv"),
        ("no relation 'shop'", "creates no relation", "declare it in the catalog: CREATE RELATION shop ("),
    ),
    "a stream given twice": (("--stream", "trades=other.csv"), ("--stream 'trades' is given twice", "other.csv")),
    "a stream without a path": (("--stream", "quotes"), ("cannot read --stream 'quotes'", "NAME=PATH")),
    "a stream without a name": (("--stream", "=x.csv"), ("cannot read --stream '=x.csv'", "NAME=PATH")),
    "a setting without a value": (("--conf", "spark.x"), ("cannot read --conf 'spark.x'", "KEY=VALUE")),
}


@pytest.mark.parametrize("mistake", ARGUMENTS)
def test_a_mistake_in_the_arguments_is_explained(refused: Refused, desk: Path, mistake: str) -> None:
    given, words = ARGUMENTS[mistake]
    said = refused("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}", "--out", desk / "out", *given)
    for word in words:
        assert word in said


@pytest.mark.parametrize("arguments", ["fly", "run", "explain desk.cql --format pdf", "run desk.cql --speed 9"])
def test_what_click_refuses_has_the_same_exit_code(windloom: Command, arguments: str) -> None:
    outcome = windloom(*arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert "Traceback" not in outcome.err


def test_data_that_are_not_there(refused: Refused, desk: Path) -> None:
    said = refused("run", desk / "desk.cql", "--stream", f"trades={desk / 'no.csv'}", "--out", desk / "out")
    assert f"stream 'trades': there is no file or directory '{desk / 'no.csv'}'" in said


def test_a_stream_without_data(refused: Refused, desk: Path) -> None:
    for command in ("run", "verify"):
        said = refused(command, desk / "desk.cql")
        assert "stream 'trades' has no data" in said
        assert "--stream trades=PATH" in said


LATE = ROWS[0][0]
DATA = {
    "a time that cannot be read": (csv_text().replace("2026-01-05 00:00:07", "yesterday"), "'yesterday'"),
    "a number that cannot be read": (csv_text().replace(",A,10.0", ",A,ten"), '"ten"'),
    "a line that breaks off": (csv_text() + "2026-01-05 00:00:07,A\n", "Malformed CSV record"),
    "a declared column that is missing": (csv_text().replace("price", "preis"), "column 'price'"),
    "no header and too few columns": ("2026-01-05 00:00:07,A,1.5\n", "declared are 4 columns"),
    "a sum that does not fit": (csv_text([*ROWS, (LATE, "A", 1.0, 2**63 - 1)]), "query 'flow'"),
}


@pytest.mark.parametrize(
    ("mistake", "placement"), [*((wrong, "driver") for wrong in DATA), ("a sum that does not fit", "executors")]
)
def test_a_mistake_in_the_data_is_explained(refused: Refused, desk: Path, mistake: str, placement: str) -> None:
    text, words = DATA[mistake]
    data = put(desk, "trades.csv", text)
    arguments = ("--stream", f"trades={data}", "--out", desk / "new" / "out", "--placement", placement)
    assert words in refused("run", desk / "desk.cql", *arguments)


def test_a_column_of_another_type_than_declared(refused: Refused, desk: Path) -> None:
    columns = {"ts": pa.array([ROWS[0][0]]), "symbol": ["A"], "price": [1.0], "volume": [1.5]}
    pq.write_table(pa.table(columns), desk / "trades.parquet")
    said = refused("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.parquet'}", "--out", desk / "out")
    assert "column 'volume' is not of its declared type" in said
    assert "declared bigint, and its data is double" in said


@pytest.mark.parametrize(
    ("column", "hint"),
    [
        (pa.array([3_600_000_000], pa.time64("us")), "as text, or as a whole number"),
        (pa.array([3_600_000], pa.time32("ms")), "as text, or as a whole number"),
    ],
)
def test_a_column_of_parquet_that_spark_does_not_read(
    refused: Refused, desk: Path, column: pa.Array, hint: str
) -> None:
    columns = {"ts": pa.array([ROWS[0][0]]), "symbol": ["A"], "price": [1.0], "volume": [1], "more": column}
    pq.write_table(pa.table(columns), desk / "trades.parquet")
    said = refused("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.parquet'}", "--out", desk / "out")
    assert hint in said
    said = refused("init", desk / "trades.parquet", "--out", desk / "new.cql")
    assert "Spark cannot read column 'more'" in said
    assert hint in said


def test_a_division_by_zero_over_aggregates_is_told_in_sparks_words(refused: Refused, desk: Path) -> None:
    path = put(desk, "zero.cql", catalog(zero="SELECT sum(volume) / (count(*) - count(*)) AS x …"))
    for out in ((), ("--out", desk / "out")):
        said = refused("run", path, "--stream", f"trades={desk / 'trades.csv'}", *out)
        assert "Spark cannot evaluate query 'zero'" in said
        assert "[DIVIDE_BY_ZERO]" in said


@pytest.mark.parametrize("held", ["a file", "a directory that is not empty"])
def test_a_place_that_is_taken_is_refused_before_anything_runs(refused: Refused, desk: Path, held: str) -> None:
    out = desk / "out"
    if held == "a file":
        out.write_text("mine", encoding="utf-8")
    else:
        out.mkdir()
        put(out, "mine.txt", "mine")
    said = refused("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}", "--out", out)
    assert str(out) in said
    assert ("it is a file" if held == "a file" else "such as 'mine.txt'") in said


def test_queries_that_are_not_in_the_catalog(refused: Refused, desk: Path) -> None:
    given = ("--stream", f"trades={desk / 'trades.csv'}")
    assert "unknown query 'flaw'" in refused("verify", desk / "desk.cql", *given, "--query", "flaw")
    assert "did you mean 'flow'" in refused("explain", desk / "desk.cql", "--query", "flaw")


def test_one_query_is_shown_as_text_only(refused: Refused, desk: Path) -> None:
    assert "query 'flow' cannot be shown as svg" in refused(
        "explain", desk / "desk.cql", "--query", "flow", "--format", "svg"
    )


def test_a_plan_that_cannot_be_written(refused: Refused, desk: Path) -> None:
    assert "cannot write" in refused("explain", desk / "desk.cql", "--out", desk / "no" / "plan.txt")
