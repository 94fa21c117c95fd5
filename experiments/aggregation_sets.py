"""The operators of source D (Tran and Lee), tuple by tuple: windows, aggregation sets, and joins with either.

Windloom has none of them: it folds at the ends of windows. They are here to repeat the paper's experiments. A two-way
join `SELECT g1, g2, SUM(a1), SUM(a2), COUNT(*) … WHERE j1 = j2 GROUP BY g1, g2` is kept up to date with every tuple
that comes, and with every tuple that leaves a full window, by one of four plans: a bit for each stream says whether it
is aggregated early. Joins are nested loops, or look up one list per join value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: The plans by name, as bits of the two streams.
PLANS = {"LAP": (False, False), "EAP10": (True, False), "EAP01": (False, True), "EAP11": (True, True)}


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters of both streams, as the paper names them; windows are in tuples."""

    rates: tuple[float, float] = (300.0, 300.0)
    windows: tuple[int, int] = (5000, 5000)
    groups: tuple[int, int] = (150, 1)
    selectivity: float = 0.1

    @property
    def values(self) -> int:
        """Distinct values of the join attribute."""
        return max(1, round(1 / self.selectivity))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Tuples of both streams in order of time: whose they are, join value, group and aggregated value."""

    stream: Ints
    value: Ints
    group: Ints
    amount: Ints


def arrivals(setting: Setting, seconds: float, seed: int) -> Arrivals:
    """Tuples at constant rates, with attributes drawn uniformly, after windows have been filled."""
    rng = np.random.default_rng(seed)
    fill = max(window / rate for window, rate in zip(setting.windows, setting.rates, strict=True))
    times, streams = [], []
    for number, rate in enumerate(setting.rates):
        own = np.arange(int((fill + seconds) * rate)) / rate + number / (2 * rate)
        times.append(own)
        streams.append(np.full(len(own), number))
    order = np.argsort(np.concatenate(times), kind="stable")
    stream = np.concatenate(streams)[order]
    groups = np.array(setting.groups)[stream]
    count = len(stream)
    return Arrivals(
        stream, rng.integers(0, setting.values, count), rng.integers(0, groups), rng.integers(1, 100, count)
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a plan did: entries of windows and sets that were looked at, matches, and the query's aggregation set."""

    looked_at: int
    matches: int
    sets: tuple[int, int]  # entries of the aggregation sets, or tuples of the windows, at the end
    result: Ints  # by group and group: sum of a1, sum of a2, count


class Plan:
    """One plan of one setting; `feed` may be called several times."""

    def __init__(self, setting: Setting, early: tuple[bool, bool], *, is_hash: bool) -> None:
        buckets = setting.values if is_hash else 1
        most = [
            min(window, setting.values * groups) if is_early else window
            for window, groups, is_early in zip(setting.windows, setting.groups, early, strict=True)
        ]
        self._early, self._is_hash = np.array(early), is_hash
        self._bounds = np.array(setting.windows), np.array([max(setting.groups)] * 2)
        # Of a window: the tuples that are in it, so that they can leave. An entry is a tuple, or a group of a set.
        longest = max(setting.windows)
        self._window = np.zeros((2, 3, longest), np.int64)
        self._heads, self._sizes = np.zeros(2, np.int64), np.zeros(2, np.int64)
        self._entries = np.zeros((2, 4, buckets, max(most)), np.int64)  # value, group, sum, count
        self._firsts, self._lengths = np.zeros((2, buckets), np.int64), np.zeros((2, buckets), np.int64)
        self._places = np.full((2, setting.values * max(setting.groups)), -1, np.int64)
        self._out = np.zeros((setting.groups[0] * setting.groups[1], 3), np.int64)
        self._second = setting.groups[1]

    def feed(self, tuples: Arrivals) -> Outcome:
        looked_at, matches = _run(
            tuples.stream,
            tuples.value,
            tuples.group,
            tuples.amount,
            self._early,
            self._is_hash,
            *self._bounds,
            self._window,
            self._heads,
            self._sizes,
            self._entries,
            self._firsts,
            self._lengths,
            self._places,
            self._out,
            self._second,
        )
        sizes = self._lengths.sum(axis=1)
        return Outcome(int(looked_at), int(matches), (int(sizes[0]), int(sizes[1])), self._out.copy())


