"""FlatFAT: a binary tree in an array over a ring of cells; an arriving cell renews the nodes above it.

| time    | log2(ring) operations per cell once, up to 2·log2(ring) per      |
|         | window                                                           |
| space   | two values per cell of the longest window, rounded up to a power |
|         | of 2                                                             |
| needs   | associative                                                      |
| queries | many, all ranges from the same tree                              |
| source  | Flat Fixed-sized Aggregator (source C)                           |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled, mark
from windloom.kernels.families import combine, identity, like, load, store
from windloom.kernels.lanes import longest_run, most_rows, order_rows, ring_size
from windloom.model.aggregate import Property


class FlatFat:
    name = "flat_fat"
    needs = (Property.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        _evaluate(cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, queries, out, stamps)


@compiled
def _evaluate(cells, group_bounds, bounds, lo, hi, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    size = ring_size(longest_run(groups, bounds, lo, hi, queries))
    tree = like(cells, 2 * size)
    rows = most_rows(groups, bounds, queries)
    order = np.empty(rows, np.int64)
    spare = np.empty(rows if len(queries) > 1 else 0, np.int64)
    for group in range(groups):
        count = order_rows(group, groups, group_bounds, bounds, lo, hi, queries, order, spare)
        if count == 0:
            continue
        for node in range(2 * size):
            store(tree, node, identity(cells))
        right = group_bounds[group]
        for i in range(count):
            row = order[i]
            while right < hi[row]:
                _insert(tree, size, right & (size - 1), load(cells, right))
                right += 1
            store(out, row, _answer(cells, tree, size, lo[row], hi[row]))
            mark(stamps, row)


@compiled
def _insert(tree, size, leaf, item):  # type: ignore[no-untyped-def]
    node = size + leaf
    store(tree, node, item)
    node >>= 1
    while node >= 1:
        store(tree, node, combine(load(tree, 2 * node), load(tree, 2 * node + 1)))
        node >>= 1


@compiled
def _answer(cells, tree, size, first, last):  # type: ignore[no-untyped-def]
    if first == last:
        return identity(cells)
    left = first & (size - 1)
    right = ((last - 1) & (size - 1)) + 1
    if left < right:
        return _cover(cells, tree, size, left, right)
    # The window crosses the end of the ring: its older part is at the end, its newer part at the beginning.
    return combine(_cover(cells, tree, size, left, size), _cover(cells, tree, size, 0, right))


@compiled
def _cover(cells, tree, size, left, right):  # type: ignore[no-untyped-def]
    """Return the fewest nodes that cover leaves `left : right`, combined from left to right."""
    before = identity(cells)
    after = identity(cells)
    some_before = False
    some_after = False
    left += size
    right += size
    while left < right:
        if left & 1:
            before = combine(before, load(tree, left)) if some_before else load(tree, left)
            some_before = True
            left += 1
        if right & 1:
            right -= 1
            after = combine(load(tree, right), after) if some_after else load(tree, right)
            some_after = True
        left >>= 1
        right >>= 1
    if not some_before:
        return after
    return combine(before, after) if some_after else before
