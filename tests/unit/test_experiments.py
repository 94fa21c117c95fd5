"""`python -m experiments`: one small experiment leaves a page, figures that parse, data, and a line in the index."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib import import_module
from pathlib import Path

import pytest
from experiments.__main__ import NAMES
from experiments.index import index_text, verdicts_of
from experiments.pages import DIFFERS, NOT_RUN, REPRODUCED, TREND, Data
from experiments.without_page import WITHOUT_PAGE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "experiments"


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


@pytest.mark.parametrize("name", NAMES)
def test_the_headline_of_a_page_is_what_its_data_say(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert page.split("\n")[2] == import_module(f"experiments.{name}").headline(Data.read(name, DOCS))


def test_the_index_and_its_verdicts_are_what_the_data_say() -> None:
    """Headlines and the table of all figures; `python -m experiments` writes them."""
    assert (DOCS / "README.md").read_text(encoding="utf-8") == index_text(NAMES, DOCS)


def test_a_verdict_other_than_reproduced_has_a_reason() -> None:
    found = [verdict for name in NAMES for verdict in verdicts_of(name, Data.read(name, DOCS))]
    found += [verdict for verdict, _ in WITHOUT_PAGE]
    assert {verdict.verdict for verdict in found} <= {REPRODUCED, TREND, DIFFERS, NOT_RUN}
    assert [verdict.figure for verdict in found if verdict.verdict != REPRODUCED and not verdict.reason] == []
    figures = [verdict.figure for verdict in found]
    assert len(figures) == len(set(figures))


@pytest.mark.parametrize("figure", range(17, 24))
def test_source_c_has_a_verdict_on_every_figure_of_its_experiments(figure: int) -> None:
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    assert f"| C fig. {figure} |" in text


def test_changed_data_contradict_the_headline() -> None:
    data = Data.read("rates", DOCS)
    told = import_module("experiments.rates").headline(data)
    text = (DOCS / "data" / "rates.csv").read_text(encoding="utf-8")
    first = next(line for line in text.split("\n") if line.startswith("250,50,"))
    other = Data({"rates.csv": text.replace(first, first.replace(",0.", ",0.9"))})
    assert import_module("experiments.rates").headline(other) != told
