"""Linked lists in arrays, compiled: what source E keeps windows, states and results in, with every step counted.

Several lists share their nodes: `heads` and `tails` have a place per list, `nexts` and `prevs` one per node.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NONE = -1
#: What is counted: nodes that are looked at, negative tuples, results that came, results that go before their time,
#: and nodes that are kept, summed over units of time.
TOUCHED, NEGATIVE, CAME, EARLY, KEPT = range(5)
COUNTED = 5


class Lists(NamedTuple):
    heads: Ints
    tails: Ints
    nexts: Ints
    prevs: Ints


def empty_lists(lists: int, nodes: int) -> Lists:
    return Lists(*(np.full(size, NONE, np.int64) for size in (lists, lists, nodes, nodes)))


@numba.njit(cache=True)
def append(lists, number, node):  # type: ignore[no-untyped-def]
    last = lists.tails[number]
    lists.nexts[node], lists.prevs[node] = NONE, last
    if last == NONE:
        lists.heads[number] = node
    else:
        lists.nexts[last] = node
    lists.tails[number] = node


@numba.njit(cache=True)
def unlink(lists, number, node):  # type: ignore[no-untyped-def]
    before, after = lists.prevs[node], lists.nexts[node]
    if before == NONE:
        lists.heads[number] = after
    else:
        lists.nexts[before] = after
    if after == NONE:
        lists.tails[number] = before
    else:
        lists.prevs[after] = before


@numba.njit(cache=True)
def insert_by_end(lists, number, node, ends, counts):  # type: ignore[no-untyped-def]
    """Into a list that is sorted by end, from its tail."""
    after, before = NONE, lists.tails[number]
    while before != NONE and ends[before] > ends[node]:
        counts[TOUCHED] += 1
        after, before = before, lists.prevs[before]
    lists.prevs[node], lists.nexts[node] = before, after
    if before == NONE:
        lists.heads[number] = node
    else:
        lists.nexts[before] = node
    if after == NONE:
        lists.tails[number] = node
    else:
        lists.prevs[after] = node


@numba.njit(cache=True)
def walk_to(lists, number, node, counts):  # type: ignore[no-untyped-def]
    """Looks for a node from the head on, as one does who knows a tuple and not where it is."""
    at = lists.heads[number]
    while at != NONE:
        counts[TOUCHED] += 1
        if at == node:
            return True
        at = lists.nexts[at]
    return False


@numba.njit(cache=True)
def drop_fronts(lists, first, last, ends, now, counts):  # type: ignore[no-untyped-def]
    """Takes what has ended off the heads of lists whose nodes end in the order in which they stand; how many."""
    dropped = 0
    for number in range(first, last):
        at = lists.heads[number]
        while at != NONE:
            counts[TOUCHED] += 1
            if ends[at] > now:
                break
            after = lists.nexts[at]
            unlink(lists, number, at)
            dropped += 1
            at = after
    return dropped
