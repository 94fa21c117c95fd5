"""Running counts: how often each value occurs in the window, updated as cells enter and leave it.

| time    | O(entries that enter or leave) per window, plus the cost of the question      |
| space   | a counter for each value                                                      |
| needs   | lists                                                                         |
| queries | each its own; COUNT(DISTINCT x) all at once, see `last_seen`                  |
| source  | running and interval synopses with frequency counts (source E §2.3.4, §6.1)   |

Adding and subtracting whole numbers is exact, so a lane never drifts. Between rounds, only the cells are kept: a
running synopsis of the whole stream would hold values that never occur again (source E).
"""

from __future__ import annotations

from typing import Any

from windloom.kernels.lists.cells import Distinct, Frequent, Lists, Question, Ranked, Registered, Top
from windloom.kernels.lists.frequent import find_frequent
from windloom.kernels.lists.last_seen import count_last_seen, recount_distinct
from windloom.kernels.lists.most_frequent import find_most_frequent
from windloom.kernels.lists.order_statistics import find_ranks
from windloom.kernels.lists.registers import estimate_distinct
from windloom.model.aggregate import Needs


class RunningCounts:
    name = "running_counts"
    needs = (Needs.LISTS,)

    def evaluate(self, cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Question) -> None:
        answer(cells, group_bounds, lanes, queries, out, restart=False)


def answer(cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Question, *, restart: bool) -> None:
    """Answer a question from cells that hold lists; with `restart`, every window is counted from nothing."""
    match out:
        case Distinct():
            (recount_distinct if restart else count_last_seen)(cells, group_bounds, lanes, queries, out)
        case Ranked():
            find_ranks(cells, group_bounds, lanes, queries, out, restart)
        case Top():
            find_most_frequent(cells, group_bounds, lanes, queries, out, restart)
        case Frequent():
            find_frequent(cells, group_bounds, lanes, queries, out, restart)
        case Registered():
            estimate_distinct(cells, group_bounds, lanes, queries, out, restart)
