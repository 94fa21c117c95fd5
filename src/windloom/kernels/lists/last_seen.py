"""Last seen: the number of distinct values of each window, for all queries in one pass over the cells.

| time    | O(log cells) per entry and per window, whatever the number of queries           |
| space   | a position for each value, a counter for each cell of one group                 |
| needs   | lists                                                                           |
| queries | many: rows of all lanes of a group are answered in order of their right edges   |
| source  | ours; the running form of source E §2.3.4 visits every entry once per query     |

Cells enter from left to right, and for each value the last cell that held it is kept. A window `[lo, hi)` that ends
where the pass is now holds a value exactly if the value was last seen at `lo` or later. A Fenwick tree counts, for each
cell, the values that were last seen there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.cells.lanes import longest_group, most_rows, order_rows
from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.lists.cells import Distinct, Lists


def count_last_seen(cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Distinct) -> None:
    arguments = (cells.bounds, cells.codes, group_bounds, lanes.bounds, lanes.lo, lanes.hi, queries)
    _evaluate(*arguments, out.codes, out.found)


def recount_distinct(cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Distinct) -> None:
    """The slow reference: visits every entry of every window, every time."""
    arguments = (cells.bounds, cells.codes, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, queries)
    _recount(*arguments, out.codes, out.found)


@compiled
def _recount(bounds, codes, groups, lane_bounds, lo, hi, queries, universe, found):  # type: ignore[no-untyped-def]
    seen_by = np.full(universe, -1, np.int64)
    for query in queries:
        for row in range(lane_bounds[query * groups], lane_bounds[(query + 1) * groups]):
            found[row] = 0
            for entry in range(bounds[lo[row]], bounds[hi[row]]):
                found[row] += seen_by[codes[entry]] != row
                seen_by[codes[entry]] = row


@compiled
def _evaluate(bounds, codes, group_bounds, lane_bounds, lo, hi, queries, universe, found):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    last = np.full(universe, -1, np.int64)
    tree = np.empty(longest_group(group_bounds) + 1, np.int64)
    rows = most_rows(groups, lane_bounds, queries)
    order, spare = np.empty(rows, np.int64), np.empty(rows, np.int64)
    for group in range(groups):
        count = order_rows(group, groups, group_bounds, lane_bounds, lo, hi, queries, order, spare)
        if count == 0:
            continue
        begin = group_bounds[group]
        size = group_bounds[group + 1] - begin
        tree[: size + 1] = 0
        seen = np.int64(0)
        # Cells before the first window are never needed.
        right = begin + size
        for i in range(count):
            right = min(right, np.int64(lo[order[i]]))
        entered = right
        for i in range(count):
            row = order[i]
            while right < hi[row]:
                for entry in range(bounds[right], bounds[right + 1]):
                    before = last[codes[entry]]
                    if before < 0:
                        seen += 1
                    else:
                        _add(tree, size, before - begin + 1, -1)
                    last[codes[entry]] = right
                _add(tree, size, right - begin + 1, bounds[right + 1] - bounds[right])
                right += 1
            found[row] = seen - _sum(tree, lo[row] - begin)
        for entry in range(bounds[entered], bounds[right]):
            last[codes[entry]] = -1


@compiled
def _add(tree, size, place, change):  # type: ignore[no-untyped-def]
    while place <= size:
        tree[place] += change
        place += place & -place


@compiled
def _sum(tree, place):  # type: ignore[no-untyped-def]
    """The sum of the first `place` counters."""
    total = np.int64(0)
    while place > 0:
        total += tree[place]
        place -= place & -place
    return total
