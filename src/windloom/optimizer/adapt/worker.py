"""Where the plans of later rounds are made: in a thread beside the rounds, or at once.

A thread that plans competes with the Python code of rounds. So it pauses between steps, for longer than it works. A
round may wait for a task, for a small share of the time that rounds took; meanwhile there are no pauses.

Learning what rounds took comes first, which takes next to nothing while rounds are alike; then a plan for the next
round, and judging past rounds last. Plans may take seconds when a stream begins. Beyond that, tasks are done only while
they have taken a small share of the time of rounds, so that they never burden them: where rounds are short and queries
many, a stream follows its data more slowly.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import IntEnum
from itertools import chain

Task = Callable[[], None]
#: Has a task done before the next round if that does not take long, or else beside it.
Need = Callable[[Hashable, Task], None]
#: Needed tasks, and optional ones, may take these shares of the time of rounds.
NEEDED_SHARE, OPTIONAL_SHARE = 0.01, 0.005
#: The seconds that needed tasks may take at once, as at the beginning; those that optional tasks may take at the
#: beginning, and those that they may save up.
AT_ONCE, OPTIONAL_AT_ONCE, SAVED = 4.0, 0.25, 1.0
#: After a step, the thread pauses for this many times as long as the step took, and at most for this many seconds.
PAUSE, LONGEST_PAUSE = 3.0, 0.5
#: At most this many tasks of one priority wait; the oldest are forgotten.
MOST_WAITING = 64


class TaskPriority(IntEnum):
    LEARNING = 0
    NEEDED = 1
    AFTERWARDS = 2


class ImmediateWorker:
    """Does every task as soon as it is submitted; for tests, and where nothing waits for it."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None  # the error that has stopped it

    def submit(self, key: Hashable, task: Task, priority: TaskPriority) -> None:
        """Do a task once; while a task with this key waits or is being done, no other is added."""
        task()

    def passed(self, seconds: float) -> None:
        """Note that rounds have taken `seconds` more."""

    def wait(self, key: Hashable, seconds: float) -> None:
        """Wait until a submitted task is done, if that takes no longer than `seconds`."""

    def pause(self) -> None:
        """Let rounds go first; called by a task between two steps of its work."""

    def close(self) -> None:
        """Begin no more tasks."""


class BackgroundWorker(ImmediateWorker):
    """Does tasks in a thread of its own, which lives as long as there are any; after one has failed, none is done."""

    def __init__(self, at_once: float = AT_ONCE) -> None:
        """`at_once` are the seconds that needed tasks may take before rounds have taken any time."""
        super().__init__()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # a task is done, or no more will be
        self._hurried = threading.Event()  # set while a round waits
        self._took: dict[Hashable, float] = {}  # processor seconds of the last needed task of each kind
        self._waiting: dict[TaskPriority, OrderedDict[Hashable, Task]] = {
            priority: OrderedDict() for priority in TaskPriority
        }
        # Seconds that needed tasks, and optional ones, may still take.
        self._at_once, self._needed, self._optional = at_once, at_once, min(at_once, OPTIONAL_AT_ONCE)
        self._is_running = self._is_closed = False
        self._present: Hashable = None  # the key of the task that is being done
        self._began = 0.0  # when its present step began, by the clock of the thread

    def submit(self, key: Hashable, task: Task, priority: TaskPriority) -> None:
        with self._lock:
            if key == self._present:  # a round asks for what it needs again and again until it is there
                return
            waiting = self._waiting[priority]
            waiting.setdefault(key, task)
            if len(waiting) > MOST_WAITING:
                waiting.popitem(last=False)
            self._wake()

    def passed(self, seconds: float) -> None:
        with self._lock:
            self._needed = min(self._needed + NEEDED_SHARE * seconds, self._at_once)
            self._optional = min(self._optional + OPTIONAL_SHARE * seconds, SAVED)
            self._wake()

    def wait(self, key: Hashable, seconds: float) -> None:
        """Does not wait if the last task of the same kind took longer than `seconds`."""
        with self._changed:
            if self._took.get(_kind(key), 0.0) > seconds:
                return
            self._hurried.set()
            self._changed.wait_for(
                lambda: not self._is_running or key not in (self._present, *chain(*self._waiting.values())), seconds
            )
            self._hurried.clear()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for waiting in self._waiting.values():
                waiting.clear()

    def pause(self) -> None:
        took = time.thread_time() - self._began
        self._hurried.wait(min(LONGEST_PAUSE, PAUSE * took))
        self._began = time.thread_time()

    def _wake(self) -> None:
        if not self._is_running and not self._is_closed and self._first() is not None:
            self._is_running = True
            threading.Thread(target=self._run, name="windloom-plans", daemon=True).start()

    def _first(self) -> TaskPriority | None:
        """Return the priority of the next task that may be done now."""
        for priority, tasks in self._waiting.items():
            if tasks and (self._needed if priority is TaskPriority.NEEDED else self._optional) > 0:
                return priority
        return None

    def _next(self) -> tuple[Task, TaskPriority] | None:
        with self._lock:
            priority, self._present = self._first(), None
            self._is_running = priority is not None
            self._changed.notify_all()
            if priority is None:
                return None
            # The newest task is about where the stream is now.
            self._present, task = self._waiting[priority].popitem(last=True)
            return task, priority

    def _run(self) -> None:
        while (task_and_priority := self._next()) is not None:
            task, priority = task_and_priority
            begun = self._began = time.thread_time()
            try:
                task()
            except BaseException as error:  # a thread has no caller: whoever submits tasks finds it in `failure`
                with self._changed:
                    self.failure, self._is_running, self._is_closed = error, False, True
                    self._changed.notify_all()
                return
            with self._changed:
                seconds = time.thread_time() - begun
                if priority is TaskPriority.NEEDED:
                    self._took[_kind(self._present)] = seconds
                    self._needed -= seconds
                else:
                    self._optional -= seconds
                self._present = None
                self._changed.notify_all()
            self.pause()


def _kind(key: Hashable) -> Hashable:
    """Return the kind of a task: what it does, and for which basin."""
    return key[:2] if isinstance(key, tuple) else key
