"""`windloom run --follow`: directories as streams, rounds as lines, a stop that loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.command import Command
from support.files import put
from support.places import in_delta
from support.trades import ROWS, catalog, csv_text

Refused = Callable[..., str]


def answers(out: Path) -> list[tuple[Any, ...]]:
    tables = json.loads((out / "_manifest.json").read_text())["tables"]
    found = [row for name in tables for row in pq.read_table(out / name).to_pylist()]
    return sorted((tuple(row.items()) for row in found), key=repr)


def test_rounds_are_json_lines_and_the_same_command_goes_on_where_it_was(windloom: Command, desk: Path) -> None:
    batch = windloom("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}", "--out", desk / "batch")
    assert batch.code == 0, batch.err
    (desk / "in").mkdir()
    (desk / "in" / "0.csv").write_text(csv_text(ROWS[:12]))
    (desk / "in" / "notes.txt").write_text("not data, and it came later")
    given = ("--stream", f"trades={desk / 'in'}/*.csv", "--out", desk / "out", "--trigger", "now", "--json")
    first = windloom("run", desk / "desk.cql", "--follow", *given)
    assert first.code == 0, first.err
    assert [json.loads(line)["events"] for line in first.out.splitlines()] == [12]
    assert f"the checkpoint is {desk / 'out' / '_checkpoint'}: the same command continues" in first.err

    (desk / "in" / "1.csv").write_text(csv_text(ROWS[12:]))
    second = windloom("run", desk / "desk.cql", "--follow", *given, "--finish")
    assert second.code == 0, second.err
    rounds = [json.loads(line) for line in second.out.splitlines()]
    assert [(round_["round"], round_["events"], round_["late_dropped"]) for round_ in rounds] == [(1, 18, 0), (2, 0, 0)]
    assert "ended: 2 rounds, 18 events → " in second.err
    assert "later tuples would be late" in second.err
    assert answers(desk / "out") == answers(desk / "batch")


def test_history_comes_before_the_stream_and_rounds_are_lines(windloom: Command, desk: Path) -> None:
    put(desk / "in", "0", ROWS)
    given = ("--stream", f"trades={desk / 'in'}", "--history", f"trades={desk / 'trades.csv'}", "--trigger", "now")
    outcome = windloom("run", desk / "desk.cql", "--follow", *given, "--handover", "2026-01-05 00:01:00", "--finish")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].startswith("round 0: 9 events → ")
    assert lines[1].startswith("round 1: 21 events → ")
    assert "watermark 2026-01-05 00:03:13, lag " in lines[1]
    assert lines[2].startswith("round 2: 0 events → 0 partials → ")
    assert lines[3].startswith("ended: 3 rounds, 30 events → ")
    assert "high, the latest of each group: SELECT max(price) AS high" in outcome.out
    assert "  2026-01-05 00:03:20+00:00  2026-01-05 00:04:20+00:00  39.0" in lines
    assert not (desk / "out").exists()


def test_an_interrupt_stops_after_the_round_and_says_where_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "desk.cql").write_text(catalog(high="SELECT max(price) AS high …"))
    (tmp_path / "in").mkdir()
    given = ["run", "desk.cql", "--follow", "--stream", "trades=in/*.parquet", "--out", "out"]
    session = ["--cores", "1", "--memory", "1g", "--trigger", "100 ms"]
    process = subprocess.Popen(
        [sys.executable, "-m", "windloom", *given, *session],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        put(tmp_path / "in", "0", ROWS)  # whether it is there at the start or comes later makes no difference
        assert process.stdout.readline().startswith("round 0: 30 events → ")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to Python and to the JVM
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "stopped: 1 round, 30 events → " in out
    assert "the checkpoint is out/_checkpoint: the same command continues from there" in out
    assert err.splitlines() == [
        "… starting Spark",
        "… stopping after the current round; press Ctrl-C again to stop at once",
    ]


ONLY_FOLLOWING = {
    "--checkpoint": "c",
    "--trigger": "now",
    "--keep": "1 day",
    "--idle-after": "1 minute",
    "--epsilon": "0.05",
    "--history": "trades=h",
    "--handover": "2026-01-05",
    "--files": "3",
    "--finish": None,
    "--sink": "delta=lake",
    "--sink-option": "delta.path=lake",
    "--sink-patience": "1 hour",
}


@pytest.mark.parametrize("option", ONLY_FOLLOWING)
def test_options_of_streams_are_refused_without_follow(refused: Refused, desk: Path, option: str) -> None:
    value = ONLY_FOLLOWING[option]
    given = (option,) if value is None else (option, value)
    said = refused("run", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}", *given)
    assert f"{option} is for streams" in said
    assert "add --follow" in said


MISTAKES = {
    "--placement auto": "unknown placement 'auto'",
    "--placement executors": "loom.start runs on the driver, and not on executors",
    "--trigger soon": "cannot read --trigger 'soon'",
    "--finish": "--finish needs a stream that ends",
    "--keep forever": "keep: cannot read the duration 'forever'",
    "--idle-after -5s": "idle_after cannot be negative",
    "--epsilon -1": "the tolerance of an incremental plan cannot be -1",
    "--untimed drop": "unknown choice untimed='drop'",
    "--handover yesterday": "--handover is not an instant",
    "--history trade=x": "the catalog has no stream 'trade'",
    "--sink sqlite=x": "unknown sink 'sqlite'",
    "--sink-option delta.path=x": "no --sink is given",
    "--sink detla=x": "did you mean 'delta'?",
    "--sink delta": "--sink 'delta' does not say where to write",
    "--sink live=x": "the sink 'live' has no target",
    "--sink delta=a --sink delta=b": "--sink 'delta' is given twice",
    "--sink delta=a --sink-option delta": "cannot read --sink-option 'delta'",
    "--sink delta=a --sink-option postgres.schema=b": "for a sink that is not given",
    "--sink delta=a --sink-option delta.shema=b": "the sink 'delta' has no option 'shema'",
    "--sink-patience never": "sink_patience: cannot read the duration 'never'",
}


@pytest.mark.parametrize("given", MISTAKES)
def test_mistakes_are_explained_before_anything_runs(refused: Refused, desk: Path, given: str) -> None:
    (desk / "in").mkdir()
    (desk / "in" / "0.csv").write_text(csv_text())
    place = ("--stream", f"trades={desk / 'in'}", "--out", desk / "out")
    assert MISTAKES[given] in refused("run", desk / "desk.cql", "--follow", *place, *given.split())


def test_a_sink_without_a_checkpoint_is_refused(refused: Refused, desk: Path) -> None:
    given = ("--follow", "--stream", f"trades={desk}/*.csv", "--sink", f"delta={desk / 'lake'}")
    assert "--sink 'delta' needs a checkpoint" in refused("run", desk / "desk.cql", *given)


def test_answers_go_to_sinks_without_parquet(windloom: Command, desk: Path) -> None:
    lake = desk / "lake"
    given = ("--stream", f"trades={desk}/*.csv", "--trigger", "now", "--finish", "--checkpoint", desk / "c")
    outcome = windloom("run", desk / "desk.cql", "--follow", *given, "--sink", f"delta={lake}", "--json")
    assert outcome.code == 0, outcome.err
    rounds = [json.loads(line) for line in outcome.out.splitlines()]
    assert sum(in_delta(lake).values()) == sum(round_["results"] for round_ in rounds) > 0
    assert set(rounds[0]["sinks"]) == {"delta"}


def test_a_sink_that_is_not_there_is_named(windloom: Command, desk: Path) -> None:
    given = ("--follow", "--stream", f"trades={desk}/*.csv", "--trigger", "now", "--checkpoint", desk / "c")
    outcome = windloom("run", desk / "desk.cql", *given, "--sink", "postgres=postgresql://me@127.0.0.1:1/x")
    assert outcome.code == 2
    assert "error: PostgreSQL at '127.0.0.1:1', 'x' does not take the round" in outcome.err
    assert "hint: start it, or correct its address" in outcome.err


def test_a_directory_that_cannot_be_followed_is_explained(refused: Refused, desk: Path) -> None:
    def said(path: object) -> str:
        return refused("run", desk / "desk.cql", "--follow", "--stream", f"trades={path}", "--out", desk / "out")

    assert "there is no directory" in said(desk / "nowhere")
    assert "it is a file" in said(desk / "trades.csv")
    (desk / "in").mkdir()
    assert f"--stream 'trades={desk / 'in'}/*.parquet'" in said(desk / "in")
    assert "cannot tell the format" in said(desk / "in" / "*.data")
    put(desk / "in", "0", ROWS[:1])
    (desk / "in" / "1.csv").write_text(csv_text())
    assert "holds files of several formats" in said(desk / "in")
