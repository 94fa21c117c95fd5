"""Merging cells that hold lists."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from windloom.kernels.lists.lists import Lists, merge_lists


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("alone", [0.0, 0.5, 1.0])
def test_merged_lists_have_the_counts_of_all_cells_of_their_run(alone: float, largest: bool) -> None:
    draw = np.random.default_rng(7)
    cells = [
        dict(zip(draw.permutation(40)[:size].tolist(), range(1, size + 1), strict=True))
        for size in draw.integers(0, 9, 300)
    ]
    codes = np.array([code for cell in cells for code in sorted(cell)], np.int32)
    counts = np.array([cell[code] for cell in cells for code in sorted(cell)], np.int64)
    bounds = np.cumsum([0, *map(len, cells)])
    order = draw.permutation(len(cells))
    lengths = np.where(draw.random(len(cells)) < alone, 1, draw.integers(1, 5, len(cells)))
    runs = np.append(0, np.minimum(np.cumsum(lengths), len(cells)))
    runs = runs[: int(np.searchsorted(runs, len(cells))) + 1]
    merged = merge_lists(Lists(bounds, codes, counts), 40, order, runs, largest=largest)
    assert merged.bounds[-1] == len(merged.codes) == len(merged.counts)
    for run in range(len(runs) - 1):
        own = slice(int(merged.bounds[run]), int(merged.bounds[run + 1]))
        expected: Counter[int] = Counter()
        for cell in order[runs[run] : runs[run + 1]]:
            expected = expected | Counter(cells[cell]) if largest else expected + Counter(cells[cell])
        assert list(zip(merged.codes[own].tolist(), merged.counts[own].tolist(), strict=True)) == sorted(
            expected.items()
        )
