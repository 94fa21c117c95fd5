"""SlickDeque: running values if the operation can be inverted, a monotone deque if it selects.

| time    | (Inv) 2 per cell and distinct range; (Non-Inv) below 2 per cell, amortised, then one or two steps per |
|         | answer                                                                                            |
| space   | (Inv) one value per distinct range; (Non-Inv) the deque                                           |
| needs   | associative, and invertible or selective                                                          |
| queries | many                                                                                              |
| source  | SlickDeque (source C)                                                                             |

Both have one name, as in the paper; the operation decides which of the two runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled, mark
from windloom.kernels.families import can_remove, combine, identity, like, load, same, store
from windloom.kernels.lanes import first_look, longest_group, longest_run, next_stretch, ring_size
from windloom.kernels.techniques.subtract_on_evict import walk_lane
from windloom.model.aggregate import Property

# SlickDeque (Inv): a running value for each distinct range, shared by the queries that have it.
#
# Queries of a tree whose windows cover the same cells (they differ in other respects) are answered from one running
# value; all others have one each. A distinct range costs exactly two operations per cell: combine the arriving cell,
# remove the expiring cell.


@compiled
def evaluate_invertible(cells, group_bounds, bounds, lo, hi, runs, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    for i in range(len(queries)):
        twin = np.int64(-1)
        for j in range(i):
            if _equal_windows(groups, bounds, lo, hi, queries[i], queries[j]):
                twin = queries[j]
                break
        if twin >= 0:
            shift = bounds[twin * groups] - bounds[queries[i] * groups]
            for row in range(bounds[queries[i] * groups], bounds[(queries[i] + 1) * groups]):
                store(out, row, load(out, row + shift))
            continue
        for lane in range(queries[i] * groups, (queries[i] + 1) * groups):
            walk_lane(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, out, stamps)


@compiled
def _equal_windows(groups, bounds, lo, hi, query, twin):  # type: ignore[no-untyped-def]
    """Return whether two queries cover the same cells, window for window. A row in the middle almost always decides."""
    first, last = bounds[query * groups], bounds[(query + 1) * groups]
    shift = bounds[twin * groups] - first
    if bounds[(twin + 1) * groups] - last != shift:
        return False
    middle = (first + last) // 2
    if middle < last and (lo[middle] != lo[middle + shift] or hi[middle] != hi[middle + shift]):
        return False
    row = first
    while row < last and lo[row] == lo[row + shift] and hi[row] == hi[row + shift]:
        row += 1
    return row == last


# SlickDeque (Non-Inv): the cells that can still win, in a deque; all ranges that end here in one traversal.
#
# A new cell drives every cell that it beats out of the tail; with one query, cells that no later window reaches
# leave at the head. The answer of a window is the first cell of the deque inside it, so the windows of all queries that
# end at one edge, from the longest to the shortest, are answered in one pass from head to tail. The pass gallops:
# a deque grown long by falling input is not walked cell by cell.

#: Cells that enter together if windows move on cell by cell.
BATCH = 16


@compiled
def evaluate_selective(cells, group_bounds, bounds, lo, hi, runs, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    if len(queries) == 1:
        # The answer is always at the head, and the deque fits into a ring as long as the longest window.
        size = ring_size(longest_run(groups, bounds, lo, hi, queries) + 1)
        ring, ring_values, ahead = np.empty(size, np.int64), like(cells, size), like(cells, BATCH)
        for lane in range(queries[0] * groups, (queries[0] + 1) * groups):
            _walk_one(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, ring, ring_values, ahead, out, stamps)
        return
    longest = longest_group(group_bounds)
    positions = np.empty(longest, np.int32)
    values = like(cells, longest)
    # For each right edge, in a chain, the queries whose next window ends there.
    head_of, tail_of = np.empty(longest + 1, np.int32), np.empty(longest + 1, np.int32)
    after = np.empty(len(queries), np.int32)
    row_of = np.empty(len(queries), np.int64)
    for group in range(groups):
        _start_chains(groups, group, group_bounds, bounds, lo, hi, queries, head_of, tail_of, after, row_of)
        _walk(
            cells, groups, group, group_bounds, bounds, lo, hi, queries,
            head_of, tail_of, after, row_of, positions, values, out, stamps,
        )  # fmt: skip


@compiled
def _start_chains(groups, group, group_bounds, bounds, lo, hi, queries, head_of, tail_of, after, row_of):  # type: ignore[no-untyped-def]
    """Put every query into the chain of its first window's edge, the longest windows first."""
    begin = group_bounds[group]
    head_of[: group_bounds[group + 1] - begin + 1] = -1
    lengths = np.zeros(len(queries), np.int64)
    for i in range(len(queries)):
        lane = queries[i] * groups + group
        if bounds[lane] < bounds[lane + 1]:
            middle = (bounds[lane] + bounds[lane + 1]) // 2
            lengths[i] = lo[middle] - hi[middle]
    for i in np.argsort(lengths):
        lane = queries[i] * groups + group
        row_of[i] = bounds[lane]
        if bounds[lane] < bounds[lane + 1]:
            _append(hi[bounds[lane]] - begin, i, head_of, tail_of, after)


