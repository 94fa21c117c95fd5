"""The smallest change from one plan's trees to another's: which new tree goes by the number of which old one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled


def keep_numbers(old: Mapping[int, Collection[int]], new: Sequence[Collection[int]], fresh: int) -> list[int]:
    """A number for each new tree, such that as few queries as possible change theirs; `fresh` and on are unused.

    >>> keep_numbers({4: [1, 2, 3], 7: [5]}, [[5, 3], [1, 2], [9]], fresh=8)
    [7, 4, 8]
    """
    numbers = list(old)
    home = {query: row for row, number in enumerate(numbers) for query in old[number]}
    common = np.zeros((len(new), max(len(new), len(numbers))))
    for column, tree in enumerate(new):
        for query in tree:
            if query in home:
                common[column, home[query]] += 1
    taken = _assign(-common) if len(new) else np.empty(0, np.int64)
    given = []
    for row, column in enumerate(taken.tolist()):
        if common[row, column] > 0:
            given.append(numbers[column])
        else:
            given.append(fresh)
            fresh += 1
    return given


@compiled
def _assign(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """The cheapest column of its own for every row (Kuhn and Munkres, by shortest paths); columns are not fewer."""
    rows, columns = costs.shape
    row_price, column_price = np.zeros(rows + 1), np.zeros(columns + 1)
    row_of = np.zeros(columns + 1, np.int64)  # 0 is nobody
    for row in range(1, rows + 1):
        row_of[0] = row
        at = 0
        nearest, before, seen = np.full(columns + 1, np.inf), np.zeros(columns + 1, np.int64), np.zeros(columns + 1)
        while row_of[at]:
            seen[at] = 1
            here, step, following = row_of[at], np.inf, 0
            for column in range(1, columns + 1):
                if not seen[column]:
                    length = costs[here - 1, column - 1] - row_price[here] - column_price[column]
                    if length < nearest[column]:
                        nearest[column], before[column] = length, at
                    if nearest[column] < step:
                        step, following = nearest[column], column
            for column in range(columns + 1):
                if seen[column]:
                    row_price[row_of[column]] += step
                    column_price[column] -= step
                else:
                    nearest[column] -= step
            at = following
        while at:
            row_of[at] = row_of[before[at]]
            at = before[at]
    found = np.zeros(rows, np.int64)
    for column in range(1, columns + 1):
        if row_of[column]:
            found[row_of[column] - 1] = column - 1
    return found
