"""Block decomposition (van Herk–Gil–Werman): few queries in blocks of their span, many at all lengths at once.

| time    | few queries: 2 operations per cell, 1 per window, each; many: O(log span) per cell once, 1 per window |
| space   | few queries: one value per cell of a window; many: log span values per cell, of one group at a time |
| needs   | associative                                                             |
| queries | many, all ranges from the same blocks                                   |
| source  | van Herk; Gil and Werman; here for windows of varying cell counts       |

Cut the cells into blocks of 2, 4, 8, …; in each block keep the running value from its middle leftwards and
rightwards. Two different positions are on the two sides of the middle of exactly one block, that of their highest
differing bit, so a window is one left value combined with one right value. Nothing is ever subtracted, so huge values
leave no trace in windows that do not hold them.

While queries are few, each is cheaper in blocks of its own, as in the originals: borders are one window apart, so that
a window lies across at most one, with running values from each border leftwards and rightwards. Block after block, with
one rightward value kept at a time, that is the loop of TwoStacks, whose flips fall on the borders. So its code is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled
from windloom.kernels.families import combine, identity, like, load, store
from windloom.kernels.lanes import longest_group
from windloom.kernels.techniques.two_stacks import walk_lane
from windloom.model.aggregate import Property


class BlockDecomposition:
    name = "block_decomposition"
    needs = (Property.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None:
        _evaluate(cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, lanes.runs, queries, out)


@compiled
def _build(cells, begin, length, span, blocks):  # type: ignore[no-untyped-def]
    """Fill level `l` at `blocks[l·length + i]`; values farther than `span` from a middle are never needed."""
    level = 0
    half = 1
    while half < length:
        base = level * length
        middle = half
        while middle < length:
            total = load(cells, begin + middle)
            store(blocks, base + middle, total)
            for i in range(middle + 1, min(middle + half, length, middle + span)):
                total = combine(total, load(cells, begin + i))
                store(blocks, base + i, total)
            total = load(cells, begin + middle - 1)
            store(blocks, base + middle - 1, total)
            for i in range(middle - 2, max(middle - half, middle - 1 - span) - 1, -1):
                total = combine(load(cells, begin + i), total)
                store(blocks, base + i, total)
            middle += 2 * half
        level += 1
        half *= 2


@compiled
def _evaluate(cells, group_bounds, bounds, lo, hi, runs, queries, out):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    longest = longest_group(group_bounds)
    levels = 1
    while (longest - 1) >> levels > 0:
        levels += 1
    if 2 * len(queries) <= levels:
        before = like(cells, longest)
        for query in queries:
            for lane in range(query * groups, (query + 1) * groups):
                walk_lane(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, before, out, None)
        return
    blocks = like(cells, levels * longest)
    log = np.zeros(2 << levels, np.uint8)  # of every possible first ^ final
    for i in range(2, len(log)):
        log[i] = log[i >> 1] + 1
    for group in range(groups):
        begin = group_bounds[group]
        length = group_bounds[group + 1] - begin
        span = 0
        for query in queries:
            lane = query * groups + group
            for row in range(bounds[lane], bounds[lane + 1]):
                span = max(span, hi[row] - lo[row])
        if span > 1:
            _build(cells, begin, length, span, blocks)
        for query in queries:
            lane = query * groups + group
            for row in range(bounds[lane], bounds[lane + 1]):
                first = lo[row] - begin
                final = hi[row] - 1 - begin
                if first < final:
                    base = log[first ^ final] * length
                    store(out, row, combine(load(blocks, base + first), load(blocks, base + final)))
                elif first == final:
                    store(out, row, load(cells, begin + first))
                else:
                    store(out, row, identity(cells))
