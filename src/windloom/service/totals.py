"""Sums and rates over the rounds of this process, for the figures at a glance."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable

from windloom.engine.running.progress import RoundProgress

#: Rates are over the rounds of this many seconds.
_SPAN = 60.0


class Totals:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._begun = clock()
        self._recent: deque[tuple[float, RoundProgress]] = deque()
        self.events = self.rows = 0
        self.tuples: Counter[str] = Counter()  # by stream
        self.late: dict[str, Counter[str]] = {}
        self.last: RoundProgress | None = None

    def add(self, done: RoundProgress) -> None:
        with self._lock:
            self.last = done
            self.events += done.events
            self.rows += done.results
            self.tuples.update(done.tuples)
            for stream, late in done.late.items():
                self.late.setdefault(stream, Counter()).update(late)
            self._recent.append((self._clock(), done))
            self._forget()

    def rates(self) -> tuple[float | None, float | None, float | None]:
        """Return events and rows per second of the clock, and seconds per round; None before the first round."""
        with self._lock:
            self._forget()
            if self.last is None:
                return None, None, None
            span = self._span()
            rounds = [done for _, done in self._recent]
            events, rows = sum(progress.events for progress in rounds), sum(progress.results for progress in rounds)
            taken = [progress.total_seconds for progress in rounds] or [self.last.total_seconds]
            return events / span, rows / span, sum(taken) / len(taken)

    def stream_rates(self) -> dict[str, float]:
        """Return tuples per second of the clock, by stream; empty before the first round."""
        with self._lock:
            self._forget()
            came: Counter[str] = Counter() if self.last is None else Counter(dict.fromkeys(self.last.tuples, 0))
            for _, done in self._recent:
                came.update(done.tuples)
            return {name: count / self._span() for name, count in came.items()}

    def _span(self) -> float:
        return max(min(_SPAN, self._clock() - self._begun), 1.0)

    def _forget(self) -> None:
        while self._recent and self._recent[0][0] < self._clock() - _SPAN:
            self._recent.popleft()
