"""Query 4 of source E, section 3.6, in its two plans, and all queries as objects that are fed and read.

The query joins the tuples of one link that another link does not have with those of a third one. Its two plans are
equal if negation is NOT EXISTS, and not if it is the difference of bags.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numba
import numpy as np
from numpy.typing import NDArray

from experiments.linked_lists import (
    CAME,
    COUNTED,
    EARLY,
    KEPT,
    NEGATIVE,
    NONE,
    TOUCHED,
    Ints,
    Lists,
    append,
    drop_fronts,
    empty_lists,
    insert_by_end,
    unlink,
    walk_to,
)
from experiments.pattern_operators import (
    BAGS,
    NT,
    UPA,
    Results,
    Tuples,
    add,
    distinct,
    empty_results,
    empty_tuples,
    enter,
    join,
    leave,
    matches,
    most_pairs,
    negation,
    withdraw,
)

Bools = NDArray[np.bool_]


@numba.njit(cache=True)
def _show(results, node, parts, counts):  # type: ignore[no-untyped-def]
    append(results.lists, (results.left[node] * 31 + results.right[node]) % parts, node)
    counts[CAME] += 1


@numba.njit(cache=True)
def _hide(results, node, parts, counts):  # type: ignore[no-untyped-def]
    counts[NEGATIVE] += 1
    number = (results.left[node] * 31 + results.right[node]) % parts
    walk_to(results.lists, number, node, counts)
    unlink(results.lists, number, node)


@numba.njit(cache=True)
def _release(results, node):  # type: ignore[no-untyped-def]
    results.free[results.top[0]] = node
    results.top[0] += 1


@numba.njit(cache=True)
def negation_last(way, value, passes, length, delta, parts, first, end, tuples, results, joined, calendar, present, counts):  # type: ignore[no-untyped-def] # fmt: skip # noqa: E501
    """Links 0 and 2 are joined, and of the pairs those are left whose value link 1 does not have.

    `joined` are all pairs by value, `calendar` the same by end (if the way is aware of patterns).
    """
    width = -(-length // parts)
    for now in range(first, end):
        old = now - length
        if way == NT:
            for link in (0, 2):
                counts[TOUCHED] += 1
                if old < 0:
                    continue
                counts[NEGATIVE] += 1
                if not passes[link, old]:
                    continue
                key = value[link, old]
                leave(tuples, link, old, key, counts)
                at = tuples.lists.heads[(2 - link) * parts + key % parts]
                while at != NONE:
                    counts[TOUCHED] += 1
                    if tuples.keys[at] == key:
                        time = tuples.times[at]
                        left, right = (old, time) if link == 0 else (time, old)
                        counts[NEGATIVE] += 1
                        node = joined.heads[key % parts]
                        while results.left[node] != left or results.right[node] != right:
                            counts[TOUCHED] += 1
                            node = joined.nexts[node]
                        counts[TOUCHED] += 1
                        unlink(joined, key % parts, node)
                        if present[1, key] == 0:
                            _hide(results, node, parts, counts)
                        _release(results, node)
                    at = tuples.lists.nexts[at]
        else:
            if now % delta == 0:
                drop_fronts(tuples.lists, 0, parts, tuples.ends, now, counts)
                drop_fronts(tuples.lists, 2 * parts, 3 * parts, tuples.ends, now, counts)
            day = now // width % parts
            counts[TOUCHED] += 1
            while calendar.heads[day] != NONE and results.ends[calendar.heads[day]] <= now:
                node = calendar.heads[day]
                key = results.keys[node]
                unlink(calendar, day, node)
                unlink(joined, key % parts, node)
                if present[1, key] == 0:
                    _hide(results, node, parts, counts)
                _release(results, node)
        counts[TOUCHED] += 1
        if old >= 0:
            if way == NT:
                counts[NEGATIVE] += 1
            key = value[1, old]
            leave(tuples, 1, old, key, counts)
            present[1, key] -= 1
            if present[1, key] == 0:
                at = joined.heads[key % parts]
                while at != NONE:
                    counts[TOUCHED] += 1
                    if results.keys[at] == key:
                        _show(results, at, parts, counts)
                    at = joined.nexts[at]
        for link in range(3):
            if not passes[link, now]:
                continue
            key = value[link, now]
            enter(tuples, link, now, key, length)
            if link == 1:
                present[1, key] += 1
                if present[1, key] == 1:
                    at = joined.heads[key % parts]
                    while at != NONE:
                        counts[TOUCHED] += 1
                        if results.keys[at] == key:
                            _hide(results, at, parts, counts)
                            counts[EARLY] += 1
                        at = joined.nexts[at]
                continue
            at = tuples.lists.heads[(2 - link) * parts + key % parts]
            while at != NONE:
                counts[TOUCHED] += 1
                if tuples.keys[at] == key and tuples.ends[at] > now:
                    time = tuples.times[at]
                    results.top[0] -= 1
                    node = results.free[results.top[0]]
                    results.left[node], results.right[node] = (now, time) if link == 0 else (time, now)
                    results.keys[node], results.ends[node] = key, min(now, time) + length
                    append(joined, key % parts, node)
                    if way != NT:
                        insert_by_end(calendar, results.ends[node] // width % parts, node, results.ends, counts)
                    if present[1, key] == 0:
                        _show(results, node, parts, counts)
                at = tuples.lists.nexts[at]
        counts[KEPT] += len(results.free) - results.top[0]


@numba.njit(cache=True)
def _joins(tuples, results, node, length, parts, counts):  # type: ignore[no-untyped-def]
    """The pairs of a tuple of link 0 come."""
    key, time = tuples.keys[node], tuples.times[node]
    at = tuples.lists.heads[2 * parts + key % parts]
    while at != NONE:
        counts[TOUCHED] += 1
        if tuples.keys[at] == key:
            ends = min(time, tuples.times[at]) + length
            add(results, NT, time, tuples.times[at], key, ends, length, parts, False, counts)
        at = tuples.lists.nexts[at]


@numba.njit(cache=True)
def _parts_with(tuples, results, node, parts, counts):  # type: ignore[no-untyped-def]
    """The pairs of a tuple of link 0 go."""
    key, time = tuples.keys[node], tuples.times[node]
    at = tuples.lists.heads[2 * parts + key % parts]
    while at != NONE:
        counts[TOUCHED] += 1
        if tuples.keys[at] == key:
            withdraw(results, time, tuples.times[at], parts, counts)
        at = tuples.lists.nexts[at]


@numba.njit(cache=True)
def join_last(value, passes, length, parts, first, end, tuples, results, left, present, counts):  # type: ignore[no-untyped-def]
    """What of link 0 link 1 does not have (`left`) is joined with link 2, all by negative tuples."""
    found = np.zeros(length + 1, np.int64)
    for now in range(first, end):
        old = now - length
        for link in (0, 2, 1):
            counts[TOUCHED] += 1
            if old < 0:
                continue
            counts[NEGATIVE] += 1
            if not passes[link, old]:
                continue
            key = value[link, old]
            node = leave(tuples, link, old, key, counts)
            if link == 2:
                at = left.heads[key % parts]
                while at != NONE:
                    counts[TOUCHED] += 1
                    if tuples.keys[at] == key:
                        withdraw(results, tuples.times[at], old, parts, counts)
                    at = left.nexts[at]
                continue
            present[link, key] -= 1
            if link == 0 and present[1, key] == 0:
                counts[NEGATIVE] += 1
                walk_to(left, key % parts, node, counts)
                unlink(left, key % parts, node)
                _parts_with(tuples, results, node, parts, counts)
            if link == 1 and present[1, key] == 0:
                taken = matches(tuples, 0, key, 0, present[0, key], False, found, counts)
                for place in range(taken):
                    append(left, key % parts, found[place])
                    _joins(tuples, results, found[place], length, parts, counts)
        for link in range(3):
            if not passes[link, now]:
                continue
            key = value[link, now]
            node = enter(tuples, link, now, key, length)
            if link == 2:
                at = left.heads[key % parts]
                while at != NONE:
                    counts[TOUCHED] += 1
                    if tuples.keys[at] == key:
                        time = tuples.times[at]
                        add(results, NT, time, now, key, min(time, now) + length, length, parts, False, counts)
                    at = left.nexts[at]
                continue
            present[link, key] += 1
            if link == 0 and present[1, key] == 0:
                append(left, key % parts, node)
                _joins(tuples, results, node, length, parts, counts)
            if link == 1 and present[1, key] == 1:
                taken = matches(tuples, 0, key, 0, present[0, key], False, found, counts)
                for place in range(taken):
                    counts[NEGATIVE] += 1
                    counts[EARLY] += 1
                    walk_to(left, key % parts, found[place], counts)
                    unlink(left, key % parts, found[place])
                    _parts_with(tuples, results, found[place], parts, counts)
        counts[KEPT] += len(results.free) - results.top[0]


@dataclass
class Links:
    """What comes: a value per link and unit of time, and whether it passes the link's selection."""

    value: Ints
    passes: Bools

    @property
    def units(self) -> int:
        return int(self.value.shape[1])


