"""The first day at work on the command line: each test begins where a user of PySpark began."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import Command
from support.trades import ROWS, STREAM, catalog, csv_text


def test_rows_without_a_time_are_counted_in_one_line(
    windloom: Command, refused: Callable[..., str], desk: Path
) -> None:
    text = csv_text(ROWS[:20]) + ",A,1.0,1\n,B,2.0,2\n"
    (desk / "trades.csv").write_text(text, encoding="utf-8")
    given = ("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}")
    outcome = windloom(*given, "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["untimed"] == 2
    (said,) = (line for line in outcome.err.splitlines() if "warning" in line)
    assert said.startswith("… warning: stream 'trades': 2 rows are in no window, because the time is NULL")
    assert windloom("verify", *given[1:]).code == 0
    assert "in 2 of its rows" in refused(*given, "--untimed", "stop")
    assert "unknown choice untimed='drop'" in refused(*given, "--untimed", "drop")


def test_answers_are_listed_and_shown_without_spark(windloom: Command, refused: Callable[..., str], desk: Path) -> None:
    out = desk / "out"
    given = (desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}", "--out", out)
    assert f"windloom show {out}" in windloom("run", *given).out
    listed = windloom("show", out)
    assert (listed.code, listed.err) == (0, "")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["query", "busy", "flow", "high"]
    rows = {entry["query"]: entry["rows"] for entry in json.loads(windloom("show", out, "--json").out)}
    shown = windloom("show", out, "flow", "--limit", "3").out.splitlines()
    assert shown[0].split()[:3] == ["window_start", "window_end", "symbol"]
    assert shown[-1] == f"the latest 3 of {rows['flow']:,} rows; --limit N shows more"
    told = json.loads(windloom("show", out, "flow", "--limit", "9999", "--json").out)
    assert len(told["latest"]) == told["rows"] == rows["flow"]
    assert "did you mean 'flow'" in refused("show", out, "flaw")
    assert "there is no such directory" in refused("show", desk / "none")
    assert "--limit is 0" in refused("show", out, "flow", "--limit", "0")


#: Catalogs and options that `windloom run --follow` and `windloom serve` refuse once the data is read.
REFUSED_STARTS = {
    "a catalog without a query": (STREAM, (), "there is no query"),
    "a sink that cannot take a query": (
        catalog(
            flow="SELECT symbol, count(*) AS n … GROUP BY symbol",
            counted="SELECT count(*) AS n FROM trades [ROWS 10 SLIDE 5]",
        ),
        ("--sink", "current={}/now"),
        "query 'counted' has no present result",
    ),
    "a sink that is not there": (
        catalog(flow="SELECT symbol, count(*) AS n … GROUP BY symbol"),
        ("--sink", "current={}/now", "--sink", "postgres=postgresql://nobody@127.0.0.1:1/none"),
        "PostgreSQL at",
    ),
    "going on without a query of the catalog": (
        catalog(flow="SELECT symbol, count(*) AS n … GROUP BY symbol"),
        ("--without", "flow", "--checkpoint", "{}/begun"),
        "the stream cannot go on without query 'flow'",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED_STARTS)
@pytest.mark.parametrize("command", ["run --follow", "serve"])
def test_a_stream_that_is_refused_leaves_no_trace(
    windloom: Command, refused: Callable[..., str], tmp_path: Path, mistake: str, command: str
) -> None:
    text, options, said = REFUSED_STARTS[mistake]
    (tmp_path / "desk.cql").write_text(text, encoding="utf-8")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text(csv_text(), encoding="utf-8")
    given = [
        *command.split(),
        tmp_path / "desk.cql",
        "--stream",
        f"trades={tmp_path / 'in'}",
        "--out",
        tmp_path / "out",
    ]
    if "{}/begun" in options:
        first = ("run", "--follow", *given[-4:], "--checkpoint", tmp_path / "begun", "--trigger", "now")
        assert windloom(*first[:2], tmp_path / "desk.cql", *first[2:]).code == 0
    port = ("--port", "18470") if command == "serve" else ()
    assert said in refused(*given, *port, *(option.format(tmp_path) for option in options))
