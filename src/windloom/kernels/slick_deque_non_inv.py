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
from windloom.kernels.lanes import (
    SHORT_STRETCH,
    longest_group,
    longest_run,
    most_rows,
    next_stretch,
    order_rows,
    ring_size,
)
from windloom.kernels.operations import mark

#: Cells that enter together where windows move on cell by cell.
BATCH = 16


@compiled
def evaluate(cells, group_bounds, bounds, lo, hi, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    if len(queries) == 1:
        _evaluate_one(cells, groups, bounds, lo, hi, queries, out, stamps)
        return
    longest = longest_group(group_bounds)
    positions = np.empty(longest, np.int32)
    values = like(cells, longest)
    rows = most_rows(groups, bounds, queries)
    order = np.empty(rows, np.int64)
    spare = np.empty(rows, np.int64)
    for group in range(groups):
        count = order_rows(group, groups, group_bounds, bounds, lo, hi, queries, order, spare)
        _mark_expiry(lo, order, count, spare)
        _walk(cells, group_bounds[group], lo, hi, order, count, spare, positions, values, out, stamps)


@compiled
def _evaluate_one(cells, groups, bounds, lo, hi, queries, out, stamps):  # type: ignore[no-untyped-def]
    """A single query: the answer is always at the head, and the deque fits a ring as long as the longest window."""
    size = ring_size(longest_run(groups, bounds, lo, hi, queries) + 1)
    positions = np.empty(size, np.int64)
    values = like(cells, size)
    ahead = like(cells, BATCH)
    for lane in range(queries[0] * groups, (queries[0] + 1) * groups):
        _walk_one(cells, bounds[lane], bounds[lane + 1], lo, hi, positions, values, ahead, out, stamps)


@compiled
def _walk_one(cells, first_row, last_row, lo, hi, positions, values, ahead, out, stamps):  # type: ignore[no-untyped-def]
    mask = len(positions) - 1
    head = tail = right = np.int64(0)
    row = first_row
    wanted = np.int64(SHORT_STRETCH)
    while row < last_row:
        stop, steady, wanted = next_stretch(lo, hi, row, last_row, wanted)
        pause = row  # no batch before this row
        while row < stop:
            first, last = np.int64(lo[row]), np.int64(hi[row])
            if steady and row >= pause and right == last - 1 and last - first > BATCH:
                done, head, tail = _slide(
                    cells, first, right, row, stop, head, tail, positions, values, ahead, out, stamps
                )
                right += done
                row += done
                pause = row + BATCH
                continue
            if first >= right:
                right = first
                head = tail
            while head < tail and positions[head & mask] < first:
                head += 1
            while right < last:
                item = load(cells, right)
                while tail > head and same(combine(load(values, (tail - 1) & mask), item), item):
                    tail -= 1
                positions[tail & mask] = right
                store(values, tail & mask, item)
                tail += 1
                right += 1
            if head < tail:
                store(out, row, load(values, head & mask))
            else:
                store(out, row, identity(cells))
            mark(stamps, row)
            row += 1


@compiled
def _slide(cells, first, right, row, last_row, head, tail, positions, values, ahead, out, stamps):  # type: ignore[no-untyped-def]
    """Answer rows whose windows each lie one cell further, a batch at a time; returns how many, and the deque's ends.

    How many cells a new one drives out is a coin's throw, and a wrong guess of the processor costs more than all else.
    So the batch enters as one: the best of it drives out, once, and of its own cells only those enter that nothing
    later in the batch beats. Should the batch hold the best of a window, it stops: prefixes of it would be answers.
    """
    mask = np.uint64(len(positions) - 1)  # unsigned indices: no test for counting from the end
    done = np.int64(0)
    while row + done + BATCH <= last_row:
        begin, end = first + done, right + done
        best = load(cells, end + BATCH - 1)
        store(ahead, BATCH - 1, best)
        for i in range(BATCH - 2, -1, -1):
            best = combine(load(cells, end + i), best)
            store(ahead, i, best)
        place = tail
        while place > head and same(combine(load(values, np.uint64(place - 1) & mask), best), best):
            place -= 1
        if place == head or positions[np.uint64(place - 1) & mask] < begin + BATCH - 1:
            break
        # The head expires rarely: asked once a batch.
        if positions[np.uint64(head) & mask] >= begin + BATCH - 1:
            answer = load(values, np.uint64(head) & mask)
            for i in range(BATCH):
                store(out, row + done + i, answer)
                mark(stamps, row + done + i)
        else:
            for i in range(BATCH):
                while positions[np.uint64(head) & mask] < begin + i:
                    head += 1
                store(out, row + done + i, load(values, np.uint64(head) & mask))
                mark(stamps, row + done + i)
        stay = np.int64(0)
        for i in range(BATCH):
            positions[np.uint64(place + stay) & mask] = end + i
            store(values, np.uint64(place + stay) & mask, load(cells, end + i))
            if i < BATCH - 1:
                stay += 1 - np.int64(same(load(ahead, i), load(ahead, i + 1)))  # unless beaten, without a branch
        tail = place + stay + 1
        done += BATCH
    return done, head, tail


@compiled
def _mark_expiry(lo, order, count, expiry):  # type: ignore[no-untyped-def]
    """`expiry[i]`: no row from i on reaches further left."""
    least = np.int64(2**62)
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
        expired = expiry[i]
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
            place = max(place, head)
            if positions[place] < first:
                place = _gallop(positions, place, tail, first)
            store(out, row, load(values, place))
        mark(stamps, row)


@compiled
def _gallop(positions, place, tail, first):  # type: ignore[no-untyped-def]
    """The first place of the deque after `place`, whose cell is before `first`, with a cell at or past it."""
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
