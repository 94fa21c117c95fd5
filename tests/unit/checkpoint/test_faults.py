"""Fault points: they end the process when told to, at the right passing, and do nothing otherwise."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from windloom.checkpoint.storage import fault, watched

SRC = Path(__file__).resolve().parents[3] / "src"


def test_nothing_happens_without_a_wish() -> None:
    fault("before log")


def test_an_unknown_point_is_a_mistake_in_the_program() -> None:
    with pytest.raises(ValueError, match="'before lunch' is not in FAULT_POINTS"):
        fault("before lunch")


def test_a_watcher_sees_every_point_while_it_watches() -> None:
    seen: list[str] = []
    with watched(seen.append):
        fault("before log")
        fault("after log")
    fault("before log")
    assert seen == ["before log", "after log"]


def test_the_process_is_killed_at_the_passing_that_was_asked_for() -> None:
    program = (
        "from windloom.checkpoint.storage import fault\n"
        "for i in range(5): fault('before log'); fault('after log'); print(i, flush=True)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SRC), "WINDLOOM_FAULT": "after log:3"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1"]
