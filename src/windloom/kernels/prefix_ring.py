"""Prefix ring: running totals over all cells; a window is the difference of two of them.

| time    | O(1) a cell once, O(1) a window for any number of queries   |
| space   | one total a cell                                            |
| needs   | associative, invertible; or nearly invertible (floats)      |
| queries | many, all ranges from the same totals                       |
| source  | ours, for rounds in which many slices close at once         |

Totals run across group borders: a difference inside one group cancels whatever came before. For integers that is
exact even where the total itself wraps around 64 bits, because wrapping subtraction undoes wrapping addition.
Floats have totals with a certificate, see `prefix_ring_float`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels import prefix_ring_float
from windloom.kernels.compiled import compiled
from windloom.kernels.families import AddFloat, combine, empty_columns, identity, load, remove, store
from windloom.kernels.lanes import SHORT_STRETCH, next_stretch
from windloom.model.aggregate import Family, Needs


class PrefixRing:
    name = "prefix_ring"
    needs = (Needs.ASSOCIATIVE | Needs.INVERTIBLE, Needs.ASSOCIATIVE | Needs.NEARLY_INVERTIBLE)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None:
        if isinstance(cells, AddFloat):
            prefix_ring_float.evaluate(cells, group_bounds, lanes, queries, out)
            return
        first, last = int(group_bounds[0]), int(group_bounds[-1])
        totals = empty_columns(Family.ADD_INT, last - first + 1)
        _evaluate(cells, first, last, totals, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, queries, out)


@compiled
def _evaluate(cells, first, last, totals, groups, bounds, lo, hi, queries, out):  # type: ignore[no-untyped-def]
    total = identity(cells)
    store(totals, 0, total)
    for cell in range(first, last):
        total = combine(total, load(cells, cell))
        store(totals, cell - first + 1, total)
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            _subtract(totals, first, bounds[lane], bounds[lane + 1], lo, hi, out)


@compiled
def _subtract(totals, first, row, last_row, lo, hi, out):  # type: ignore[no-untyped-def]
    wanted = np.int64(SHORT_STRETCH)
    while row < last_row:
        stop, steady, wanted = next_stretch(lo, hi, row, last_row, wanted)
        if steady:
            left, right = lo[row] - first, hi[row] - first
            for i in range(stop - row):
                store(out, row + i, remove(load(totals, right + i), load(totals, left + i)))
        else:
            for i in range(row, stop):
                store(out, i, remove(load(totals, hi[i] - first), load(totals, lo[i] - first)))
        row = stop
