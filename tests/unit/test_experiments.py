"""`python -m experiments`: one small experiment leaves a page, figures that parse, data, and a line in the index."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "experiments", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
    )


def test_an_experiment_leaves_a_page_figures_data_and_a_line_in_the_index(tmp_path: Path) -> None:
    done = run("overlaps", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "overlaps.md").read_text(encoding="utf-8")
    for part in ("## The paper's claim", "## What comes out here", "## Where they differ, and why", "](overlaps.svg)"):
        assert part in page
    ElementTree.parse(tmp_path / "overlaps.svg")
    with (tmp_path / "data" / "overlaps.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(float(row["weave_share_over_shared"]) <= 1.000001 for row in rows)
    assert "(overlaps.md)" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_an_experiment_without_its_data_says_what_it_needs(tmp_path: Path) -> None:
    done = run("throughput", "--quick", "--out", str(tmp_path / "out"), WINDLOOM_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "throughput    skipped: needs debs2012/debs2012_small.parquet" in done.stdout
    assert not (tmp_path / "out" / "throughput.md").exists()


def test_an_unknown_experiment_is_refused() -> None:
    done = run("nonsense")
    assert done.returncode == 2
    assert "unknown experiment 'nonsense'" in done.stderr
