"""TwoStacks: a queue made of two stacks; the front holds values up to its end, the back one running value.

| time    | 3 operations per cell and query amortised, O(window) when the back is flipped onto the    |
|         | front                                                                                     |
| space   | one value per cell of the window                                                          |
| needs   | associative                                                                               |
| queries | many, each on its own                                                                     |
| source  | TwoStacks (source C); the back as one value is its Lite form                              |

The back needs no stack: the cells are still where they were, and a flip reads them there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.cells.lanes import first_look, longest_group, next_stretch
from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.compiling.operations import mark
from windloom.kernels.families.algebra import combine, identity, like, load, store
from windloom.kernels.techniques.two_stacks_batches import LONG, batches, flip_in_batches, slide_in_batches
from windloom.model.aggregate import Needs


class TwoStacks:
    name = "two_stacks"
    needs = (Needs.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        _evaluate(cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, lanes.runs, queries, out, stamps)


@compiled
def _evaluate(cells, group_bounds, bounds, lo, hi, runs, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    front = like(cells, longest_group(group_bounds))
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            walk_lane(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, front, out, stamps)


@compiled
def walk_lane(cells, first_row, last_row, lo, hi, runs, front, out, stamps):  # type: ignore[no-untyped-def]
    base = np.int64(0)  # the cell at the bottom of `front`
    middle = np.int64(0)  # front: up to here; back: from here to `right`
    right = np.int64(0)
    back = identity(cells)
    row = first_row
    look = first_look(runs, row)
    while row < last_row:
        stop, steady, look = next_stretch(lo, hi, runs, row, last_row, look)
        while row < stop:
            first, last = np.int64(lo[row]), np.int64(hi[row])
            if first >= right:
                middle = right = first
            elif first >= middle:
                base = first
                if right - first >= LONG and batches(cells):
                    flip_in_batches(cells, first, right, front)
                else:
                    flip(cells, first, right, front)
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
            row += 1
            if steady and right > middle:
                # Up to the next flip every row adds a cell to the back and takes the next value of the front.
                count = min(stop - row, middle - 1 - first)
                if count >= LONG and batches(cells):
                    back = slide_in_batches(cells, right, back, front, first + 1 - base, row, count, out, stamps)
                elif count > 0:
                    back = slide(cells, right, back, front, first + 1 - base, row, count, out, stamps)
                if count > 0:
                    right += count
                    row += count


@compiled
def slide(cells, right, back, front, place, row, count, out, stamps):  # type: ignore[no-untyped-def]
    """Answers `count` rows whose windows each lie one cell further; returns the new back."""
    for i in range(count):
        back = combine(back, load(cells, right + i))
        store(out, row + i, combine(load(front, place + i), back))
        mark(stamps, row + i)
    return back


@compiled
def flip(cells, first, right, front):  # type: ignore[no-untyped-def]
    """`front[i]` = cells from `first + i` up to `right`."""
    total = load(cells, right - 1)
    store(front, right - 1 - first, total)
    for i in range(right - 2 - first, -1, -1):
        total = combine(load(cells, first + i), total)
        store(front, i, total)
