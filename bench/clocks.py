"""Clocks for seconds of runs and rounds: the wall's, or the processor's, which other work hardly changes.

A round that others hold up takes longer by the wall, and as much of the processor as ever. A loom that measures its
rounds by the processor learns from that, and chooses and predicts by it; so figures of a loaded machine can be
compared, though not with seconds of a quiet one: where two threads work at once, both count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from windloom.engine.loop import RoundLoop

_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def rounds_by(clock: str) -> Iterator[None]:
    """While the block runs, `bench.measure.seconds` and rounds measure what they take by this clock."""
    if clock == "wall":
        yield
        return
    now = processor_clock()
    defaults = RoundLoop.__init__.__kwdefaults__
    with (
        patch.dict(defaults, {"clock": now}),
        patch("windloom.engine.replanning.perf_counter", now),
        patch("bench.measure.now", now),
        patch(f"{__name__}.of_thread", time.thread_time),
    ):
        yield


def of_thread() -> float:
    """What a thread measures itself by."""
    return time.perf_counter()


def processor_clock() -> Callable[[], float]:
    """Seconds of this process and of Spark's JVM, once there is one."""
    found: list[int] = []

    def now() -> float:
        if not found:
            found.extend(_children("java"))
        return time.process_time() + sum(_spent(pid) for pid in found)

    return now


def _children(name: str) -> list[int]:
    own = Path(f"/proc/{os.getpid()}/task")
    pids = [int(pid) for task in own.iterdir() for pid in (task / "children").read_text().split()]
    return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == name]


def _spent(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    return sum(map(int, fields[11:13])) / _TICKS
