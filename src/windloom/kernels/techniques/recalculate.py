"""Recalculate: combines every cell of the window, every time.

| time    | O(cells in the window) per window           |
| space   | none beyond the cells                       |
| needs   | associative, or lists                       |
| queries | many                                        |
| source  | Panes, naive final aggregation (source C)   |

The slow reference that every other technique is tested against.
"""

from __future__ import annotations

from typing import Any

from windloom.kernels.compiling import compiled
from windloom.kernels.families import combine, identity, load, store
from windloom.kernels.lists.frequencies import answer
from windloom.kernels.lists.lists import Lists
from windloom.model.aggregate import Property


class Recalculate:
    name = "recalculate"
    needs = (Property.ASSOCIATIVE, Property.LISTS)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None:
        if isinstance(cells, Lists):
            answer(cells, group_bounds, lanes, queries, out, restart=True)
            return
        _evaluate(cells, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, queries, out)


@compiled
def _evaluate(cells, groups, bounds, lo, hi, queries, out):  # type: ignore[no-untyped-def]
    for query in queries:
        for row in range(bounds[query * groups], bounds[(query + 1) * groups]):
            total = identity(cells)
            for cell in range(lo[row], hi[row]):
                total = combine(total, load(cells, cell))
            store(out, row, total)
