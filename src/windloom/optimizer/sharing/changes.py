"""The smallest change from the trees of one plan to those of another: a number for each new tree."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np


def keep_numbers(old: Mapping[int, Collection[int]], new: Sequence[Collection[int]], fresh: int) -> list[int]:
    """A number for each new tree, such that as few queries as possible change theirs; `fresh` and above are unused.

    >>> keep_numbers({4: [1, 2, 3], 7: [5]}, [[5, 3], [1, 2], [9]], fresh=8)
    [7, 4, 8]
    """
    from scipy.optimize import linear_sum_assignment  # takes 0.4 s to import, and most plans do without

    numbers = list(old)
    home = {query: column for column, number in enumerate(numbers) for query in old[number]}
    common = np.zeros((len(new), len(numbers)))
    for row, tree in enumerate(new):
        for query in tree:
            if query in home:
                common[row, home[query]] += 1
    number_of_row = {
        row: numbers[column]
        for row, column in zip(*linear_sum_assignment(common, maximize=True), strict=True)
        if common[row, column] > 0
    }
    numbers_of_new = []
    for row in range(len(new)):
        numbers_of_new.append(number_of_row.get(row, fresh))
        fresh += row not in number_of_row
    return numbers_of_new
