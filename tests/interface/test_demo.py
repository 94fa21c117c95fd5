"""`windloom demo`: small, it still shows everything and writes its report."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.command import Command
from windloom.cli.main import cli
from windloom_tools.demo.command import Extent

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Nesting(HTMLParser):
    """Elements that are open, and those that were closed out of turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.wrong.append(tag)


def test_a_small_demo_runs_checks_itself_and_reports(
    windloom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the others would have cost is measured once.
    monkeypatch.setattr("windloom_tools.demo.command.FULL", Extent(20_000, 1, 4))
    outcome = windloom("demo", "--out", tmp_path / "demo")
    assert outcome.code == 0, outcome.err
    assert "Traceback" not in outcome.err
    for words in (
        "events/s",
        "results/s",
        "scaled",
        "rows equal Spark's own window()",
        "report: ",
        "windloom init FILE",
    ):
        assert words in outcome.out
    assert "✗" not in outcome.out

    text = (tmp_path / "demo" / "catalog.cql").read_text(encoding="utf-8")
    assert 90 <= len(re.findall(r"^CREATE QUERY", text, re.MULTILINE)) <= 150

    assert ElementTree.parse(tmp_path / "demo" / "plan.svg").getroot().tag.endswith("svg")
    page = Nesting()
    page.feed((tmp_path / "demo" / "report.html").read_text(encoding="utf-8"))
    assert (page.open, page.wrong) == ([], [])
    check_next_steps(outcome.out)


def check_next_steps(said: str) -> None:
    """Three commands that exist, with options that exist, about files that are there."""
    lines = said.partition("three commands to try next:\n")[2].splitlines()
    commands = [line.split() for line in lines if line.startswith("  windloom ")]
    assert [words[1] for words in commands] == ["plan", "serve", "init"]
    for _, name, file, *rest in commands:
        options = {option for parameter in cli.commands[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options
        assert file == "FILE" or Path(file).is_file()
    assert list(Path(commands[1][4].partition("=")[2]).glob("*.parquet"))
