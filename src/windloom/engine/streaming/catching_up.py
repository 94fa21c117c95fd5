"""Rounds that only answer, run while a stream is silent: postponed answers do not wait for the next tuples."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from windloom.engine.running.delivery import RoundStoppedError
from windloom.engine.running.loop import RoundLoop
from windloom.spark.errors import as_windloom_errors

#: Seconds without a micro-batch after which the stream counts as silent.
QUIET_SECONDS = 0.25


class CatchingUp:
    """A thread that runs rounds, each within the budget, while answers are left and no micro-batch is waiting."""

    def __init__(self, loop: RoundLoop) -> None:
        self._loop = loop
        self._state = threading.Condition()
        self._batches = 0  # micro-batches that run or wait for their round
        self._begun = 0  # all micro-batches so far
        self._is_stopped = False

    @contextmanager
    def standing_aside(self) -> Iterator[None]:
        """Hold this while a micro-batch waits for its round or runs it."""
        with self._state:
            self._batches += 1
            self._begun += 1
        try:
            yield
        finally:
            with self._state:
                self._batches -= 1
                self._state.notify_all()

    def start(self, fail: Callable[[BaseException], None]) -> None:
        """Do nothing without a budget, because then nothing is ever left."""
        if self._loop.scheduling.budget is not None:
            threading.Thread(target=self._run, args=(fail,), name="windloom-catch-up", daemon=True).start()

    def stop(self) -> None:
        with self._state:
            self._is_stopped = True
            self._state.notify_all()

    def _run(self, fail: Callable[[BaseException], None]) -> None:
        while self._wait_for_quiet():
            try:
                with as_windloom_errors("the stream"):
                    self._loop.catch_up()
            except RoundStoppedError:
                return
            except BaseException as error:  # a thread has no caller: the handle reports it
                fail(error)
                return

    def _wait_for_quiet(self) -> bool:
        """Return when answers are left and no micro-batch has come for a while; False if the stream has ended."""
        with self._state:
            while not self._is_stopped:
                begun = self._begun
                self._state.wait(QUIET_SECONDS)
                if self._is_stopped:
                    break
                if self._batches == 0 and begun == self._begun and self._loop.state.answered:
                    return True
            return False
