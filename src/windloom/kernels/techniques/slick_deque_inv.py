"""SlickDeque (Inv): a running value for each distinct range, shared by the queries that have it.

Queries of a tree whose windows cover the same cells (they differ in other respects) are answered from one running
value; all others have one each. A distinct range costs exactly two operations per cell: combine the arriving cell,
remove the expiring cell.
"""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.families.algebra import load, store
from windloom.kernels.techniques.subtract_on_evict import walk_lane


@compiled
def evaluate(cells, group_bounds, bounds, lo, hi, runs, queries, out, stamps):  # type: ignore[no-untyped-def]
    groups = len(group_bounds) - 1
    for i in range(len(queries)):
        twin = np.int64(-1)
        for j in range(i):
            if _equal_windows(groups, bounds, lo, hi, queries[i], queries[j]):
                twin = queries[j]
                break
        if twin >= 0:
            shift = bounds[twin * groups] - bounds[queries[i] * groups]
            for row in range(bounds[queries[i] * groups], bounds[(queries[i] + 1) * groups]):
                store(out, row, load(out, row + shift))
            continue
        for lane in range(queries[i] * groups, (queries[i] + 1) * groups):
            walk_lane(cells, bounds[lane], bounds[lane + 1], lo, hi, runs, out, stamps)


@compiled
def _equal_windows(groups, bounds, lo, hi, query, twin):  # type: ignore[no-untyped-def]
    """Whether two queries cover the same cells, window for window. A row in the middle almost always decides."""
    first, last = bounds[query * groups], bounds[(query + 1) * groups]
    shift = bounds[twin * groups] - first
    if bounds[(twin + 1) * groups] - last != shift:
        return False
    middle = (first + last) // 2
    if middle < last and (lo[middle] != lo[middle + shift] or hi[middle] != hi[middle + shift]):
        return False
    row = first
    while row < last and lo[row] == lo[row + shift] and hi[row] == hi[row + shift]:
        row += 1
    return row == last
