"""Where charts are filled: in a thread beside the rounds, or at once.

A thread that plans competes with the Python code of rounds. So it pauses between steps, for longer than it works. A
round may wait for a task, for a small share of the time that rounds took; meanwhile there are no pauses.

What rounds took is learned at once, which takes next to nothing. A task that is needed comes before one that looks
back, and that before one that is done ahead of time. Needed tasks may take seconds when a stream begins. Beyond that,
tasks are done only while they have taken a small share of the time of rounds, so that they never burden them: where
rounds are short and queries many, a stream follows its data more slowly.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Protocol

Task = Callable[[], None]
#: Needed tasks, and optional ones, may take these shares of the time of rounds.
NEEDED_SHARE, OPTIONAL_SHARE = 0.01, 0.005
#: The seconds that needed tasks may take at once, as at the beginning, and that optional tasks may save up.
AT_ONCE, SAVED = 4.0, 1.0
#: After a step, the thread pauses for this many times as long as the step took, and at most for this many seconds.
PAUSE, LONGEST_PAUSE = 3.0, 0.5
#: At most this many tasks of one urgency wait; the oldest are forgotten.
MOST_WAITING = 64


class Urgency(IntEnum):
    LEARNING = 0
    NEEDED = 1
    AFTERWARDS = 2
    AHEAD = 3


class Worker(Protocol):
    """`failure` is the error that has stopped it, if any."""

    failure: BaseException | None

    def submit(self, key: Hashable, task: Task, urgency: Urgency) -> None:
        """Has a task done once; while a task with the same key waits or is being done, no other is added."""
        ...

    def passed(self, seconds: float) -> None:
        """Notes that rounds have taken `seconds` more."""
        ...

    def earned(self, seconds: float) -> None:
        """Notes that needed tasks have saved rounds `seconds`."""
        ...

    def wait(self, key: Hashable, seconds: float) -> None:
        """Waits until a submitted task is done, if that takes no longer than `seconds`."""
        ...

    def affords(self, key: Hashable, seconds: float, estimated: float = 0.0) -> bool:
        """Whether a task would be done within `seconds`, judged by the last one of its kind, or else as `estimated`."""
        ...

    def pause(self) -> None:
        """Called by a task between two steps of its work."""
        ...

    def close(self) -> None: ...


class AtOnce:
    """Does every task as soon as it is submitted; for tests, and where nothing waits for it."""

    failure: BaseException | None = None

    def submit(self, key: Hashable, task: Task, urgency: Urgency) -> None:
        task()

    def passed(self, seconds: float) -> None: ...

    def earned(self, seconds: float) -> None: ...

    def wait(self, key: Hashable, seconds: float) -> None: ...

    def affords(self, key: Hashable, seconds: float, estimated: float = 0.0) -> bool:
        return True

    def pause(self) -> None: ...

    def close(self) -> None: ...


class Beside:
    """Does tasks in a thread of its own, which lives as long as there are any; after one has failed, none is done."""

    def __init__(self, at_once: float = AT_ONCE) -> None:
        """`at_once` are the seconds that needed tasks may take before rounds have taken any time."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # a task is done, or no more will be
        self._hurried = threading.Event()  # set while a round waits
        self._took: dict[Hashable, float] = {}  # seconds of the processor that the last task of each kind took
        self._waiting: dict[Urgency, OrderedDict[Hashable, Task]] = {urgency: OrderedDict() for urgency in Urgency}
        # Seconds that needed tasks, and optional ones, may still take.
        self._at_once, self._needed, self._optional = at_once, at_once, 0.0
        self._is_running = self._is_closed = False
        self._present: Hashable = None  # the key of the task that is being done
        self._began = 0.0  # when its present step began, by the clock of the thread
        self.failure: BaseException | None = None

    def submit(self, key: Hashable, task: Task, urgency: Urgency) -> None:
        with self._lock:
            if key == self._present:  # a round asks for what it needs again and again until it is there
                return
            waiting = self._waiting[urgency]
            waiting.setdefault(key, task)
            if len(waiting) > MOST_WAITING:
                waiting.popitem(last=False)
            self._wake()

    def passed(self, seconds: float) -> None:
        with self._lock:
            self._needed = min(self._needed + NEEDED_SHARE * seconds, self._at_once)
            self._optional = min(self._optional + OPTIONAL_SHARE * seconds, SAVED)
            self._wake()

    def earned(self, seconds: float) -> None:
        with self._lock:
            self._needed = min(self._needed + seconds, self._at_once)
            self._wake()

    def wait(self, key: Hashable, seconds: float) -> None:
        """Does not wait if the last task of the same kind took longer than `seconds`."""
        with self._changed:
            if self._took.get(_kind(key), 0.0) > seconds:
                return
            self._hurried.set()
            self._changed.wait_for(lambda: not self._is_running or not self._is_left(key), seconds)
            self._hurried.clear()

    def affords(self, key: Hashable, seconds: float, estimated: float = 0.0) -> bool:
        """Also requires that needed tasks may take more time, none of them waits, and no task is being done."""
        with self._lock:
            is_free = self._present is None and not self._waiting[Urgency.NEEDED] and not self._is_closed
            return is_free and self._needed > 0 and seconds > 0 and self._took.get(_kind(key), estimated) <= seconds

    def close(self) -> None:
        """Begins no more tasks."""
        with self._lock:
            self._is_closed = True
            for waiting in self._waiting.values():
                waiting.clear()

    def pause(self) -> None:
        took = time.thread_time() - self._began
        self._hurried.wait(min(LONGEST_PAUSE, PAUSE * took))
        self._began = time.thread_time()

    def _is_left(self, key: Hashable) -> bool:
        return key == self._present or any(key in waiting for waiting in self._waiting.values())

    def _wake(self) -> None:
        if not self._is_running and not self._is_closed and self._first() is not None:
            self._is_running = True
            threading.Thread(target=self._run, name="windloom-charts", daemon=True).start()

    def _first(self) -> Urgency | None:
        """The urgency of the next task that may be done now."""
        left = {Urgency.LEARNING: 1.0, Urgency.NEEDED: self._needed}
        return next(
            (urgency for urgency, tasks in self._waiting.items() if tasks and left.get(urgency, self._optional) > 0),
            None,
        )

    def _spend(self, seconds: float, urgency: Urgency) -> None:
        with self._changed:
            if urgency is Urgency.NEEDED:
                self._took[_kind(self._present)] = seconds
            self._present = None
            self._changed.notify_all()
            if urgency <= Urgency.NEEDED:
                self._needed -= seconds
            else:
                self._optional -= seconds

    def _next(self) -> tuple[Task, Urgency] | None:
        with self._lock:
            urgency, self._present = self._first(), None
            self._is_running = urgency is not None
            self._changed.notify_all()
            if urgency is None:
                return None
            # The newest task is about where the stream is now.
            self._present, task = self._waiting[urgency].popitem(last=True)
            return task, urgency

    def _run(self) -> None:
        while (found := self._next()) is not None:
            task, urgency = found
            begun = self._began = time.thread_time()
            try:
                task()
            except BaseException as error:  # a thread has no caller: whoever submits tasks finds it in `failure`
                with self._changed:
                    self.failure, self._is_running, self._is_closed = error, False, True
                    self._changed.notify_all()
                return
            self._spend(time.thread_time() - begun, urgency)
            self.pause()


def _kind(key: Hashable) -> Hashable:
    """The kind of a task: what it does, and for which basin."""
    return key[:2] if isinstance(key, tuple) else key
