"""`--relation` on the command line: relations from files, in a run, verified, and followed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.command import Command
from support.trades import ROWS, catalog, csv_text

RELATIONS = """
CREATE RELATION listing (symbol STRING, sector STRING);
CREATE NONRETROACTIVE RELATION lots (symbol STRING, lot BIGINT);
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A catalog with a relation of each kind, and their data."""
    queries = catalog(
        sectors="SELECT l.sector, sum(t.volume) AS volume FROM trades [RANGE 1 minute SLIDE 20 seconds] t"
        " LEFT JOIN listing l ON t.symbol = l.symbol GROUP BY l.sector",
        lots="SELECT sum(t.volume * l.lot) AS shares FROM trades [TUMBLE 1 minute] t"
        " JOIN lots l ON t.symbol = l.symbol",
    )
    head, rest = queries.split("CREATE QUERY", 1)
    (tmp_path / "c.cql").write_text(f"{head}{RELATIONS}CREATE QUERY{rest}", encoding="utf-8")
    symbols = sorted({str(row[1]) for row in ROWS})
    (tmp_path / "listing.csv").write_text("symbol,sector\n" + f"{symbols[0]},bank\n")
    (tmp_path / "lots.jsonl").write_text("\n".join(json.dumps({"symbol": symbol, "lot": 10}) for symbol in symbols))
    (tmp_path / "trades.csv").write_text(csv_text(), encoding="utf-8")
    return tmp_path


def given(shelf: Path, trades: str = "trades.csv") -> list[object]:
    relations = ["--relation", f"listing={shelf / 'listing.csv'}", "--relation", f"lots={shelf / 'lots.jsonl'}"]
    return [shelf / "c.cql", "--stream", f"trades={shelf / trades}", *relations]


def test_a_run_joins_them_and_verify_agrees(windloom: Command, shelf: Path) -> None:
    outcome = windloom("verify", *given(shelf))
    assert outcome.code == 0, outcome
    assert outcome.out.count("equal Spark's own window()") == 2
    shown = windloom("run", *given(shelf), "--dry-run")
    assert "Relation listing: retroactive" in shown.out
    assert "Relation lots: non-retroactive" in shown.out


def test_a_stream_reads_files_again_when_they_have_changed(windloom: Command, shelf: Path) -> None:
    (shelf / "in").mkdir()
    command = ["run", *given(shelf, "in/*.csv"), "--follow", "--trigger", "now", "--out", shelf / "out", "--json"]
    for number, rows in enumerate((ROWS[:15], ROWS[15:])):
        (shelf / "in" / f"{number}.csv").write_text(csv_text(rows))
        outcome = windloom(*command, *(["--finish"] if number else []))
        assert outcome.code == 0, outcome.err
        told = json.loads(outcome.out.splitlines()[-1])["relations"]
        (shelf / "listing.csv").write_text("symbol,sector\n" + "".join(f"{row[1]},tech\n" for row in ROWS[:3]))
    assert (told["listing"]["version"], told["lots"]["version"]) == (2, 2), "another process has seen lots anew"
    tables = json.loads((shelf / "out" / "_manifest.json").read_text())["tables"]
    rows_ = [row for name in tables for row in pq.read_table(shelf / "out" / name).to_pylist()]
    sectors = {row["sector"] for row in rows_ if row["query"] == "sectors"}
    assert sectors == {"bank", "tech", None}


def test_mistakes_are_told_before_spark_starts(refused: Callable[..., str], shelf: Path) -> None:
    path = shelf / "listing.csv"
    assert "the catalog has no relation 'listin'" in refused("run", shelf / "c.cql", "--relation", f"listin={path}")
    said = refused("run", shelf / "c.cql", "--stream", f"listing={path}")
    assert "the catalog has no stream 'listing'" in said
    assert f"write --relation listing={path}" in said
    said = refused("run", shelf / "c.cql", "--relation", "listing=nowhere.csv")
    assert "relation 'listing': there is no file or directory 'nowhere.csv'" in said
    (shelf / "wrong.csv").write_text("symbol,sectr\na,b\n")
    said = refused("run", shelf / "c.cql", "--relation", f"listing={shelf / 'wrong.csv'}")
    assert "relation 'listing' is declared with a column 'sector', and its data has no such column" in said
