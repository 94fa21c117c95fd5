"""A stopwatch for a machine that is not alone: times are taken in lengths of a yardstick that is timed beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

#: Seconds for which a yardstick's time is taken to hold.
_FRESH = 0.03
_LENGTH = 1 << 18


class Stopwatch:
    """Processor time of this thread, so that waiting for a core does not count.

    Neighbours also take caches, memory and clock speed, and made the same work take twice as long from one minute to
    the next. So an array is gathered and summed up every now and then, and what is measured counts in multiples of it.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(23)
        self._order = rng.permutation(_LENGTH)
        self._values = rng.integers(0, 1000, _LENGTH)
        self._out = np.empty(_LENGTH, np.int64)
        self._last = (0.0, 1.0)
        self._lengths: list[float] = []
        for _ in range(5):
            self._lay()
        del self._lengths[:-1]  # the last one counts: a short calibration may need no other

    def _lay(self) -> float:
        begun = time.thread_time()
        np.take(self._values, self._order, out=self._out)
        np.cumsum(self._out, out=self._out)
        took = max(time.thread_time() - begun, 1e-7)
        self._last = (time.perf_counter(), took)
        self._lengths.append(took)
        return took

    def _yardstick(self) -> float:
        return self._last[1] if time.perf_counter() - self._last[0] < _FRESH else self._lay()

    def lengths_of(self, action: Callable[[], object]) -> float:
        """How many yardsticks an action takes."""
        before = self._yardstick()
        begun = time.thread_time()
        action()
        took = max(time.thread_time() - begun, 1e-7)
        return took / ((before + self._yardstick()) / 2)

    @property
    def yardstick(self) -> float:
        """Seconds that the yardstick takes while nobody disturbs: one of the shortest times it took."""
        return float(np.quantile(self._lengths, 0.1))

    def seconds(self, lengths: Sequence[float]) -> float:
        """What an action takes while nobody disturbs."""
        return median(lengths) * self.yardstick
