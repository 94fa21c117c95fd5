"""`windloom run`: data of every format in, figures and tables out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command import Command
from support.trades import COLUMNS, ROWS, csv_text


def records() -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]


def as_json(row: dict[str, Any]) -> str:
    return json.dumps({**row, "ts": f"{row['ts']:%Y-%m-%dT%H:%M:%SZ}"})


def put(folder: Path, form: str) -> Path:
    """The trades in one of the formats; a file, or a directory of files."""
    path = folder / form
    match form:
        case "plain.csv":
            path.write_text(csv_text(header=False))
        case "header.csv":
            path.write_text(csv_text())
        case "packed.csv.gz":
            path.write_bytes(gzip.compress(csv_text().encode()))
        case "tabs.tsv":
            path.write_text(csv_text().replace(",", "\t"))
        case "lines.jsonl":
            path.write_text("\n".join(map(as_json, records())))
        case "file.parquet":
            pq.write_table(pa.Table.from_pylist(records()), path)
        case "folder":
            path.mkdir()
            for part, chosen in enumerate((records()[:11], records()[11:])):
                pq.write_table(pa.Table.from_pylist(chosen), path / f"part-{part}.parquet")
            (path / "_SUCCESS").touch()
    return path


FORMS = ["plain.csv", "header.csv", "packed.csv.gz", "tabs.tsv", "lines.jsonl", "file.parquet", "folder"]


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_answers(windloom: Command, desk: Path, form: str) -> None:
    given = ("--stream", f"trades={put(desk, form)}")
    outcome = windloom("run", desk / "desk.cql", *given, "--out", desk / "out", "--json")
    assert outcome.code == 0, outcome.err
    figures = json.loads(outcome.out)
    assert {key: figures[key] for key in ("events", "queries", "late_dropped", "out")} == {
        "events": 30,
        "queries": 3,
        "late_dropped": 0,
        "out": str(desk / "out"),
    }
    tables = json.loads((desk / "out" / "_manifest.json").read_text())["tables"]
    flow = next(name for name, table in tables.items() if "flow" in table["queries"])
    rows = pq.read_table(desk / "out" / flow).filter(pa.compute.field("query") == "flow")
    assert sum(rows["n"].to_pylist()) == 3 * 30  # each trade lies in three windows
    assert sum(rows["volume"].to_pylist()) == 3 * sum(row["volume"] for row in records())


def test_json_is_alone_on_stdout_and_progress_on_stderr(windloom: Command, desk: Path) -> None:
    outcome = windloom("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}", "--json")
    figures = json.loads(outcome.out)
    assert figures["placement"] == "driver"
    assert figures["out"] is None
    assert set(figures["seconds"]) == {"plan", "partials", "merge", "answers"}
    assert figures["total_seconds"] == pytest.approx(sum(figures["seconds"].values()))
    assert outcome.err.splitlines()[:2] == ["… starting Spark", "… planning 3 queries"]


def test_without_an_output_directory_a_few_rows_are_shown(windloom: Command, desk: Path) -> None:
    before = sorted(desk.rglob("*"))
    outcome = windloom("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}")
    assert outcome.code == 0
    assert outcome.out.startswith("3 queries, ")
    assert "30 events → " in outcome.out
    assert "flow: SELECT symbol, sum(volume) AS volume, count(*) AS n FROM trades [RANGE" in outcome.out
    assert "window_start               window_end                 symbol  volume  n\n" in outcome.out
    assert "2026-01-04 23:59:40+00:00  2026-01-05 00:00:10+00:00  A       1       1\n" in outcome.out
    assert outcome.out.endswith("give --out DIR to keep all answers\n")
    assert sorted(desk.rglob("*")) == before


def test_placement_and_plan_can_be_chosen(windloom: Command, desk: Path) -> None:
    chosen = ("--placement", "executors", "--strategy", "no_share", "--slicing", "cutty", "--technique", "recalculate")
    given = ("--stream", f"trades={desk / 'trades.csv'}", "--out", desk / "a" / "b")
    outcome = windloom("run", desk / "desk.cql", *given, *chosen)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("3 queries, 3 trees (no_share): 30 events")
    assert f"written to {desk / 'a' / 'b'}" in outcome.out
    assert (desk / "a" / "b" / "_manifest.json").exists()


def test_a_dry_run_checks_and_shows_the_plan_and_writes_nothing(windloom: Command, desk: Path) -> None:
    given = ("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}", "--out", desk / "out", "--dry-run")
    text = windloom(*given)
    assert text.code == 0
    assert text.out.startswith("Plan: 3 queries, 1 stream")
    data = windloom(*given, "--json")
    assert json.loads(data.out)["counts"]["queries"] == 3
    assert not (desk / "out").exists()


def test_paths_with_odd_characters_are_taken_as_they_are(windloom: Command, desk: Path) -> None:
    folder = desk / "odd [1] {x} *"
    folder.mkdir()
    data = put(folder, "file.parquet")
    given = ("--stream", f"trades={data}", "--out", folder / "out", "--placement", "executors")
    outcome = windloom("run", desk / "desk.cql", *given)
    assert outcome.code == 0, outcome.err
    assert (folder / "out" / "_manifest.json").exists()
