"""Kernels that one process has used are loaded by the next, and are not compiled again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from windloom.kernels import compiling
from windloom.kernels.compiling import compiled_kernels, load_in_background, load_noted, note_path, write_note
from windloom.kernels.families import FAMILIES
from windloom.kernels.merge import merge_runs

_NEXT = """
from windloom.kernels import compiling as loading
from windloom.kernels import merge
print(loading.load_noted(), len(merge.merge_runs.signatures), loading.compilations())
"""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WINDLOOM_CACHE", str(tmp_path))


def use_a_kernel() -> None:
    family = FAMILIES["add_int"]
    merge_runs(family.of(np.ones(4, np.int64)), np.arange(4), np.array([0, 2, 4]), family.empty(2))


def test_nothing_is_loaded_where_nothing_is_noted() -> None:
    assert load_noted() == 0


def test_a_kernel_that_is_noted_is_loaded_by_another_process_and_not_compiled() -> None:
    use_a_kernel()
    # Other tests of this process may have used it for families that users define, which no other process knows.
    used = {kernel for kernel in compiled_kernels() if kernel[1] == "merge_runs" and "AddInt" in str(kernel[2])}
    write_note(used)
    # A process of its own, since this one has the kernel.
    done = subprocess.run([sys.executable, "-c", _NEXT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(used)), str(len(used)), "0"]


def test_a_note_that_cannot_be_read_harms_nothing() -> None:
    note_path().write_bytes(b"not a note")
    load_in_background().join()
    use_a_kernel()


def test_a_note_is_of_no_use_once_a_source_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = note_path()
    monkeypatch.setattr(compiling, "_fingerprint", lambda: "another")
    assert note_path() != before
