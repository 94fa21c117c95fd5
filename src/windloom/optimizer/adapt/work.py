"""Where charts are filled: in a thread beside the rounds, or at once.

A thread that plans competes with the Python code of rounds. So it pauses between steps, for longer than it works.

A task that is needed comes before one that reports afterwards, and that before one that is done ahead of time. The
latter two are done only while they have taken a small share of the time, so that they never weigh on rounds.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Protocol

Task = Callable[[], None]
#: Optional tasks may take this share of the time of rounds.
OPTIONAL_SHARE = 0.01
#: After a step, the thread pauses for this many times as long as the step took, and at most for this many seconds.
PAUSE, LONGEST_PAUSE = 3.0, 0.5
#: No more of one urgency wait; the oldest are forgotten.
MOST_WAITING = 64


class Urgency(IntEnum):
    NEEDED = 0
    AFTERWARDS = 1
    AHEAD = 2


class Worker(Protocol):
    """`failure` is why it has stopped, if it has."""

    failure: BaseException | None

    def submit(self, key: Hashable, task: Task, urgency: Urgency) -> None:
        """Have a task done once; one that waits already under the same key is not added."""
        ...

    def passed(self, seconds: float) -> None:
        """Rounds have taken so much more time."""
        ...

    def pause(self) -> None:
        """Called by a task between two steps of its work."""
        ...

    def close(self) -> None: ...


class AtOnce:
    """Does every task as soon as it is given; for tests, and where nothing waits for it."""

    failure: BaseException | None = None

    def submit(self, key: Hashable, task: Task, urgency: Urgency) -> None:
        task()

    def passed(self, seconds: float) -> None: ...

    def pause(self) -> None: ...

    def close(self) -> None: ...


class Beside:
    """Does tasks in a thread of its own, which lives as long as there are any; after one that fails, none is done."""

    def __init__(self, share: float = OPTIONAL_SHARE) -> None:
        self._share = share
        self._lock = threading.Lock()
        self._waiting: dict[Urgency, OrderedDict[Hashable, Task]] = {urgency: OrderedDict() for urgency in Urgency}
        self._allowed = 0.0  # seconds that optional tasks may still take
        self._is_running = self._is_closed = False
        self._began = 0.0  # by the clock of the thread, when its present step began
        self.failure: BaseException | None = None

    def submit(self, key: Hashable, task: Task, urgency: Urgency) -> None:
        with self._lock:
            waiting = self._waiting[urgency]
            waiting.setdefault(key, task)
            if len(waiting) > MOST_WAITING:
                waiting.popitem(last=False)
            self._wake()

    def passed(self, seconds: float) -> None:
        with self._lock:
            self._allowed = min(self._allowed + self._share * seconds, 1.0)
            self._wake()

    def close(self) -> None:
        """Nothing more is begun."""
        with self._lock:
            self._is_closed = True
            for waiting in self._waiting.values():
                waiting.clear()

    def pause(self) -> None:
        took = time.thread_time() - self._began
        time.sleep(min(LONGEST_PAUSE, PAUSE * took))
        self._began = time.thread_time()

    def _wake(self) -> None:
        if not self._is_running and not self._is_closed and self._first() is not None:
            self._is_running = True
            threading.Thread(target=self._run, name="windloom-charts", daemon=True).start()

    def _first(self) -> Urgency | None:
        """How urgent the next task is that may be done now."""
        return next(
            (
                urgency
                for urgency, tasks in self._waiting.items()
                if tasks and (urgency is Urgency.NEEDED or self._allowed > 0)
            ),
            None,
        )

    def _next(self) -> tuple[Task, Urgency] | None:
        with self._lock:
            urgency = self._first()
            if urgency is None:
                self._is_running = False
                return None
            # The newest one is about where the stream is now.
            return self._waiting[urgency].popitem(last=True)[1], urgency

    def _run(self) -> None:
        while (found := self._next()) is not None:
            task, urgency = found
            begun = self._began = time.thread_time()
            try:
                task()
            except BaseException as error:  # a thread has no caller: whoever gives tasks is told of it
                with self._lock:
                    self.failure, self._is_running, self._is_closed = error, False, True
                return
            if urgency is not Urgency.NEEDED:
                with self._lock:
                    self._allowed -= time.thread_time() - begun
            self.pause()
