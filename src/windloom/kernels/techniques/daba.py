"""DABA: TwoStacks with the flip spread over all insertions and evictions, so that no slide is slow.

| time    | O(1) at worst: 2 operations per eviction, 3 per insertion, 1 per answer     |
| space   | one value per cell of the window                                            |
| needs   | associative                                                                 |
| queries | many, each on its own                                                       |
| source  | De-Amortized Bankers Aggregator (source C); here in its Lite form           |

The Lite form keeps one queue of values instead of two, and two running values beside it. Cells `f ≤ l ≤ r ≤ a ≤ b ≤ e`
cut the queue: `[f, l)` and `[a, b)` hold values up to `b`, `[l, r)` up to `r`, `[r, a)` and `[b, e)` the cells
themselves; `middle` is the value of `[r, b)` since the last flip, `back` that of `[b, e)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled, mark
from windloom.kernels.families import combine, identity, like, load, store
from windloom.kernels.lanes import first_look, longest_run, next_stretch, ring_size
from windloom.model.aggregate import Property


class Daba:
    name = "daba"
    needs = (Property.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        _evaluate(cells, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, lanes.runs, queries, out, stamps)


@compiled
def _evaluate(cells, groups, bounds, lo, hi, runs, queries, out, stamps):  # type: ignore[no-untyped-def]
    queue = like(cells, ring_size(longest_run(groups, bounds, lo, hi, queries)))
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            _walk(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, queue, out, stamps)


@compiled
def _walk(cells, first_row, last_row, lo, hi, runs, queue, out, stamps):  # type: ignore[no-untyped-def]
    mask = len(queue[0]) - 1
    f = l = r = a = b = e = np.int64(0)  # noqa: E741 (the paper's letters)
    middle = identity(cells)
    back = identity(cells)
    row = first_row
    look = first_look(runs, row)
    while row < last_row:
        stop, steady, look = next_stretch(lo, hi, runs, row, last_row, look)
        while row < stop:
            first, last = np.int64(lo[row]), np.int64(hi[row])
            if first >= e:
                f = l = r = a = b = e = first  # noqa: E741
                back = identity(cells)
            while f < first or e < last:
                if f < first:
                    f += 1
                else:
                    item = load(cells, e)
                    store(queue, e & mask, item)
                    e += 1
                    back = combine(back, item)
                # The paper's fixup, after every eviction and insertion. It is inlined: a call would cost more than its
                # work.
                if f == b:
                    # At most one cell is left, and it is its own value.
                    l = r = a = b = e  # noqa: E741
                    back = identity(cells)
                    continue
                if l == b:
                    # Flip: the back becomes part of the front; its values are computed later, one per call.
                    l = f  # noqa: E741
                    r = b
                    a = b = e
                    middle = back
                    back = identity(cells)
                if l == r:
                    r += 1
                    a += 1
                else:
                    store(queue, l & mask, combine(load(queue, l & mask), middle))
                    a -= 1
                    if a + 1 < b:
                        store(queue, a & mask, combine(load(queue, a & mask), load(queue, (a + 1) & mask)))
                l += 1  # noqa: E741
            if f == b:
                store(out, row, back)
            elif b == e:
                store(out, row, load(queue, f & mask))
            else:
                store(out, row, combine(load(queue, f & mask), back))
            mark(stamps, row)
            row += 1
            if not steady or b == e or b - f < 2:
                continue
            # While windows move on cell by cell, long runs of slides do the same: all of them repair, or all only
            # shift.
            if l < r and a < b:
                count = min(stop - row, (r - l) // 2)
                back = _repair(cells, queue, mask, f, l, a, e, middle, back, row, count, out, stamps)
                a -= 2 * count
            elif l == r:
                count = min(stop - row, (b - l) // 2, b - 1 - f)
                back = _shift(cells, queue, mask, f, e, back, row, count, out, stamps)
                r += 2 * count
                a += 2 * count
            else:
                continue
            f += count
            l += 2 * count  # noqa: E741
            e += count
            row += count


@compiled
def _repair(cells, queue, mask, f, l, a, e, middle, back, row, count, out, stamps):  # type: ignore[no-untyped-def]  # noqa: E741
    """Slide in which eviction and insertion each complete one value of `[l, r)` and one before `a`."""
    near = load(queue, a & mask)
    for i in range(count):
        item = load(cells, e + i)
        store(queue, (e + i) & mask, item)
        back = combine(back, item)
        for place in range(l + 2 * i, l + 2 * i + 2):
            store(queue, place & mask, combine(load(queue, place & mask), middle))
        for place in range(a - 2 * i - 1, a - 2 * i - 3, -1):
            near = combine(load(queue, place & mask), near)
            store(queue, place & mask, near)
        store(out, row + i, combine(load(queue, (f + i + 1) & mask), back))
        mark(stamps, row + i)
    return back


@compiled
def _shift(cells, queue, mask, f, e, back, row, count, out, stamps):  # type: ignore[no-untyped-def]
    """Slide that find every value complete."""
    for i in range(count):
        item = load(cells, e + i)
        store(queue, (e + i) & mask, item)
        back = combine(back, item)
        store(out, row + i, combine(load(queue, (f + i + 1) & mask), back))
        mark(stamps, row + i)
    return back
