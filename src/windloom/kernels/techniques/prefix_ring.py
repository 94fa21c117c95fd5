"""Prefix ring: running totals over all cells; a window is the difference of two of them.

| time    | O(1) per cell once, O(1) per window for any number of queries |
| space   | one total per cell                                          |
| needs   | associative, invertible; or nearly invertible (floats)      |
| queries | many, all ranges from the same totals                       |
| source  | ours, for rounds in which many slices close at once         |

Totals run across group borders: a difference inside one group cancels whatever came before. For integers that is
exact even if the total itself wraps around 64 bits, because wrapping subtraction undoes wrapping addition.
Floats have totals with a certificate, see `prefix_ring_float`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.cells.lanes import first_look, next_stretch
from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.families.algebra import AddFloat, combine, empty_like, identity, like, load, remove, store
from windloom.kernels.families.vectors import LINE, WIDTH, end_streams, stream_sixteen
from windloom.kernels.techniques import prefix_ring_float
from windloom.model.aggregate import Needs

#: From this many rows on, answers exceed the processor's last cache and are stored past it, this many at a time.
FAR_ROWS = 1 << 22
NEAR_ROWS = 512


class PrefixRing:
    name = "prefix_ring"
    needs = (Needs.ASSOCIATIVE | Needs.INVERTIBLE, Needs.ASSOCIATIVE | Needs.NEARLY_INVERTIBLE)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None:
        if isinstance(cells, AddFloat):
            prefix_ring_float.evaluate(cells, group_bounds, lanes, queries, out)
            return
        first, last = int(group_bounds[0]), int(group_bounds[-1])
        totals = empty_like(cells, last - first + 1)
        windows = (lanes.bounds, lanes.lo, lanes.hi, lanes.runs)
        _evaluate(cells, first, last, totals, len(group_bounds) - 1, *windows, queries, out)


@compiled
def _evaluate(cells, first, last, totals, groups, bounds, lo, hi, runs, queries, out):  # type: ignore[no-untyped-def]
    total = identity(cells)
    store(totals, 0, total)
    for cell in range(first, last):
        total = combine(total, load(cells, cell))
        store(totals, cell - first + 1, total)
    near = like(cells, NEAR_ROWS if len(lo) >= FAR_ROWS and len(cells) == 1 else 0)  # streamed by the one column
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            _subtract(totals, first, bounds[lane], bounds[lane + 1], lo, hi, runs, near, out)
    if len(lo) >= FAR_ROWS:
        end_streams()


@compiled
def _subtract(totals, first, row, last_row, lo, hi, runs, near, out):  # type: ignore[no-untyped-def]
    look = first_look(runs, row)
    while row < last_row:
        stop, steady, look = next_stretch(lo, hi, runs, row, last_row, look)
        if steady:
            left, right = lo[row] - first, hi[row] - first
            if len(near[0]) > 0 and stop - row >= NEAR_ROWS:
                done = _stream(totals, left, right, row, stop - row, near, out)
                left, right, row = left + done, right + done, row + done
            for i in range(stop - row):
                store(out, row + i, remove(load(totals, right + i), load(totals, left + i)))
        else:
            for i in range(row, stop):
                store(out, i, remove(load(totals, hi[i] - first), load(totals, lo[i] - first)))
        row = stop


@compiled
def _stream(totals, left, right, row, count, near, out):  # type: ignore[no-untyped-def]
    """Answers the first of `count` steady rows, collected nearby and stored past the caches; returns their number."""
    done = np.int64(-(np.int64(out[0].ctypes.data) // out[0].itemsize + row) % (LINE // out[0].itemsize))
    for i in range(done):
        store(out, row + i, remove(load(totals, right + i), load(totals, left + i)))
    while done + WIDTH <= count:
        some = min((count - done) // WIDTH * WIDTH, NEAR_ROWS)
        for i in range(some):
            store(near, i, remove(load(totals, right + done + i), load(totals, left + done + i)))
        for i in range(0, some, WIDTH):
            stream_sixteen(near[0], i, out[0], row + done + i)
        done += some
    return done
