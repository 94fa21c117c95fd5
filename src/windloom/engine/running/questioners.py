"""Counts the questions that are being answered: rounds wait for them, because questions come first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Questioners:
    """`patience` is how many seconds in all a round waits for questions; without a budget, it does not wait."""

    def __init__(self, patience: float = 0.0) -> None:
        self._patience = patience
        self._active = 0
        self._changed = threading.Condition()
        self._left = patience

    @contextmanager
    def asking(self) -> Iterator[None]:
        with self._changed:
            self._active += 1
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def round_begins(self) -> None:
        """Called when a round begins: patience starts anew."""
        with self._changed:
            self._left = self._patience

    def give_way(self) -> None:
        """Returns when no question is being answered, or patience is over."""
        if not self._patience:
            return
        with self._changed:
            begun = time.monotonic()
            self._changed.wait_for(lambda: self._active == 0, timeout=max(0.0, self._left))
            self._left -= time.monotonic() - begun
