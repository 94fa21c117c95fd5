"""The queries of source E, section 3.6, tuple by tuple: negative tuples, the direct approach, update-pattern aware.

Windloom has none of these operators; they are here to repeat the thesis' experiments. On every link one tuple comes in
each unit of time; it is in its window for `length` units. States are hash tables by value and results hash tables by
tuple, calendar queues or plain lists, all with the same few `parts`; every part is a linked list.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from experiments.linked_lists import (
    CAME,
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

#: How results are kept up to date.
NT, DIRECT, UPA, UPA_BY_END = range(4)
#: What negation means: Golab's operator (section 2.2.2), and what his query says.
BAGS, NOT_EXISTS = range(2)


class Tuples(NamedTuple):
    """Tuples of all links: a ring of nodes for each, in lists by value."""

    lists: Lists
    times: Ints
    keys: Ints
    ends: Ints
    parts: int


class Results(NamedTuple):
    """Pairs of tuples: `free` is a stack of nodes, whose height is `top`."""

    lists: Lists
    left: Ints
    right: Ints
    keys: Ints
    ends: Ints
    free: Ints
    top: Ints


def empty_tuples(links: int, parts: int, capacity: int) -> Tuples:
    nodes = links * capacity
    times, keys, ends = (np.zeros(nodes, np.int64) for _ in range(3))
    return Tuples(empty_lists(links * parts, nodes), times, keys, ends, parts)


def empty_results(parts: int, capacity: int) -> Results:
    left, right, keys, ends = (np.zeros(capacity, np.int64) for _ in range(4))
    free = np.arange(capacity)[::-1].copy()
    return Results(empty_lists(parts, capacity), left, right, keys, ends, free, np.array([capacity]))


@numba.njit(cache=True)
def most_pairs(value, passes, other, length):  # type: ignore[no-untyped-def]
    """The most pairs that two windows ever have: of link 0, and of link `other`."""
    size = value.max() + 1
    counts, pairs, most = np.zeros((2, size), np.int64), 0, 0
    for now in range(value.shape[1]):
        for side in range(2):
            link = 0 if side == 0 else other
            if passes[link, now]:
                pairs += counts[1 - side, value[link, now]]
                counts[side, value[link, now]] += 1
            old = now - length
            if old >= 0 and passes[link, old]:
                counts[side, value[link, old]] -= 1
                pairs -= counts[1 - side, value[link, old]]
        most = max(most, pairs)
    return most


@numba.njit(cache=True)
def enter(tuples, link, now, key, length):  # type: ignore[no-untyped-def]
    capacity = len(tuples.times) // (len(tuples.lists.heads) // tuples.parts)
    node = link * capacity + now % capacity
    tuples.times[node], tuples.keys[node], tuples.ends[node] = now, key, now + length
    append(tuples.lists, link * tuples.parts + key % tuples.parts, node)
    return node


@numba.njit(cache=True)
def leave(tuples, link, time, key, counts):  # type: ignore[no-untyped-def]
    """A negative tuple takes its tuple out of its state."""
    capacity = len(tuples.times) // (len(tuples.lists.heads) // tuples.parts)
    node = link * capacity + time % capacity
    number = link * tuples.parts + key % tuples.parts
    if walk_to(tuples.lists, number, node, counts):
        unlink(tuples.lists, number, node)
    return node


@numba.njit(cache=True)
def part(way, left, right, end, length, parts):  # type: ignore[no-untyped-def]
    """The list of a result: by tuple, the only one, or by end."""
    if way == NT:
        return (left * 31 + right) % parts
    if way == DIRECT:
        return 0
    return (end // -(-length // parts)) % parts


@numba.njit(cache=True)
def add(results, way, left, right, key, end, length, parts, sorts, counts):  # type: ignore[no-untyped-def]
    results.top[0] -= 1
    node = results.free[results.top[0]]
    results.left[node], results.right[node], results.keys[node], results.ends[node] = left, right, key, end
    if sorts:
        insert_by_end(results.lists, part(way, left, right, end, length, parts), node, results.ends, counts)
    else:
        append(results.lists, part(way, left, right, end, length, parts), node)
    counts[CAME] += 1
    return node


@numba.njit(cache=True)
def withdraw(results, left, right, parts, counts):  # type: ignore[no-untyped-def]
    """A negative result takes its result out of the hash table; its node, which is free."""
    counts[NEGATIVE] += 1
    number = (left * 31 + right) % parts
    at = results.lists.heads[number]
    while at != NONE:
        counts[TOUCHED] += 1
        if results.left[at] == left and results.right[at] == right:
            unlink(results.lists, number, at)
            results.free[results.top[0]] = at
            results.top[0] += 1
            return at
        at = results.lists.nexts[at]
    return NONE


@numba.njit(cache=True)
def expire_parts(way, lists, ends, before, now, length, parts, counts, free, top):  # type: ignore[no-untyped-def]
    """Of a plain list all nodes are looked at, of a calendar those of the days that have passed."""
    if way == DIRECT:
        first, last = 0, 0
    else:
        width = -(-length // parts)
        first, last = before // width, now // width
        last = min(last, first + parts - 1)
    dropped = 0
    for day in range(first, last + 1):
        number = 0 if way == DIRECT else day % parts
        at = lists.heads[number]
        while at != NONE:
            counts[TOUCHED] += 1
            after = lists.nexts[at]
            if ends[at] <= now:
                unlink(lists, number, at)
                dropped += 1
                if len(free):
                    free[top[0]] = at
                    top[0] += 1
            at = after
    return dropped


@numba.njit(cache=True)
def join(way, eager, value, passes, length, delta, parts, first, end, tuples, results, counts):  # type: ignore[no-untyped-def]
    """Query 1: the pairs of two links with equal values; without negative tuples, those that end go at once or lazily.

    If a calendar's results go at once, its days are sorted by end.
    """
    sorts = eager and way == UPA
    for now in range(first, end):
        if way == NT:
            old = now - length
            for link in range(2):
                counts[TOUCHED] += 1
                if old < 0:
                    continue
                counts[NEGATIVE] += 1
                if not passes[link, old]:
                    continue
                key = value[link, old]
                leave(tuples, link, old, key, counts)
                at = tuples.lists.heads[(1 - link) * tuples.parts + key % tuples.parts]
                while at != NONE:
                    counts[TOUCHED] += 1
                    if tuples.keys[at] == key:
                        time = tuples.times[at]
                        left, right = (old, time) if link == 0 else (time, old)
                        withdraw(results, left, right, parts, counts)
                    at = tuples.lists.nexts[at]
        elif now % delta == 0:
            drop_fronts(tuples.lists, 0, len(tuples.lists.heads), tuples.ends, now, counts)
        if sorts:
            today = now // -(-length // parts) % parts
            counts[TOUCHED] += 1
            while results.lists.heads[today] != NONE and results.ends[results.lists.heads[today]] <= now:
                counts[TOUCHED] += 1
                results.free[results.top[0]] = results.lists.heads[today]
                results.top[0] += 1
                unlink(results.lists, today, results.lists.heads[today])
        elif way != NT and (eager or now % delta == 0):
            expire_parts(
                way, results.lists, results.ends, now - delta, now, length, parts, counts, results.free, results.top
            )
        for link in range(2):
            if not passes[link, now]:
                continue
            key = value[link, now]
            enter(tuples, link, now, key, length)
            at = tuples.lists.heads[(1 - link) * tuples.parts + key % tuples.parts]
            while at != NONE:
                counts[TOUCHED] += 1
                if tuples.keys[at] == key and tuples.ends[at] > now:
                    time = tuples.times[at]
                    left, right = (now, time) if link == 0 else (time, now)
                    add(results, way, left, right, key, min(now, time) + length, length, parts, sorts, counts)
                at = tuples.lists.nexts[at]
        counts[KEPT] += len(results.free) - results.top[0]


@numba.njit(cache=True)
def youngest(lists, number, keys, ends, key, now, counts):  # type: ignore[no-untyped-def]
    at = lists.tails[number]
    while at != NONE:
        counts[TOUCHED] += 1
        if keys[at] == key and ends[at] > now:
            return at
        at = lists.prevs[at]
    return NONE


@numba.njit(cache=True)
def distinct(way, value, length, delta, parts, first, end, tuples, shown, calendar, others, sizes, counts):  # type: ignore[no-untyped-def]
    """Query 2: one tuple for each value; the youngest other one follows it when it ends.

    `shown` are the results by value; `others` are, if the way is aware of patterns, the youngest duplicates, and
    `tuples` is then used for its nodes alone (δ*). `sizes` tells how many tuples, results and duplicates are kept.
    """
    width = -(-length // parts)
    keys, ends = tuples.keys, tuples.ends
    capacity = len(tuples.times)
    for now in range(first, end):
        if way == NT:
            old = now - length
            counts[TOUCHED] += 1
            if old >= 0:
                counts[NEGATIVE] += 1
                key = value[old]
                number = key % parts
                node = leave(tuples, 0, old, key, counts)
                sizes[0] -= 1
                if walk_to(shown, number, node, counts):
                    unlink(shown, number, node)
                    counts[NEGATIVE] += 1
                    sizes[1] -= 1
                    follower = youngest(tuples.lists, number, keys, ends, key, now, counts)
                    if follower != NONE:
                        append(shown, number, follower)
                        counts[CAME] += 1
                        sizes[1] += 1
        elif way == DIRECT:
            if now % delta == 0:
                sizes[0] -= drop_fronts(tuples.lists, 0, parts, ends, now, counts)
            for number in range(parts):
                at = shown.heads[number]
                while at != NONE:
                    counts[TOUCHED] += 1
                    after = shown.nexts[at]
                    if ends[at] <= now:
                        unlink(shown, number, at)
                        sizes[1] -= 1
                        follower = youngest(tuples.lists, number, keys, ends, keys[at], now, counts)
                        if follower != NONE:
                            append(shown, number, follower)
                            counts[CAME] += 1
                            sizes[1] += 1
                    at = after
        else:
            day = now // width % parts
            counts[TOUCHED] += 1
            while calendar.heads[day] != NONE and ends[calendar.heads[day]] <= now:
                node = calendar.heads[day]
                key = keys[node]
                number = key % parts
                unlink(calendar, day, node)
                unlink(shown, number, node)
                sizes[1] -= 1
                follower = youngest(others, number, keys, ends, key, now, counts)
                if follower != NONE:
                    unlink(others, number, follower)
                    append(shown, number, follower)
                    insert_by_end(calendar, ends[follower] // width % parts, follower, ends, counts)
                    counts[CAME] += 1
                    sizes[1] += 1
                    sizes[2] -= 1
        key = value[now]
        number = key % parts
        if way in (NT, DIRECT):
            node = enter(tuples, 0, now, key, length)
            sizes[0] += 1
        else:
            node = now % capacity
            tuples.times[node], keys[node], ends[node] = now, key, now + length
        if youngest(shown, number, keys, ends, key, now, counts) == NONE:
            append(shown, number, node)
            counts[CAME] += 1
            sizes[1] += 1
            if way == UPA:
                insert_by_end(calendar, ends[node] // width % parts, node, ends, counts)
        elif way == UPA:
            other = youngest(others, number, keys, ends, key, now, counts)
            if other != NONE:
                unlink(others, number, other)
                sizes[2] -= 1
            append(others, number, node)
            sizes[2] += 1
        counts[KEPT] += sizes[0] + sizes[1] + sizes[2]
        if way == NT:
            counts[KEPT] += min(now + 1, length)  # the window, from which negative tuples are made


@numba.njit(cache=True)
def forget(way, lists, node, times, ends, length, parts, counts):  # type: ignore[no-untyped-def]
    """A negative result: one part is looked through, or with a calendar whose days are not told all of them."""
    counts[NEGATIVE] += 1
    own = part(way, times[node], 0, ends[node], length, parts)
    if way != UPA:
        walk_to(lists, own, node, counts)
    else:
        for number in range(parts):
            if walk_to(lists, number, node, counts):
                break
    unlink(lists, own, node)


@numba.njit(cache=True)
def matches(tuples, link, key, skipped, wanted, backwards, found, counts):  # type: ignore[no-untyped-def]
    """Nodes of a value: so many, after so many others, from the oldest or from the youngest on; how many there are."""
    number = link * tuples.parts + key % tuples.parts
    at = tuples.lists.tails[number] if backwards else tuples.lists.heads[number]
    seen, taken = 0, 0
    while at != NONE and taken < wanted:
        counts[TOUCHED] += 1
        if tuples.keys[at] == key:
            if seen >= skipped:
                found[taken] = at
                taken += 1
            seen += 1
        at = tuples.lists.prevs[at] if backwards else tuples.lists.nexts[at]
    return taken


@numba.njit(cache=True)
def negation(way, kind, value, length, delta, parts, first, end, tuples, shown, present, sizes, counts):  # type: ignore[no-untyped-def]
    """Query 3: tuples of link 0 without those of link 1; `present` counts tuples of both links by value.

    With bags, the youngest max(v1 - v2, 0) tuples of a value are results. A tuple that ends while it is no result
    takes the oldest result with it, which section 2.2.2 does not mention.
    """
    found = np.zeros(length + 1, np.int64)
    times, ends = tuples.times, tuples.ends
    for now in range(first, end):
        old = now - length
        if way != NT and now % delta == 0:
            sizes[0] -= expire_parts(way, shown, ends, now - delta, now, length, parts, counts, found[:0], found[:0])
        for link in range(2):
            counts[TOUCHED] += 1
            if old < 0:
                continue
            if way == NT:
                counts[NEGATIVE] += 1
            key = value[link, old]
            ones, others = present[0, key], present[1, key]
            node = leave(tuples, link, old, key, counts)
            present[link, key] -= 1
            if link == 0:
                if others == 0:
                    if way == NT:
                        forget(way, shown, node, times, ends, length, parts, counts)
                        sizes[0] -= 1
                elif kind == BAGS and ones > others:
                    # It was older than every result: skipped are those that stay hidden, one fewer than before.
                    matches(tuples, 0, key, others - 1, 1, False, found, counts)
                    forget(way, shown, found[0], times, ends, length, parts, counts)
                    counts[EARLY] += 1
                    sizes[0] -= 1
            else:
                if kind == BAGS:
                    if ones < others:
                        continue
                    # Those that have ended and are still in the list of link 0 do not exist: link 0 goes first.
                    taken = matches(tuples, 0, key, ones - others, 1, True, found, counts)
                else:
                    taken = matches(tuples, 0, key, 0, ones, False, found, counts) if others == 1 else 0
                for place in range(taken):
                    append(shown, part(way, times[found[place]], 0, ends[found[place]], length, parts), found[place])
                    counts[CAME] += 1
                    sizes[0] += 1
        for link in range(2):
            key = value[link, now]
            node = enter(tuples, link, now, key, length)
            present[link, key] += 1
            ones, others = present[0, key], present[1, key]
            if link == 0:
                if (kind == BAGS and ones > others) or others == 0:
                    append(shown, part(way, times[node], 0, ends[node], length, parts), node)
                    counts[CAME] += 1
                    sizes[0] += 1
                continue
            if kind == BAGS:
                taken = matches(tuples, 0, key, others - 1, 1, False, found, counts) if others <= ones else 0
            else:
                taken = matches(tuples, 0, key, 0, ones, False, found, counts) if others == 1 else 0
            for place in range(taken):
                forget(way, shown, found[place], times, ends, length, parts, counts)
                counts[EARLY] += 1
                sizes[0] -= 1
        counts[KEPT] += sizes[0]
