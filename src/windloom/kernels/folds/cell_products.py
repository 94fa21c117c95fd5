"""Adds up products of integers over pairs of cells, four sums at a time, without listing the pairs.

One walk along the cells makes `LANES` sums. Only entries near the diagonal of the matrix are kept, its band: those of
two slices that some window holds together. The cells of a moving group are spread out over all slices first, so that
a cell of the fixed side meets a whole row of the band at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.compiling.lanes import LANES, add_products
from windloom.kernels.folds.pairs import in_order
from windloom.kernels.folds.slice_matrix import CellSide
from windloom.model.arrays import Ints, Positions

#: A group with cells in at least one slice out of this many is spread out; others are walked cell by cell.
_SPREAD = 8


@dataclass(frozen=True, slots=True)
class Band:
    """The slices `low : high` of the moving side that some window holds together with each slice of the fixed side.

    Both count from the first slice of their side. A row of the band has `width` entries from `low` on.
    """

    low: Positions
    high: Positions
    width: int

    @classmethod
    def of(cls, low: Positions, high: Positions) -> Band:
        return cls(low, high, max(1, int((high - low).max(initial=0))))

    def __len__(self) -> int:
        return len(self.low)


#: The columns of one walk, one for each lane, of the fixed and of the moving side.
Lanes = tuple[tuple[Ints, ...], tuple[Ints, ...]]


def by_moving_group(pairs: tuple[Positions, Positions], groups: int) -> tuple[Positions, Positions]:
    """The pairs of groups, side by side if they have the same moving group."""
    order, _ = in_order(pairs[1], groups)
    return pairs[0][order], pairs[1][order]


def add_cell_products(
    pairs: tuple[Positions, Positions],
    fixed: CellSide,
    moving: CellSide,
    band: Band,
    groups: NDArray[np.int32],
    columns: Lanes,
    out: Ints,
    *,
    narrow: bool,
) -> None:
    """Adds fixed · moving to `out`, for all cells that some window holds together.

    Sums of a lane are `LANES` apart, in order of group of the result, slice of the fixed side and place in its band.
    This is fastest for pairs in order of their moving group. `groups` are the numbers of groups of the result, by what
    remains of both sides. With `narrow`, all numbers have 32 bits.
    """
    kind = np.int32 if narrow else np.int64
    spread = np.zeros((moving.width + band.width) * LANES, kind)
    _add_cell_products(
        *pairs,
        *(fixed.lo, fixed.hi, fixed.slices, fixed.first, fixed.outs),
        *(moving.lo, moving.hi, moving.slices, moving.first, moving.width, moving.outs),
        *(band.low, band.high, band.width),
        groups,
        *columns[0],
        *columns[1],
        *(np.empty(LANES, kind), np.empty(LANES, kind), spread),
        out,
    )


@compiled
def _add_cell_products(  # type: ignore[no-untyped-def]
    groups_fixed, groups_moving, fixed_lo, fixed_hi, fixed_slices, fixed_first, fixed_outs,
    moving_lo, moving_hi, moving_slices, moving_first, moving_width, moving_outs, low, high, width, numbers,
    first, second, third, fourth, other_first, other_second, other_third, other_fourth, own, other, spread, out,
):  # fmt: skip
    rows = len(low)
    held = np.int64(-1)  # the group that is spread out
    for pair in range(len(groups_fixed)):
        group, moved = np.int64(groups_fixed[pair]), np.int64(groups_moving[pair])
        begin, last = moving_lo[moved], moving_hi[moved]
        is_spread = (last - begin) * _SPREAD >= moving_width
        if is_spread and held != moved:
            if held >= 0:
                for j in range(moving_lo[held], moving_hi[held]):
                    at = LANES * (np.int64(moving_slices[j]) - moving_first)
                    for lane in range(LANES):
                        spread[at + lane] = 0
            for j in range(begin, last):
                at = LANES * (np.int64(moving_slices[j]) - moving_first)
                spread[at] = other_first[j]
                spread[at + 1] = other_second[j]
                spread[at + 2] = other_third[j]
                spread[at + 3] = other_fourth[j]
            held = moved
        base = np.int64(numbers[fixed_outs[group], moving_outs[moved]]) * rows
        for i in range(fixed_lo[group], fixed_hi[group]):
            row = np.int64(fixed_slices[i]) - fixed_first
            own[0] = first[i]
            own[1] = second[i]
            own[2] = third[i]
            own[3] = fourth[i]
            at, from_ = (base + row) * width * LANES, np.int64(low[row])
            if is_spread:
                for k in range(width):
                    add_products(out, at + LANES * k, own, spread, LANES * (from_ + k))
                continue
            while begin < last and moving_slices[begin] - moving_first < from_:
                begin += 1
            for j in range(begin, last):
                place = np.int64(moving_slices[j]) - moving_first
                if place >= high[row]:
                    break
                other[0] = other_first[j]
                other[1] = other_second[j]
                other[2] = other_third[j]
                other[3] = other_fourth[j]
                add_products(out, at + LANES * (place - from_), own, other, np.int64(0))


def entries_of(sums: Ints, lane: int, groups: int, band: Band, rows: tuple[int, int], columns: tuple[int, int]) -> Ints:
    """The sums of a lane as a matrix: by group, slices `rows` of the fixed side and `columns` of the moving side."""
    out = np.zeros((groups, rows[1] - rows[0], columns[1] - columns[0]), np.int64)
    _copy_entries(sums, lane, band.low, band.high, band.width, rows[0], columns[0], out)
    return out.reshape(-1)


@compiled
def _copy_entries(sums, lane, low, high, width, first_row, first_column, out):  # type: ignore[no-untyped-def]
    groups, rows, columns = out.shape
    for group in range(groups):
        for row in range(rows):
            own = first_row + row
            at = (group * len(low) + own) * width - low[own]
            for column in range(max(low[own], first_column), min(high[own], first_column + columns)):
                out[group, row, column - first_column] = sums[LANES * (at + column) + lane]
