"""SlickDeque: running values if the operation can be inverted, a monotone deque if it selects.

| time    | (Inv) 2 per cell and distinct range; (Non-Inv) below 2 per cell, amortised, then one or two steps per |
|         | answer                                                                                            |
| space   | (Inv) one value per distinct range; (Non-Inv) the deque                                           |
| needs   | associative, and invertible or selective                                                          |
| queries | many                                                                                              |
| source  | SlickDeque (source C)                                                                             |

Both have one name, as in the paper; the operation decides which of the two runs.
"""

from __future__ import annotations

from typing import Any

from windloom.kernels.families.algebra import can_remove
from windloom.kernels.techniques import slick_deque_inv, slick_deque_non_inv
from windloom.model.aggregate import Needs


class SlickDeque:
    name = "slick_deque"
    needs = (Needs.ASSOCIATIVE | Needs.INVERTIBLE, Needs.ASSOCIATIVE | Needs.SELECTIVE)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None) -> None:
        arguments = (cells, group_bounds, lanes.bounds, lanes.lo, lanes.hi, lanes.runs, queries, out, stamps)
        if can_remove(cells):
            slick_deque_inv.evaluate(*arguments)
        else:
            slick_deque_non_inv.evaluate(*arguments)
