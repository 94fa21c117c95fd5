"""Kernels work where their machine code cannot be kept."""

from __future__ import annotations

from typing import Any

import pytest
from numba.core import config
from numba.core.caching import IndexDataCacheFile

from windloom.errors import WindloomError
from windloom.kernels.compiling import compiled
from windloom_tools import warm_up


def doubled(number: int) -> int:
    return 2 * number


def test_without_a_folder_that_can_be_written_to_a_kernel_is_compiled_for_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "IPythonCacheLocator")  # of which there is none here
    kernel: Any = compiled(doubled)
    assert kernel(21) == 42
    assert kernel.stats.cache_path is None


def test_a_disk_that_is_full_stops_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", refuse)
    monkeypatch.setattr(IndexDataCacheFile, "load", lambda *_: None)
    assert compiled(doubled)(21) == 42


def test_set_up_says_that_kernels_cannot_be_kept_and_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(warm_up, "kept_in", list)
    monkeypatch.setattr(warm_up, "note_path", lambda: tmp_path / "none")
    with pytest.raises(WindloomError, match="compiled kernels cannot be kept") as raised:
        warm_up.prepare(print)
    assert "NUMBA_CACHE_DIR" in raised.value.hint
