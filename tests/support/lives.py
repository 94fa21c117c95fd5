"""Processes that tests kill, forked from a server that has imported everything: importing takes most of a life."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from typing import Any
from unittest.mock import patch

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["__main__", "support.durable", "support.present"])


def start_life(run: Callable[..., Any], *arguments: Any, fault: str | None = None) -> ForkServerProcess:
    """A process that calls `run`, and that is killed when it passes the fault point, as by `kill -9`."""
    process = _CONTEXT.Process(target=_live, args=(fault, run, arguments), daemon=True)
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):  # for the server's own imports
        process.start()
    return process


def whole_life(run: Callable[..., Any], *arguments: Any, fault: str | None = None) -> int | None:
    """Waits for the end of such a process, and gives its exit code: minus the number of the signal that ended it."""
    process = start_life(run, *arguments, fault=fault)
    process.join(timeout=300)
    assert not process.is_alive(), "the process does not end"
    return process.exitcode


def _live(fault: str | None, run: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    if fault is not None:
        os.environ["WINDLOOM_FAULT"] = fault
    run(*arguments)
