"""Fault points: named places around every durable write where a test can end the process or inspect it.

`WINDLOOM_FAULT="before commit:3"` kills the process, as `kill -9` does, when it passes that point for the third time.
Without the variable, a fault point does nothing.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: In the order in which a round passes them. "before rename" is inside every durable write: the bytes are in a
#: temporary file, and no reader can see them yet.
FAULT_POINTS = (
    "before rename",
    "before plan",
    "after plan",
    "before begun",
    "after begun",
    "before log",
    "after log",
    "before sink",
    "after sink",
    "before commit",
    "after commit",
    "before snapshot",
    "after snapshot",
    "before retain",
    "after retain",
)

#: Passed by rounds of queries with EMIT CHANGES, EMIT EMPTY or EMIT EARLY, between sinks and commit.
EMITTED_FAULT_POINTS = ("before emitted", "after emitted")

#: Passed by rounds that keep tuples, before they are logged.
TUPLE_FAULT_POINTS = ("before tuples", "after tuples")

#: Passed by tasks on executors. A task that is killed runs again in another process, which has counted nothing. So
#: these points count rounds, and only the first attempt of the first shard passes them.
TASK_FAULT_POINTS = ("after pieces", "after shard")

_passed: Counter[str] = Counter()
_watchers: list[Callable[[str], None]] = []


def fault(name: str, nth: int | None = None) -> None:
    """Pass the fault point `name`, for the `nth` time if the caller counts."""
    if name not in FAULT_POINTS + EMITTED_FAULT_POINTS + TUPLE_FAULT_POINTS + TASK_FAULT_POINTS:
        raise ValueError(f"'{name}' is not in FAULT_POINTS")
    for watcher in _watchers:
        watcher(name)
    wanted = os.environ.get("WINDLOOM_FAULT")
    if wanted:
        point, _, time = wanted.rpartition(":")
        _passed[name] = _passed[name] + 1 if nth is None else nth
        if point == name and _passed[name] == int(time):
            os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def watched(watcher: Callable[[str], None]) -> Iterator[None]:
    """Call `watcher` with the name of every fault point passed; an exception it raises simulates a crash."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
