"""TwoStacks: a queue of two stacks, the front with values up to its end, the back with one running value.

| time    | 3 operations a cell and query amortised, O(window) when the back is flipped onto the front |
| space   | one value a cell of the window                                                            |
| needs   | associative                                                                               |
| queries | many, each on its own                                                                     |
| source  | TwoStacks (source C); the back as one value is its Lite form                              |

The back keeps no stack of its own: the cells are still where they were, and a flip reads them there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiled import compiled
from windloom.kernels.families import combine, identity, like, load, store
from windloom.kernels.lanes import longest_run
from windloom.kernels.operations import mark
from windloom.model.aggregate import Needs


class TwoStacks:
    name = "two_stacks"
    needs = (Needs.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        _evaluate(cells, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, queries, out, stamps)


@compiled
def _evaluate(cells, groups, bounds, lo, hi, queries, out, stamps):  # type: ignore[no-untyped-def]
    front = like(cells, longest_run(groups, bounds, lo, hi, queries))
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            walk_lane(cells, bounds[lane], bounds[lane + 1], lo, hi, front, out, stamps)


@compiled
def walk_lane(cells, first_row, last_row, lo, hi, front, out, stamps):  # type: ignore[no-untyped-def]
    base = np.int64(0)  # the cell at the bottom of `front`
    middle = np.int64(0)  # front: up to here; back: from here to `right`
    right = np.int64(0)
    back = identity(cells)
    for row in range(first_row, last_row):
        first, last = np.int64(lo[row]), np.int64(hi[row])
        if first >= right:
            middle = right = first
        elif first >= middle:
            base = first
            _flip(cells, first, right, front)
            middle = right
        if right == middle:
            back = identity(cells)
            if right < last:
                back = load(cells, right)
                right += 1
        while right < last:
            back = combine(back, load(cells, right))
            right += 1
        if first >= middle:
            store(out, row, back)
        elif right == middle:
            store(out, row, load(front, first - base))
        else:
            store(out, row, combine(load(front, first - base), back))
        mark(stamps, row)


@compiled
def _flip(cells, first, right, front):  # type: ignore[no-untyped-def]
    """`front[i]` = cells from `first + i` up to `right`."""
    total = load(cells, right - 1)
    store(front, right - 1 - first, total)
    for cell in range(right - 2, first - 1, -1):
        total = combine(load(cells, cell), total)
        store(front, cell - first, total)
