"""Subtract-on-Evict: one running value per lane; a cell is combined when it enters and removed when it leaves.

| time    | 2 operations per cell and query, also at worst    |
| space   | one value                                         |
| needs   | associative, invertible                           |
| queries | many, each on its own                             |
| source  | Panes (Inv), R-Int, Subtract-on-Evict (source C)  |

Floats are refused: a huge value would leave its rounding error in every later window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled, mark
from windloom.kernels.families import combine, identity, load, remove, store
from windloom.kernels.lanes import first_look, next_stretch
from windloom.model.aggregate import Property


class SubtractOnEvict:
    name = "subtract_on_evict"
    needs = (Property.ASSOCIATIVE | Property.INVERTIBLE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        for_all_lanes(cells, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, lanes.runs, queries, out, stamps)


@compiled
def for_all_lanes(cells, groups, bounds, lo, hi, runs, queries, out, stamps):  # type: ignore[no-untyped-def]
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            walk_lane(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, out, stamps)


@compiled
def walk_lane(cells, first_row, last_row, lo, hi, runs, out, stamps):  # type: ignore[no-untyped-def]
    """Keep one running value along the windows of a lane."""
    left = np.int64(0)
    right = np.int64(0)
    total = identity(cells)
    row = first_row
    look = first_look(runs, row)
    while row < last_row:
        stop, steady, look = next_stretch(lo, hi, runs, row, last_row, look)
        while row < stop:
            first, last = np.int64(lo[row]), np.int64(hi[row])
            if first >= right:
                # The last window has left completely: there is nothing to remove cell by cell.
                left = right = first
                total = identity(cells)
            while right < last:
                total = combine(total, load(cells, right))
                right += 1
            while left < first:
                total = remove(total, load(cells, left))
                left += 1
            store(out, row, total)
            mark(stamps, row)
            row += 1
            if steady and left < right:
                total = _slide(cells, left, right, total, row, stop, out, stamps)
                left += stop - row
                right += stop - row
                row = stop


@compiled
def _slide(cells, left, right, total, first_row, last_row, out, stamps):  # type: ignore[no-untyped-def]
    """Answer rows whose windows each lie one cell further; return the last answer."""
    for i in range(last_row - first_row):
        total = remove(combine(total, load(cells, right + i)), load(cells, left + i))
        store(out, first_row + i, total)
        mark(stamps, first_row + i)
    return total
