"""The multi-way window joins of source E (Golab, section 5.2), tuple by tuple: eager or lazy, restoring or not.

Windloom has none of them: its rounds are lazy, and what they miss within a window is not missed, because windows are
answered at their ends. They are here to repeat the thesis' experiments. Four streams are joined on one attribute; each
window is a queue, or one queue per hash bucket, and new tuples probe the others in a global order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numba
import numpy as np
from numpy.typing import NDArray

from experiments.probe_orders import JoinedWindow
from windloom.optimizer.joins.order import Order

Ints = NDArray[np.int64]

STREAMS = 4


class Way(IntEnum):
    """When new tuples are joined, and what becomes of results that expire before that."""

    EAGER = 0  # at once (Algorithms 2 and 3)
    LAZY = 1  # every Δ; what has expired by then is not reported (Algorithm 4)
    RESTORED = 2  # every Δ; it is reported nevertheless (Algorithm 5)


@dataclass(frozen=True, slots=True)
class Probed:
    comparisons: int
    results: int


@dataclass(frozen=True, slots=True)
class Feed:
    """Tuples one by one, a tick each; a unit of time has as many ticks as all rates together."""

    stream: Ints
    value: Ints
    unit: int
    lengths: Ints  # of windows, in ticks

    @classmethod
    def drawn(cls, windows: list[JoinedWindow], units: int, seed: int) -> Feed:
        rng = np.random.default_rng(seed)
        rates = np.array([window.rate for window in windows])
        unit = round(rates.sum())
        stream = rng.choice(STREAMS, units * unit, p=rates / rates.sum())
        values = np.array([round(window.values) for window in windows])[stream]
        lengths = np.array([round(window.length * unit) for window in windows])
        return cls(stream, rng.integers(0, values), unit, lengths)


class WindowJoin:
    """Four windows; `feed` may be called several times."""

    def __init__(self, feed: Feed, order: Order, way: Way, *, delta: int = 0, buckets: int = 1) -> None:
        """`delta` is in units of time: between expirations if the way is eager, else between evaluations."""
        capacity = int(feed.lengths.max()) + max(1, delta) * feed.unit + 1
        self._order = np.array(order)
        self._way, self._delta, self._lengths = int(way), delta * feed.unit, feed.lengths
        self._values = np.zeros((STREAMS, buckets, capacity), np.int64)
        self._times = np.zeros((STREAMS, buckets, capacity), np.int64)
        self._heads = np.zeros((STREAMS, buckets), np.int64)
        self._sizes = np.zeros((STREAMS, buckets), np.int64)

    def feed(self, feed: Feed, first: int, end: int) -> Probed:
        state = (self._values, self._times, self._heads, self._sizes)
        run = _eager if self._way == Way.EAGER else _lazy
        restores = self._way == Way.RESTORED
        told = run(feed.stream, feed.value, first, end, self._order, self._delta, restores, self._lengths, *state)
        return Probed(int(told[0]), int(told[1]))


@numba.njit(cache=True)
def _expire(now, lengths, times, heads, sizes):  # type: ignore[no-untyped-def]
    """Every bucket is looked at."""
    capacity = times.shape[2]
    for stream in range(times.shape[0]):
        for bucket in range(times.shape[1]):
            at, left = heads[stream, bucket], sizes[stream, bucket]
            while left > 0 and times[stream, bucket, at] <= now - lengths[stream]:
                at = at + 1 if at + 1 < capacity else 0
                left -= 1
            heads[stream, bucket], sizes[stream, bucket] = at, left


@numba.njit(cache=True)
def _insert(stream, value, time, values, times, heads, sizes):  # type: ignore[no-untyped-def]
    bucket = value % values.shape[1]
    at = (heads[stream, bucket] + sizes[stream, bucket]) % values.shape[2]
    values[stream, bucket, at], times[stream, bucket, at] = value, time
    sizes[stream, bucket] += 1


@numba.njit(cache=True)
def _others(stream, order):  # type: ignore[no-untyped-def]
    found, place = np.zeros(STREAMS - 1, np.int64), 0
    for probed in order:
        if probed != stream:
            found[place] = probed
            place += 1
    return found


@numba.njit(cache=True)
def _eager(stream, value, first, end, order, delta, _, lengths, values, times, heads, sizes):  # type: ignore[no-untyped-def]
    comparisons, results, capacity = 0, 0, values.shape[2]
    checks = delta > 0  # expired tuples may still be there
    for now in range(first, end):
        if not checks or now % delta == 0:
            _expire(now, lengths, times, heads, sizes)
        own, v = stream[now], value[now]
        _insert(own, v, now, values, times, heads, sizes)
        bucket = v % values.shape[1]
        a, b, c = _others(own, order)
        at = heads[a, bucket]
        for _i in range(sizes[a, bucket]):
            comparisons += 1
            if values[a, bucket, at] == v and (not checks or times[a, bucket, at] > now - lengths[a]):
                other = heads[b, bucket]
                for _j in range(sizes[b, bucket]):
                    comparisons += 1
                    if values[b, bucket, other] == v and (not checks or times[b, bucket, other] > now - lengths[b]):
                        last = heads[c, bucket]
                        for _k in range(sizes[c, bucket]):
                            comparisons += 1
                            if values[c, bucket, last] == v and (
                                not checks or times[c, bucket, last] > now - lengths[c]
                            ):
                                results += 1
                            last = last + 1 if last + 1 < capacity else 0
                    other = other + 1 if other + 1 < capacity else 0
            at = at + 1 if at + 1 < capacity else 0
    return comparisons, results


@numba.njit(cache=True)
def _lazy(stream, value, first, end, order, delta, restores, lengths, values, times, heads, sizes):  # type: ignore[no-untyped-def]
    comparisons, results, capacity = 0, 0, values.shape[2]
    grouped = np.zeros(delta, np.int64)
    for begin in range(first, end, delta):
        stop = min(begin + delta, end)
        now = stop - 1
        if not restores:
            _expire(now, lengths, times, heads, sizes)
        for own in range(STREAMS):
            count = 0
            for time in range(begin, stop):
                if stream[time] == own and (restores or time > now - lengths[own]):
                    _insert(own, value[time], time, values, times, heads, sizes)
                    grouped[count] = time
                    count += 1
            new = grouped[:count]
            new = new[np.argsort(value[new], kind="mergesort")]  # equal values probe together
            a, b, c = _others(own, order)
            at = 0
            while at < count:
                v, until = value[new[at]], at
                while until < count and value[new[until]] == v:
                    until += 1
                group = new[at:until]
                earliest, at = group[0], until
                bucket = v % values.shape[1]
                i = heads[a, bucket]
                for _i in range(sizes[a, bucket]):
                    comparisons += 1
                    if values[a, bucket, i] == v and (not restores or times[a, bucket, i] + lengths[a] > earliest):
                        j = heads[b, bucket]
                        for _j in range(sizes[b, bucket]):
                            comparisons += 1
                            if values[b, bucket, j] == v and (
                                not restores or times[b, bucket, j] + lengths[b] > earliest
                            ):
                                k = heads[c, bucket]
                                for _k in range(sizes[c, bucket]):
                                    comparisons += 1
                                    if values[c, bucket, k] == v:
                                        if not restores:
                                            results += len(group)
                                        else:
                                            x, y, z = times[a, bucket, i], times[b, bucket, j], times[c, bucket, k]
                                            ends = min(x + lengths[a], y + lengths[b], z + lengths[c])
                                            latest = max(x, y, z)
                                            for time in group:
                                                if min(ends, time + lengths[own]) > max(latest, time):
                                                    results += 1
                                    k = k + 1 if k + 1 < capacity else 0
                            j = j + 1 if j + 1 < capacity else 0
                    i = i + 1 if i + 1 < capacity else 0
        if restores:
            _expire(now, lengths, times, heads, sizes)
    return comparisons, results


def lost_pairs(length: float, delta: float, pairs: int, seed: int) -> float:
    """The share of pairs of two windows that no evaluation sees, if they are evaluated every `delta`."""
    rng = np.random.default_rng(seed)
    begins = rng.uniform(0, 1000 * delta, pairs)  # when the second tuple comes
    ends = begins + length - rng.uniform(0, length, pairs)  # when the first one leaves
    return float((np.ceil(begins / delta) * delta >= ends).mean())
