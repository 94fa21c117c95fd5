"""Products of cells, four sums at a time, against a loop over all pairs of cells."""

from __future__ import annotations

import numpy as np
import pytest

from windloom.kernels.folds.bands import Band, add_cell_products, by_moving_group, entries_of
from windloom.kernels.folds.slice_matrix import CellSide
from windloom.kernels.simd import LANES


def random_side(rng: np.random.Generator, groups: int, slices: int, density: float, outs: int) -> CellSide:
    """Cells in some of the slices, which count from 3; the matrix has all but the first and the last two of them."""
    there = [np.flatnonzero(rng.random(slices) < density) + 3 for _ in range(groups)]
    bounds = np.append(0, np.cumsum([len(own) for own in there])).astype(np.int64)
    places = np.concatenate(there).astype(np.int32)
    first, width = 4, slices - 3
    lo = [bounds[g] + np.searchsorted(own, first) for g, own in enumerate(there)]
    hi = [bounds[g] + np.searchsorted(own, first + width) for g, own in enumerate(there)]
    kept = rng.integers(0, outs, groups)
    return CellSide(np.array(lo, np.int64), np.array(hi, np.int64), places, first, width, kept)


@pytest.mark.parametrize("density", [0.03, 0.3, 0.9])
@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_every_pair_of_cells_that_a_window_holds_is_added_once(density: float, narrow: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    fixed, moving = random_side(rng, 6, 20, 0.4, 2), random_side(rng, 5, 24, density, 3)
    largest = (2**31, 2**20) if narrow else (2**40, 2**15)
    columns = [
        tuple(rng.integers(1 - most, most, len(side.slices)) for _ in range(LANES))
        for side, most in zip((fixed, moving), largest, strict=True)
    ]
    low = rng.integers(0, moving.width, fixed.width)
    band = np.sort(low), np.sort(np.minimum(moving.width, low + rng.integers(0, 9, fixed.width)))
    bands = Band.of(band[0].astype(np.int32), np.maximum(*band).astype(np.int32))
    groups = np.arange(6, dtype=np.int32).reshape(2, 3)
    pairs = rng.integers(0, 6, 40).astype(np.int32), rng.integers(0, 5, 40).astype(np.int32)
    out = np.zeros(6 * fixed.width * bands.width * LANES, np.int64)
    truth = np.zeros((6, fixed.width, moving.width, LANES), np.int64)
    for group_fixed, group_moving in zip(*pairs, strict=True):
        for i in range(fixed.lo[group_fixed], fixed.hi[group_fixed]):
            for j in range(moving.lo[group_moving], moving.hi[group_moving]):
                row, column = fixed.slices[i] - fixed.first, moving.slices[j] - moving.first
                if bands.low[row] <= column < bands.high[row]:
                    for lane in range(LANES):
                        product = int(columns[0][lane][i]) * int(columns[1][lane][j])
                        truth[groups[fixed.outs[group_fixed], moving.outs[group_moving]], row, column, lane] += product
    ordered = by_moving_group(pairs, 5)
    assert (np.diff(ordered[1]) >= 0).all()
    assert sorted(zip(*ordered, strict=True)) == sorted(zip(*pairs, strict=True))
    assert truth.any()
    for listed in (pairs, ordered):
        out[:] = 0
        add_cell_products(listed, fixed, moving, bands, groups, (columns[0], columns[1]), out, narrow=narrow)
        for lane in range(LANES):
            every = entries_of(out, lane, 6, bands, (0, fixed.width), (0, moving.width))
            assert (every.reshape(truth.shape[:3]) == truth[..., lane]).all()
            some = entries_of(out, lane, 6, bands, (3, 9), (5, 17))
            assert (some.reshape(6, 6, 12) == truth[:, 3:9, 5:17, lane]).all()
