"""Axes: from values to pixels, and round values for their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, floor, isclose, log10

from windloom.model.figures import number

_TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)
_DAY = 86_400
_SHOWN_TIMES = 7


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` stand at pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool = False

    def at(self, value: float) -> float:
        """
        >>> Scale(1, 100, 0, 80, (), log=True).at(10)
        40.0
        """
        if self.log:
            fraction = log10(value / self.low) / log10(self.high / self.low)
        else:
            fraction = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * fraction


def linear_ticks(low: float, high: float, about: int) -> list[float]:
    """About `about` round values that enclose low and high.

    >>> linear_ticks(0, 97, 5), linear_ticks(3.1, 3.9, 4)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [3.0, 3.2, 3.4, 3.6, 3.8, 4.0])
    """
    if isclose(low, high, rel_tol=1e-12, abs_tol=0.0) or low == high:
        room = abs(low) * 0.05 or 1.0
        low, high = low - room, high + room
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    digits = max(0, 2 - floor(log10(step)))
    return [round(index * step, digits) for index in range(first, last + 1)]


def log_ticks(low: float, high: float, about: int) -> list[float]:
    """Round values that enclose low and high, both above zero, at equal ratios; 1, 2 and 5 if powers of ten are few.

    >>> log_ticks(3, 40_000, 6), log_ticks(60, 300, 6)
    ([1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0], [50.0, 100.0, 200.0, 500.0])
    """
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    last = max(last, first + 1)
    if last - first > 2:
        step = max(1, ceil((last - first) / about))
        return [10.0**power for power in range(first, last + step, step)]
    fine = [factor * 10.0**power for power in range(first, last) for factor in (1, 2, 5)] + [10.0**last]
    start = max(i for i, tick in enumerate(fine) if tick <= low * (1 + 1e-9))
    end = min(i for i, tick in enumerate(fine) if tick >= high * (1 - 1e-9))
    return fine[start : max(end, start + 1) + 1]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Labels with just enough digits to distinguish neighbours.

    >>> tick_labels([100_000.0, 100_000.25, 100_000.5]), tick_labels([0.0, 20.0])
    (['100,000', '100,000.25', '100,000.5'], ['0', '20'])
    """
    if max(abs(tick) for tick in ticks) >= 1e12 or len(ticks) < 2 or ticks[1] - ticks[0] < 1e-6:
        return [number(tick) for tick in ticks]
    digits = max(0, 1 - floor(log10(ticks[1] - ticks[0])))
    return [f"{tick:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{tick:,.0f}" for tick in ticks]


def time_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Round instants (seconds since the epoch, UTC) between low and high, and their labels.

    >>> time_ticks(0, 3_600)[1]
    ['00:00', '00:10', '00:20', '00:30', '00:40', '00:50', '01:00']
    """
    step = next((seconds for seconds in _TIME_STEPS if (high - low) / seconds <= _SHOWN_TIMES), 0)
    if step == 0:
        step = _DAY * ceil((high - low) / _DAY / _SHOWN_TIMES)
    ticks = [float(index * step) for index in range(ceil(low / step), floor(high / step) + 1)]
    days = {tick // _DAY for tick in ticks}
    pattern = "%H:%M:%S" if step < 60 else "%H:%M"
    if step >= _DAY:
        pattern = "%Y-%m-%d"
    elif len(days) > 1:
        pattern = "%m-%d " + pattern
    return ticks, [datetime.fromtimestamp(tick, UTC).strftime(pattern) for tick in ticks]