@dataclass
class PatternQuery:
    """A query over windows of `length`, which is fed unit by unit; what ends is looked for every `delta` if lazily."""

    links: Links
    way: int
    length: int
    parts: int = 10
    counts: Ints = field(init=False)
    _at: int = 0

    def __post_init__(self) -> None:
        self.delta = max(1, self.length // 20)
        self.capacity = self.length + 2 * self.delta + 2
        self.counts = np.zeros(COUNTED, np.int64)
        self.start()

    def start(self) -> None:
        raise NotImplementedError

    def feed(self, end: int) -> None:
        self.step(self._at, end)
        self._at = end

    def step(self, first: int, end: int) -> None:
        raise NotImplementedError

    def results(self) -> Counter[tuple[int, ...]]:
        """The present result: times of tuples."""
        raise NotImplementedError

    def _capacity(self, other: int) -> int:
        return int(most_pairs(self.links.value, self.links.passes, other, self.length + self.delta)) + 1

    def _pairs(self, results: Results) -> Counter[tuple[int, ...]]:
        nodes = [node for node in _nodes(results.lists) if results.ends[node] >= self._at]
        return Counter((int(results.left[node]), int(results.right[node])) for node in nodes)


def _nodes(lists: Lists) -> list[int]:
    found = []
    for head in lists.heads:
        at = head
        while at != NONE:
            found.append(int(at))
            at = lists.nexts[at]
    return found


@dataclass
class Joined(PatternQuery):
    """Query 1; results that end go at once if it is `eager`."""

    eager: bool = False

    def start(self) -> None:
        self.tuples: Tuples = empty_tuples(2, self.parts, self.capacity)
        self.pairs = empty_results(self.parts, self._capacity(1))

    def step(self, first: int, end: int) -> None:
        sizes = (self.length, self.delta, self.parts, first, end)
        fed = (self.links.value, self.links.passes)
        join(self.way, self.eager, *fed, *sizes, self.tuples, self.pairs, self.counts)

    def results(self) -> Counter[tuple[int, ...]]:
        return self._pairs(self.pairs)


class Distinct(PatternQuery):
    """Query 2."""

    def start(self) -> None:
        self.tuples = empty_tuples(1, self.parts, self.capacity)
        self.shown, self.calendar, self.others = (empty_lists(self.parts, self.capacity) for _ in range(3))
        self.sizes = np.zeros(3, np.int64)

    def step(self, first: int, end: int) -> None:
        sizes = (self.length, self.delta, self.parts, first, end)
        lists = (self.shown, self.calendar, self.others)
        distinct(self.way, self.links.value[0], *sizes, self.tuples, *lists, self.sizes, self.counts)

    def results(self) -> Counter[tuple[int, ...]]:
        return Counter((int(self.tuples.times[node]),) for node in _nodes(self.shown))


@dataclass
class Negated(PatternQuery):
    """Query 3; `kind` is what negation means."""

    kind: int = BAGS

    def start(self) -> None:
        self.tuples = empty_tuples(2, self.parts, self.capacity)
        self.shown = empty_lists(self.parts, 2 * self.capacity)
        self.present = np.zeros((2, int(self.links.value.max()) + 1), np.int64)
        self.sizes = np.zeros(1, np.int64)

    def step(self, first: int, end: int) -> None:
        sizes = (self.length, self.delta, self.parts, first, end)
        state = (self.tuples, self.shown, self.present, self.sizes)
        negation(self.way, self.kind, self.links.value, *sizes, *state, self.counts)

    def results(self) -> Counter[tuple[int, ...]]:
        nodes = [node for node in _nodes(self.shown) if self.tuples.ends[node] >= self._at]
        return Counter((int(self.tuples.times[node]),) for node in nodes)


@dataclass
class NegatedJoin(PatternQuery):
    """Query 4; `joins_last` is the plan in which negation is pushed down, by negative tuples throughout."""

    joins_last: bool = False

    def start(self) -> None:
        assert self.way == UPA or self.way == NT
        self.tuples = empty_tuples(3, self.parts, self.capacity)
        self.pairs = empty_results(self.parts, self._capacity(2))
        nodes = len(self.pairs.free)
        self.joined, self.calendar = (empty_lists(self.parts, nodes) for _ in range(2))
        self.left = empty_lists(self.parts, self.capacity)
        self.present = np.zeros((2, int(self.links.value.max()) + 1), np.int64)

    def step(self, first: int, end: int) -> None:
        fed = (self.links.value, self.links.passes, self.length)
        span = (self.parts, first, end, self.tuples, self.pairs)
        if self.joins_last:
            join_last(*fed, *span, self.left, self.present, self.counts)
        else:
            lists = (self.joined, self.calendar)
            negation_last(self.way, *fed, self.delta, *span, *lists, self.present, self.counts)

    def results(self) -> Counter[tuple[int, ...]]:
        return self._pairs(self.pairs)
