"""Kernels work where their machine code cannot be kept."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
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


FREED = """
import resource, sys
import numpy as np
from windloom.kernels.compiling import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(2 << 20)  # 16 MiB, which glibc returns to the system otherwise
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keeps = keep_freed_memory()
print(keeps, faults(), faults())
"""


def faults_of_an_array(**settings: str) -> tuple[bool, int, int]:
    """Whether freed memory is kept, and how often the system had to give a page for an array, and for the next one."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", FREED]
    keeps, first, again = subprocess.check_output(command, env={**plain, **settings}, text=True).split()
    return keeps == "True", int(first), int(again)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the options are those of glibc")
def test_memory_that_an_array_has_freed_is_not_obtained_from_the_system_again() -> None:
    keeps, first, again = faults_of_an_array()
    assert keeps
    assert again < first / 10


def test_options_of_malloc_in_the_environment_remain() -> None:
    assert not faults_of_an_array(MALLOC_ARENA_MAX="2")[0]
