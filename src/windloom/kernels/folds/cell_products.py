"""Adds up products of integers over pairs of cells, four sums at a time, without listing the pairs.

`LANES` sums go through one walk along the cells: the numbers of a cell lie side by side, and so do the sums of an entry
of the matrix, so that a pair touches one place on each side and one in the result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.folds.matching import Ints, Positions
from windloom.kernels.folds.pairs import in_order
from windloom.kernels.folds.slice_matrix import CellSide

#: The sums of one walk.
LANES = 4

#: Moving groups whose pairs are walked along together.
NEAR_GROUPS = 64

#: A group with cells in one of so many slices, or in more, is looked up slice by slice instead of searched.
_LISTED = 8

#: Numbers of cells, side by side: of 32 bits where all fit, because that is half of what a walk reads.
Numbers = NDArray[np.int32] | NDArray[np.int64]


def side_by_side(columns: list[Ints], *, narrow: bool) -> Numbers:
    """The numbers of up to `LANES` columns by cell; what is left of the lanes is zero."""
    out = np.empty((len(columns[0]), LANES), np.int32 if narrow else np.int64)
    _put_side_by_side(*columns, *columns[:1] * (LANES - len(columns)), len(columns), out)
    return out


@compiled
def _put_side_by_side(first, second, third, fourth, count, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        out[i, 0] = first[i]
        out[i, 1] = second[i] if count > 1 else 0
        out[i, 2] = third[i] if count > 2 else 0
        out[i, 3] = fourth[i] if count > 3 else 0


def in_near_order(pairs: tuple[Positions, Positions], groups: int) -> tuple[Positions, Positions]:
    """The same pairs of groups, those of some moving groups after those of others: their cells stay near then.

    Among these the order stays what it was, by group of the result: the sums that they add to stay near as well.
    """
    order, _ = in_order(pairs[1] // NEAR_GROUPS, -(-groups // NEAR_GROUPS))
    return pairs[0][order], pairs[1][order]


def add_cell_products(
    pairs: tuple[Positions, Positions],
    fixed: CellSide,
    moving: CellSide,
    bands: tuple[Positions, Positions],
    groups: NDArray[np.int32],
    numbers: tuple[Numbers, Numbers],
    out: Ints,
) -> None:
    """`out[entry, lane]` += fixed · moving, for all cells that some window holds together.

    It is fastest for pairs in near order. Arguments are those of `cell_stretches`; `numbers` are those of the fixed
    and of the moving side.
    """
    _add_cell_products(
        *pairs,
        *(fixed.lo, fixed.hi, fixed.slices, fixed.first, fixed.width, fixed.outs),
        *(moving.lo, moving.hi, moving.slices, moving.first, moving.width, moving.outs),
        *bands,
        groups,
        *numbers,
        out,
    )


@compiled
def _add_cell_products(  # type: ignore[no-untyped-def]
    groups_fixed, groups_moving, fixed_lo, fixed_hi, fixed_slices, fixed_first, fixed_width, fixed_outs,
    moving_lo, moving_hi, moving_slices, moving_first, moving_width, moving_outs, band_lo, band_hi, numbers,
    left, right, out,
):  # fmt: skip
    # For each of the latest groups, the first cell in each slice or behind it; and which groups these are.
    before = np.empty((NEAR_GROUPS, moving_width + 1), np.int32)
    listed = np.full(NEAR_GROUPS, -1, np.int64)
    for pair in range(len(groups_fixed)):
        group_fixed, group_moving = np.int64(groups_fixed[pair]), np.int64(groups_moving[pair])
        begin, last = moving_lo[group_moving], moving_hi[group_moving]
        is_listed = (last - begin) * _LISTED >= moving_width
        place = group_moving % NEAR_GROUPS
        if is_listed and listed[place] != group_moving:
            part = 0
            for j in range(begin, last):
                while part <= moving_slices[j] - moving_first:
                    before[place, part] = j
                    part += 1
            while part <= moving_width:
                before[place, part] = last
                part += 1
            listed[place] = group_moving
        base = np.int64(numbers[fixed_outs[group_fixed], moving_outs[group_moving]]) * fixed_width
        for i in range(fixed_lo[group_fixed], fixed_hi[group_fixed]):
            own = np.int64(fixed_slices[i]) - fixed_first
            low, high = band_lo[own], band_hi[own]
            if is_listed:
                begin, end = np.int64(before[place, low]), np.int64(before[place, high])
            else:
                while begin < last and moving_slices[begin] - moving_first < low:
                    begin += 1
                end = begin
                while end < last and moving_slices[end] - moving_first < high:
                    end += 1
            row = (base + own) * moving_width - moving_first
            first, second = np.int64(left[i, 0]), np.int64(left[i, 1])
            third, fourth = np.int64(left[i, 2]), np.int64(left[i, 3])
            for j in range(begin, end):
                # Lanes are written out: a loop over four is compiled to something slower.
                at, k = np.uint64(row + moving_slices[j]), np.uint64(j)
                out[at, 0] += first * right[k, 0]
                out[at, 1] += second * right[k, 1]
                out[at, 2] += third * right[k, 2]
                out[at, 3] += fourth * right[k, 3]