@numba.njit(cache=True)
def _run(  # type: ignore[no-untyped-def]
    stream,
    value,
    group,
    amount,
    early,
    is_hash,
    longest,
    group_bounds,
    window,
    heads,
    sizes,
    entries,
    firsts,
    lengths,
    places,
    out,
    second,
):
    looked_at, matches = 0, 0
    for i in range(len(stream)):
        own = stream[i]
        if sizes[own] == longest[own]:  # the oldest tuple leaves (steps 5 to 8 of figure 4)
            at = heads[own]
            v, g, a = window[own, 0, at], window[own, 1, at], window[own, 2, at]
            heads[own] = (at + 1) % longest[own]
            sizes[own] -= 1
            _leave(own, v, g, a, early, is_hash, group_bounds, entries, firsts, lengths, places)
            seen, met = _join(own, v, g, a, -1, is_hash, entries, firsts, lengths, out, second)
            looked_at += seen
            matches += met
        v, g, a = value[i], group[i], amount[i]  # a tuple comes (steps 1 to 4)
        at = (heads[own] + sizes[own]) % longest[own]
        window[own, 0, at], window[own, 1, at], window[own, 2, at] = v, g, a
        sizes[own] += 1
        _enter(own, v, g, a, early, is_hash, group_bounds, entries, firsts, lengths, places)
        seen, met = _join(own, v, g, a, 1, is_hash, entries, firsts, lengths, out, second)
        looked_at += seen
        matches += met
    return looked_at, matches


@numba.njit(cache=True)
def _enter(own, v, g, a, early, is_hash, group_bounds, entries, firsts, lengths, places):  # type: ignore[no-untyped-def]
    """Updates the aggregation set of a stream, or adds the tuple to what is looked through."""
    bucket = v if is_hash else 0
    capacity = entries.shape[3]
    if early[own]:
        key = v * group_bounds[own] + g
        if places[own, key] >= 0:
            at = places[own, key]
            entries[own, 2, bucket, at] += a
            entries[own, 3, bucket, at] += 1
            return
        at = lengths[own, bucket]  # sets are compact, and begin at 0
        places[own, key] = at
    else:
        at = (firsts[own, bucket] + lengths[own, bucket]) % capacity
    entries[own, 0, bucket, at], entries[own, 1, bucket, at] = v, g
    entries[own, 2, bucket, at], entries[own, 3, bucket, at] = a, 1
    lengths[own, bucket] += 1


@numba.njit(cache=True)
def _leave(own, v, g, a, early, is_hash, group_bounds, entries, firsts, lengths, places):  # type: ignore[no-untyped-def]
    bucket = v if is_hash else 0
    if not early[own]:  # first in, first out, also within one join value
        firsts[own, bucket] = (firsts[own, bucket] + 1) % entries.shape[3]
        lengths[own, bucket] -= 1
        return
    key = v * group_bounds[own] + g
    at = places[own, key]
    entries[own, 2, bucket, at] -= a
    entries[own, 3, bucket, at] -= 1
    if entries[own, 3, bucket, at] == 0:  # the last entry takes its place
        last = lengths[own, bucket] - 1
        moved = entries[own, 0, bucket, last] * group_bounds[own] + entries[own, 1, bucket, last]
        for field in range(4):
            entries[own, field, bucket, at] = entries[own, field, bucket, last]
        places[own, moved] = at
        places[own, key] = -1
        lengths[own, bucket] = last


@numba.njit(cache=True)
def _join(own, v, g, a, sign, is_hash, entries, firsts, lengths, out, second):  # type: ignore[no-untyped-def]
    """Looks through the other window, or its aggregation set, and updates the result for every match."""
    other = 1 - own
    bucket = v if is_hash else 0
    capacity = entries.shape[3]
    length, at, met = lengths[other, bucket], firsts[other, bucket], 0
    for _ in range(length):
        if entries[other, 0, bucket, at] == v:
            met += 1
            theirs, total, count = (
                entries[other, 1, bucket, at],
                entries[other, 2, bucket, at],
                entries[other, 3, bucket, at],
            )
            place = g * second + theirs if own == 0 else theirs * second + g
            out[place, own] += sign * a * count
            out[place, other] += sign * total
            out[place, 2] += sign * count
        at += 1
        if at == capacity:
            at = 0
    return length, met
