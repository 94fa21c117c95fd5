"""Files beside the modules (templates, constants, settings) are part of what is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["windloom", "windloom_tools"])
def test_every_file_that_is_no_module_is_package_data(name: str) -> None:
    package = ROOT / "src" / name
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = settings["tool"]["setuptools"]["package-data"][name]
    shipped = {path for pattern in named for path in package.glob(pattern)}
    beside = {path for path in package.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}}
    beside = {path for path in beside if "__pycache__" not in path.parts}
    assert beside == shipped