@compiled
def _append(edge, query, head_of, tail_of, after):  # type: ignore[no-untyped-def]
    after[query] = -1
    if head_of[edge] < 0:
        head_of[edge] = query
    else:
        after[tail_of[edge]] = query
    tail_of[edge] = query


@compiled
def _walk_one(cells, first_row, last_row, lo, hi, runs, positions, values, ahead, out, stamps):  # type: ignore[no-untyped-def]
    mask = len(positions) - 1
    head = tail = right = np.int64(0)
    row = first_row
    look = first_look(runs, row)
    pause, rest = row, np.int64(BATCH)  # no batch before this row; the length of the next pause
    while row < last_row:
        stop, steady, look = next_stretch(lo, hi, runs, row, last_row, look)
        while row < stop:
            first, last = np.int64(lo[row]), np.int64(hi[row])
            if steady and row >= pause and right == last - 1 and last - first > BATCH:
                done, head, tail = _slide(
                    cells, first, right, row, stop, head, tail, positions, values, ahead, out, stamps
                )
                right += done
                row += done
                # Rising input brings a new best in every batch: try batches less and less often.
                rest = np.int64(BATCH) if done else min(2 * rest, np.int64(1024))
                pause = row + rest
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
    """Answer rows whose windows each lie one cell further, in batches; return their number, and the deque's ends.

    The number of cells that a new one drives out is random, and a mispredicted branch costs more than everything else.
    So the batch enters as one: its best cell drives out others, once, and of its cells only those enter that no later
    one in the batch beats. If the batch holds the best cell of a window, the function stops, because prefixes of the
    batch would be answers.
    """
    mask = np.uint64(len(positions) - 1)  # unsigned indices need no check for an index from the end
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
        # The head expires rarely, so this is tested once per batch.
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
def _walk(  # type: ignore[no-untyped-def]
    cells, groups, group, group_bounds, bounds, lo, hi, queries,
    head_of, tail_of, after, row_of, positions, values, out, stamps,
):  # fmt: skip
    """Answer edge by edge: at each edge the queries of its chain, which then join the chain of their next window.

    Only the tail of the deque changes, so it is a plain array, and a place in it stays valid from edge to edge.
    """
    begin = np.int64(group_bounds[group])
    tail = np.int64(0)
    start = np.int64(0)  # where the first window of the last edge was answered
    for edge in range(group_bounds[group + 1] - begin + 1):
        if edge > 0:
            item = load(cells, begin + edge - 1)
            while tail > 0 and same(combine(load(values, tail - 1), item), item):
                tail -= 1
            positions[tail] = begin + edge - 1
            store(values, tail, item)
            tail += 1
        query = head_of[edge]
        place = start
        while query >= 0:
            following = after[query]
            row, last_row = row_of[query], bounds[queries[query] * groups + group + 1]
            while row < last_row and hi[row] == begin + edge:
                if lo[row] == begin + edge:
                    store(out, row, identity(cells))
                else:
                    place = _place(positions, min(place, tail - 1), tail, lo[row])
                    store(out, row, load(values, place))
                mark(stamps, row)
                row += 1
            if query == head_of[edge]:
                start = place
            row_of[query] = row
            if row < last_row:
                _append(hi[row] - begin, query, head_of, tail_of, after)
            query = following


@compiled
def _place(positions, near, tail, first):  # type: ignore[no-untyped-def]
    """Return the first place of the deque with a cell at or after `first`; usually it is at `near` or after it."""
    if near > 0 and positions[near - 1] >= first:
        near = np.int64(0)
    if positions[near] >= first:
        return near
    step = 1
    low = near
    high = near + 1
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


class SlickDeque:
    name = "slick_deque"
    needs = (Property.ASSOCIATIVE | Property.INVERTIBLE, Property.ASSOCIATIVE | Property.SELECTIVE)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        arguments = (cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, lanes.runs, queries, out, stamps)
        if can_remove(cells):
            evaluate_invertible(*arguments)
        else:
            evaluate_selective(*arguments)
