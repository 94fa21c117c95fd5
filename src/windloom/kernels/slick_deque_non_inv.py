"""SlickDeque (Non-Inv): the cells that can still win, in a deque; all ranges that end here in one traversal.

A new cell drives out of the tail every cell it beats for good; cells no later window reaches leave at the head. The
answer of a window is the first cell of the deque inside it, so the windows of all queries that end at one edge, from
the longest to the shortest, are answered in one passage from head to tail. The passage gallops: a deque grown long by
falling input is not walked cell by cell.
"""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiled import compiled
from windloom.kernels.families import combine, identity, like, load, same, store
from windloom.kernels.lanes import most_rows, order_rows
from windloom.kernels.operations import mark


@compiled
def evaluate(cells, group_bounds, bounds, lo, hi, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    longest = np.int64(1)
    for group in range(groups):
        longest = max(longest, group_bounds[group + 1] - group_bounds[group])
    positions = np.empty(longest, np.int32)
    values = like(cells, longest)
    rows = most_rows(groups, bounds, queries)
    order = np.empty(rows, np.int64)
    spare = np.empty(rows if len(queries) > 1 else 0, np.int64)
    for group in range(groups):
        count = order_rows(group, groups, group_bounds, bounds, lo, hi, queries, order, spare)
        _mark_expiry(lo, hi, order, count, spare)
        _walk(cells, group_bounds[group], lo, hi, order, count, spare, positions, values, out, stamps)


@compiled
def _mark_expiry(lo, hi, order, count, expiry):  # type: ignore[no-untyped-def]
    """`expiry[i]`: no row from i on reaches further left. A single lane needs none: its left edges only rise."""
    if len(expiry) == 0 or count == 0:
        return
    least = np.int64(lo[order[count - 1]])
    for i in range(count - 1, -1, -1):
        least = min(least, np.int64(lo[order[i]]))
        expiry[i] = least


@compiled
def _walk(cells, begin, lo, hi, order, count, expiry, positions, values, out, stamps):  # type: ignore[no-untyped-def]
    # Cells enter one by one and only the tail shrinks, so the deque is a plain array of at most the group's length.
    head = np.int64(0)
    tail = np.int64(0)
    right = np.int64(begin)
    seen = np.int64(-1)
    place = np.int64(0)
    for i in range(count):
        row = order[i]
        first, last = np.int64(lo[row]), np.int64(hi[row])
        expired = first if len(expiry) == 0 else expiry[i]
        if expired >= right:
            # All cells so far have expired, and so have those up to here that have not entered.
            right = expired
            head = tail = np.int64(0)
        while head < tail and positions[head] < expired:
            head += 1
        if head == tail:
            head = tail = np.int64(0)
        while right < last:
            item = load(cells, right)
            while tail > head and same(combine(load(values, tail - 1), item), item):
                tail -= 1
            positions[tail] = right
            store(values, tail, item)
            tail += 1
            right += 1
        if last != seen:
            seen = last
            place = head
        if first == last:
            store(out, row, identity(cells))
        else:
            place = _first_from(positions, max(place, head), tail, first)
            store(out, row, load(values, place))
        mark(stamps, row)


@compiled
def _first_from(positions, place, tail, first):  # type: ignore[no-untyped-def]
    """The first place of the deque from `place` on whose cell is at or past `first`."""
    if positions[place] >= first:
        return place
    step = 1
    low = place
    high = place + 1
    while high < tail and positions[high] < first:
        low = high
        step *= 2
        high = low + step
    high = min(high, tail)
    low += 1
    while low < high:
        middle = (low + high) // 2
        if positions[middle] < first:
            low = middle + 1
        else:
            high = middle
    return low
