"""`make docs`: the site is made without a warning, can be searched, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages import PAGES, ROOT
from windloom.cli.main import cli

#: What a browser loads by itself; links to other sites are for people.
_LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "docs"
    command = [sys.executable, str(ROOT / "tools" / "docs" / "build.py"), str(place)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return place


def text_of(page: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in PAGES:
        assert (site / page.relative_to(ROOT).with_suffix(".html")).is_file()
    pages = [*site.rglob("*.html")]
    assert site / "index.html" in pages
    for page in pages:
        for address in _LOADED.findall(page.read_text(encoding="utf-8")):
            assert not re.match(r"(https?:)?//", address), f"{page.name} loads {address}"
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8"))


def test_it_can_be_searched(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    assert "docs/windows" in index
    assert '"webhook":' in index


def test_the_reference_is_made_of_docstrings_help_and_descriptions(site: Path) -> None:
    from windloom import Loom

    python = text_of(site / "api" / "loom.html")
    assert all(f" {name}(" in python for name in vars(Loom) if not name.startswith("_") and callable(vars(Loom)[name]))
    assert "Weaves queries over streams into one shared plan" in python
    commands = text_of(site / "api" / "commands.html")
    assert all(f"windloom {name}" in commands for name in cli.commands)
    assert "Give a token, get a cookie." in text_of(site / "api" / "http.html")
