"""B-Int: dyadic base intervals of every length; a window is the fewest of them that cover it, from left to right.

| time    | one operation per cell once, up to 2·log2(window) per     |
|         | window                                                    |
| space   | two values per cell, of one group at a time               |
| needs   | associative                                               |
| queries | many, all ranges from the same intervals                  |
| source  | Base Intervals (Arasu and Widom; source C)                |

An interval is computed once, when its last cell is there. In a round all cells are there at once, so the levels are
filled one after another; the ring of the paper, which only saves memory between arrivals, is not needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled, mark
from windloom.kernels.families import combine, identity, like, load, store
from windloom.kernels.lanes import longest_group
from windloom.model.aggregate import Property


class BInt:
    name = "b_int"
    needs = (Property.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        _evaluate(cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, queries, out, stamps)


@compiled
def _evaluate(cells, group_bounds, bounds, lo, hi, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    intervals = like(cells, 2 * max(np.int64(1), longest_group(group_bounds)))
    bases = np.zeros(64, np.int64)  # where each level begins
    for group in range(groups):
        begin = group_bounds[group]
        length = group_bounds[group + 1] - begin
        span = np.int64(0)
        for query in queries:
            lane = query * groups + group
            for row in range(bounds[lane], bounds[lane + 1]):
                span = max(span, np.int64(hi[row]) - lo[row])
        if span == 0:
            span = np.int64(1)
        _build(cells, begin, length, span, intervals, bases)
        for query in queries:
            lane = query * groups + group
            for row in range(bounds[lane], bounds[lane + 1]):
                store(out, row, _answer(cells, intervals, bases, lo[row] - begin, hi[row] - begin))
                mark(stamps, row)


@compiled
def _build(cells, begin, length, span, intervals, bases):  # type: ignore[no-untyped-def]
    """Interval i of level l, at `intervals[bases[l] + i]`, covers cells `i·2^l : (i + 1)·2^l`; none exceeds `span`."""
    for i in range(length):
        store(intervals, i, load(cells, begin + i))
    level = 0
    while (2 << level) <= span:
        below = bases[level]
        bases[level + 1] = below + (length >> level)
        for i in range(length >> (level + 1)):
            store(
                intervals,
                bases[level + 1] + i,
                combine(load(intervals, below + 2 * i), load(intervals, below + 2 * i + 1)),
            )
        level += 1


@compiled
def _answer(cells, intervals, bases, first, last):  # type: ignore[no-untyped-def]
    if first == last:
        return identity(cells)
    level = 0
    while (first & ((2 << level) - 1)) == 0 and first + (2 << level) <= last:
        level += 1
    total = load(intervals, bases[level] + (first >> level))
    first += 1 << level
    while first < last:
        while (first & ((2 << level) - 1)) == 0 and first + (2 << level) <= last:
            level += 1
        while first + (1 << level) > last:
            level -= 1
        total = combine(total, load(intervals, bases[level] + (first >> level)))
        first += 1 << level
    return total
