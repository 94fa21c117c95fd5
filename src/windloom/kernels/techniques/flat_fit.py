"""FlatFIT: every cell has a value and how far it reaches; answering follows these jumps and lengthens them.

| time    | 3 operations per window amortised, O(window) at a window reset     |
| space   | a value, a jump and a place on the stack per cell of the longest   |
|         | window                                                             |
| needs   | associative                                                        |
| queries | many, all ranges from the same jumps                               |
| source  | Flat and Fast Index Traverser (source C)                           |

Pointers, Partials and the stack of Positions are the paper's. Windows of all queries of a group are answered in order
of their right edge, so that a jump made for one of them never reaches past the end of the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled, mark
from windloom.kernels.families import combine, identity, like, load, store
from windloom.kernels.lanes import longest_run, most_rows, order_rows, ring_size
from windloom.model.aggregate import Property


class FlatFit:
    name = "flat_fit"
    needs = (Property.ASSOCIATIVE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        _evaluate(cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, queries, out, stamps)


@compiled
def _evaluate(cells, group_bounds, bounds, lo, hi, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    size = ring_size(longest_run(groups, bounds, lo, hi, queries))
    partials = like(cells, size)
    pointers = np.empty(size, np.int64)
    positions = np.empty(size, np.int64)
    rows = most_rows(groups, bounds, queries)
    order = np.empty(rows, np.int64)
    spare = np.empty(rows if len(queries) > 1 else 0, np.int64)
    mask = size - 1
    for group in range(groups):
        count = order_rows(group, groups, group_bounds, bounds, lo, hi, queries, order, spare)
        right = group_bounds[group]
        for i in range(count):
            row = order[i]
            first, last = np.int64(lo[row]), np.int64(hi[row])
            while right < last:
                store(partials, right & mask, load(cells, right))
                pointers[right & mask] = right + 1
                right += 1
            if first == last:
                store(out, row, identity(cells))
                mark(stamps, row)
                continue
            depth = 0
            place = first & mask
            while pointers[place] < last:
                positions[depth] = place
                depth += 1
                place = pointers[place] & mask
            total = load(partials, place)
            # Goes back over the jumps taken: each now reaches the end.
            while depth > 0:
                depth -= 1
                place = positions[depth]
                total = combine(load(partials, place), total)
                store(partials, place, total)
                pointers[place] = last
            store(out, row, total)
            mark(stamps, row)
