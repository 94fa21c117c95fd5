from __future__ import annotations

import sys
from pathlib import Path

import pytest

from windloom.cache import cache_folder


def test_what_set_up_prepares_is_kept_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WINDLOOM_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


def test_it_goes_with_the_environment_whose_packages_it_was_made_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WINDLOOM_CACHE", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert cache_folder() == tmp_path / "windloom-cache"


def test_without_an_environment_it_is_kept_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WINDLOOM_CACHE", raising=False)
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "windloom"
