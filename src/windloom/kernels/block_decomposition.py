"""Block decomposition: van Herk–Gil–Werman, for few queries in blocks of their span, for many at all lengths at once.

| time    | a query: 2 operations a cell, one a window; many: O(log span) a cell once, one a window |
| space   | a query: one value a cell of a window; many: log span values a cell, of one group at a time |
| needs   | associative                                                             |
| queries | many, all ranges from the same blocks                                   |
| source  | van Herk; Gil and Werman; here for windows of varying cell counts       |

Cut the cells into blocks of 2, 4, 8, …; in each block keep the running value from its middle leftwards and
rightwards. Two different positions are on the two sides of the middle of exactly one block, that of their highest
differing bit, so a window is one left value combined with one right value. Nothing is ever subtracted: huge values
leave no trace in windows they are not part of.

While queries are few, each is cheaper in blocks of its own, as in the originals: borders one window apart, so that a
window lies across at most one, with running values from each border leftwards and rightwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiled import compiled
from windloom.kernels.families import combine, identity, like, load, store
from windloom.kernels.lanes import SHORT_STRETCH, longest_group, next_stretch
from windloom.kernels.two_stacks import flip, slide
from windloom.model.aggregate import Needs


class BlockDecomposition:
    name = "block_decomposition"
    needs = (Needs.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None:
        _evaluate(cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, queries, out)


@compiled
def _highest_bit(number):  # type: ignore[no-untyped-def]
    level = 0
    while number > 1:
        number >>= 1
        level += 1
    return level


@compiled
def _build(cells, begin, length, span, blocks):  # type: ignore[no-untyped-def]
    """Fill level `l` at `blocks[l·length + i]`; values farther than `span` from a middle are never asked for."""
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
def _evaluate(cells, group_bounds, bounds, lo, hi, queries, out):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    longest = longest_group(group_bounds)
    levels = _highest_bit(max(longest - 1, 1)) + 1
    if 2 * len(queries) <= levels:
        _evaluate_few(cells, groups, longest, bounds, lo, hi, queries, out)
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


@compiled
def _evaluate_few(cells, groups, longest, bounds, lo, hi, queries, out):  # type: ignore[no-untyped-def]
    """Query by query, block by block; only the values before one border are held."""
    before = like(cells, longest)
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            row, last_row = bounds[lane], bounds[lane + 1]
            while row < last_row:
                begin, border = np.int64(lo[row]), np.int64(hi[row])
                if begin == border:
                    store(out, row, identity(cells))
                    row += 1
                    continue
                # This window and all that begin before its end have the border between them or end at it.
                stop = row + np.searchsorted(lo[row:last_row], border)
                flip(cells, begin, border, before)
                _answer_block(cells, row, stop, lo, hi, begin, border, before, out)
                row = stop


@compiled
def _answer_block(cells, row, last_row, lo, hi, begin, border, before, out):  # type: ignore[no-untyped-def]
    """Answer the windows around a border; the value from the border rightwards runs along with them."""
    right = border
    back = identity(cells)
    wanted = np.int64(SHORT_STRETCH)
    while row < last_row:
        stop, steady, wanted = next_stretch(lo, hi, row, last_row, wanted)
        while row < stop:
            left = lo[row] - begin
            while right < hi[row]:
                back = load(cells, right) if right == border else combine(back, load(cells, right))
                right += 1
            store(out, row, load(before, left) if right == border else combine(load(before, left), back))
            row += 1
            if steady and right > border:
                back = slide(cells, right, back, before, left + 1, row, stop - row, out, None)
                right += stop - row
                row = stop
