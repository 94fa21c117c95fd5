"""`windloom verify`: 0 where all rows equal Spark's, 1 where one differs, 2 where the user erred."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from support.command import Command
from windloom.engine import Results


def test_equal_answers_are_exit_code_0(windloom: Command, desk: Path) -> None:
    outcome = windloom("verify", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert len(lines) == 3
    assert all("rows equal Spark's own window()" in line for line in lines)
    assert "… verifying flow (1 of 3)" in outcome.err or "… verifying high (1 of 3)" in outcome.err


def test_chosen_queries_as_json(windloom: Command, desk: Path) -> None:
    given = ("--stream", f"trades={desk / 'trades.csv'}", "--query", "flow", "--placement", "executors", "--json")
    outcome = windloom("verify", desk / "desk.cql", *given)
    assert outcome.code == 0, outcome.err
    (found,) = json.loads(outcome.out)
    assert (found["query"], found["ok"], found["missing"], found["extra"]) == ("flow", True, 0, 0)
    assert found["rows"] > 0


def test_a_difference_is_exit_code_1_and_shown(windloom: Command, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from windloom.engine.results import DriverResults

    honest = DriverResults.rows

    def tampered(self: Results, name: str) -> pa.Table:
        table = honest(self, name)  # type: ignore[arg-type]
        return table.set_column(4, "n", pa.compute.add(table["n"], 1))

    monkeypatch.setattr(DriverResults, "rows", tampered)
    outcome = windloom("verify", desk / "desk.cql", "--stream", f"trades={desk / 'trades.csv'}", "--query", "flow")
    assert outcome.code == 1
    assert "first difference: window_start = 2026-01-04 23:59:40+00:00" in outcome.out
    assert "symbol = 'A': n = 2, Spark has 1" in outcome.out
