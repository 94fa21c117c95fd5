"""`windloom calibrate`: measured, kept, compared; on inputs so small that only the way is tested, not the figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import Command
from windloom.optimizer.cost.constants import RUNTIME, load_constants
from windloom_tools.calibration import check as calibrate_check
from windloom_tools.calibration import kernels as calibrate_kernels
from windloom_tools.calibration import step as calibrate_step
from windloom_tools.calibration.kernels import Case
from windloom_tools.calibration.step import Synthetic


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        calibrate_kernels, "QUICK", [Case(2, 50, 1, 4, 1), Case(2, 50, 5, 8, 2), Case(1, 90, 9, 4, 1, even=False)]
    )
    monkeypatch.setattr(calibrate_step, "READING", [Synthetic(n, 40, ((1, 1),), ("sum n",)) for n in (1, 3)])
    few = [Synthetic(n, 40, ((4, 1), (6, 2)), ("sum n",), filled) for n, filled in ((1, 1.0), (3, 0.5))]
    monkeypatch.setattr(calibrate_step, "ANSWERING", few)
    tiny = {name: Synthetic(workload.groups // 40 + 1, 60, workload.windows[:3], (), workload.filled)
            for name, workload in calibrate_check.WORKLOADS.items()}  # fmt: skip
    monkeypatch.setattr(calibrate_check, "WORKLOADS", tiny)


def test_constants_are_measured_shown_and_kept(windloom: Command, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "costs.json"
    outcome = windloom("calibrate", "--quick", "--no-spark", "--out", path)
    assert outcome.code == 0, outcome.err
    assert "prefix_ring add_int" in outcome.out
    assert f"kept in {path}" in outcome.out
    found = json.loads(path.read_text())
    assert found["format"] == "windloom-costs/3"
    assert set(found["runtime"]) == set(RUNTIME)
    assert "add_float" in found["techniques"]["two_stacks"]


def test_a_dry_run_keeps_nothing(windloom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = windloom("calibrate", "--quick", "--no-spark", "--dry-run", "--json", "--out", tmp_path / "costs.json")
    assert json.loads(outcome.out)["runtime"]["row"] >= 0
    assert not (tmp_path / "costs.json").exists()


def test_estimates_are_compared_with_what_was_measured(windloom: Command) -> None:
    outcome = windloom("calibrate", "--check", "--quick")
    assert outcome.code == 0, outcome.err
    assert "mean deviation, five techniques × three workloads" in outcome.out
    assert outcome.out.count("SlickDeque (Non-Inv)") == 3
    rows = json.loads(windloom("calibrate", "--check", "--quick", "--json").out)
    assert len(rows) == 27
    assert all(row["measured_seconds"] > 0 for row in rows)


@pytest.mark.parametrize("text", [None, "{}", "not JSON"])
def test_the_file_that_the_environment_names_is_made_or_mended(
    windloom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    path = tmp_path / "deep" / "costs.json"
    if text is not None:
        path.parent.mkdir()
        path.write_text(text)
    monkeypatch.setenv("WINDLOOM_COSTS", str(path))
    outcome = windloom("calibrate", "--quick", "--no-spark")
    assert outcome.code == 0, outcome.err
    assert f"kept in {path}; strategy 'auto' uses them from now on" in outcome.out
    assert load_constants().source == str(path)
    assert ("the constants of scanning are those that ship" in outcome.err) == (text is not None)
    assert list(path.parent.iterdir()) == [path]


def test_constants_kept_elsewhere_are_said_to_need_the_environment(windloom: Command, tmp_path: Path) -> None:
    outcome = windloom("calibrate", "--quick", "--no-spark", "--out", tmp_path / "costs.json")
    assert "from now on" not in outcome.out
    assert f"where WINDLOOM_COSTS names this file: export WINDLOOM_COSTS={tmp_path / 'costs.json'}" in outcome.out


@pytest.mark.parametrize("place", ["/dev/null/costs.json", "."])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(
    windloom: Command, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(calibrate_kernels, "measure_techniques", _not_yet)
    outcome = windloom("calibrate", "--quick", "--no-spark", "--out", place)
    assert outcome.code == 2
    assert f"cannot write '{place}'" in outcome.err


def _not_yet(*_: object) -> None:
    raise AssertionError("something was measured")


def test_constants_that_cannot_be_written_or_read_are_one_message(
    windloom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = windloom("calibrate", "--quick", "--no-spark", "--out", "/dev/null/costs.json")
    assert outcome.code == 2
    assert "cannot write '/dev/null/costs.json'" in outcome.err
    (tmp_path / "costs.json").write_text("{}")
    monkeypatch.setenv("WINDLOOM_COSTS", str(tmp_path / "costs.json"))
    outcome = windloom("calibrate", "--check")
    assert outcome.code == 2
    assert "are damaged" in outcome.err
    assert "windloom calibrate" in outcome.err
