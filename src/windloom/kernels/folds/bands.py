"""Adds up products of integers over pairs of cells, or of tuples, four sums at a time, without listing the pairs.

One walk along the cells makes `LANES` sums. Only entries near the diagonal of the matrix are kept, its band: those of
two slices that some window holds together. The cells of a moving group are spread out over all slices first, so that
a cell of the fixed side meets a whole row of the band at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.kernels.folds.matching import in_order
from windloom.kernels.folds.slice_matrix import CellSide
from windloom.kernels.simd import LANES, add_lanes, add_products, add_scaled
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
    """Return the pairs of groups, side by side if they have the same moving group."""
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
    """Add fixed · moving to `out`, for all cells that some window holds together.

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
    spread_group = np.int64(-1)  # the group that is spread out
    for pair in range(len(groups_fixed)):
        group, moved = np.int64(groups_fixed[pair]), np.int64(groups_moving[pair])
        begin, last = moving_lo[moved], moving_hi[moved]
        is_spread = (last - begin) * _SPREAD >= moving_width
        if is_spread and spread_group != moved:
            if spread_group >= 0:
                for j in range(moving_lo[spread_group], moving_hi[spread_group]):
                    at = LANES * (np.int64(moving_slices[j]) - moving_first)
                    for lane in range(LANES):
                        spread[at + lane] = 0
            for j in range(begin, last):
                at = LANES * (np.int64(moving_slices[j]) - moving_first)
                spread[at] = other_first[j]
                spread[at + 1] = other_second[j]
                spread[at + 2] = other_third[j]
                spread[at + 3] = other_fourth[j]
            spread_group = moved
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
    """Return the sums of a lane as a matrix: by group, slices `rows` of the fixed and `columns` of the moving side."""
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


# Products of tuples with the same key add to the same entries of a band, without making cells. The tuples of a key are
# near each other, and so are those of both sides that meet: they stay in the caches while the moving ones are added up
# by slice, and while each of the fixed ones then meets a row of the band.

#: The bits of a place that have the number of a slice; those above have the number of a group.
SLICE_BITS = 16
_SLICES = (1 << SLICE_BITS) - 1

#: For every lane, the factor that it multiplies: a column of the records, or 0 to count tuples.
LaneColumns = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TupleSide:
    """The tuples of one side: those of key k are `lo[k] : hi[k]` of `records`, in order of slices.

    A record is a place and values. Slices count from `first`, and there are `width` of them.
    """

    lo: Ints
    hi: Ints
    records: Positions
    first: int
    width: int


@compiled
def tuples_between(bounds, records, first, last, lo, hi):  # type: ignore[no-untyped-def]
    """Move `lo` and `hi` on to the tuples of each key whose slices are `first : last`; both only move forward."""
    for key in range(len(bounds) - 1):
        end = bounds[key + 1]
        i = lo[key]
        while i < end and records[i, 0] & _SLICES < first:
            i += 1
        j = max(hi[key], i)
        if j < end and records[end - 1, 0] & _SLICES < last:
            j = end
        while j < end and records[j, 0] & _SLICES < last:
            j += 1
        lo[key], hi[key] = i, j


def add_tuple_products(
    pairs: tuple[Ints, Ints],
    fixed: TupleSide,
    moving: TupleSide,
    band: Band,
    groups: NDArray[np.int32],
    factors: tuple[LaneColumns, LaneColumns],
    out: Ints,
) -> None:
    """Add fixed · moving to `out`, for all tuples of pairs of keys that some window holds together.

    `groups` are the numbers of groups of the result, by that of a fixed tuple. Entries are laid out as in
    `add_cell_products`. The sum of the moving tuples of a key in a slice must fit in 32 bits.
    """
    spread = np.zeros((moving.width + band.width) * LANES, np.int32)
    _add_tuple_products(
        *pairs,
        *(fixed.lo, fixed.hi, fixed.records, fixed.first),
        *(moving.lo, moving.hi, moving.records, moving.first, moving.width),
        *(band.low, band.high, band.width),
        groups,
        *factors[0],
        *factors[1],
        spread,
        out,
    )


@compiled
def _add_tuple_products(  # type: ignore[no-untyped-def]
    keys_fixed, keys_moving, fixed_lo, fixed_hi, fixed, fixed_first,
    moving_lo, moving_hi, moving, moving_first, moving_width, low, high, width, numbers,
    first, second, third, fourth, other_first, other_second, other_third, other_fourth, spread, out,
):  # fmt: skip
    rows, one = len(low), np.int32(1)
    for pair in range(len(keys_fixed)):
        key, moved = keys_fixed[pair], keys_moving[pair]
        begin, last = moving_lo[moved], moving_hi[moved]
        if begin == last or fixed_lo[key] == fixed_hi[key]:
            continue
        is_spread = (last - begin) * _SPREAD >= moving_width
        if is_spread:
            spread[:] = 0
            for j in range(begin, last):
                add_lanes(
                    spread,
                    LANES * (np.int64(moving[j, 0] & _SLICES) - moving_first),
                    moving[j, other_first] if other_first else one,
                    moving[j, other_second] if other_second else one,
                    moving[j, other_third] if other_third else one,
                    moving[j, other_fourth] if other_fourth else one,
                )
        for i in range(fixed_lo[key], fixed_hi[key]):
            place = fixed[i, 0]
            row = np.int64(place & _SLICES) - fixed_first
            group = np.int64(numbers[np.uint32(place) >> SLICE_BITS])
            at, from_ = (group * rows + row) * width * LANES, np.int64(low[row])
            own = fixed[i, first] if first else one
            own_second = fixed[i, second] if second else one
            own_third = fixed[i, third] if third else one
            own_fourth = fixed[i, fourth] if fourth else one
            if is_spread:
                for k in range(width):
                    add_scaled(out, at + LANES * k, own, own_second, own_third, own_fourth, spread, LANES * (from_ + k))
                continue
            while begin < last and np.int64(moving[begin, 0] & _SLICES) - moving_first < from_:
                begin += 1
            for j in range(begin, last):
                column = np.int64(moving[j, 0] & _SLICES) - moving_first
                if column >= high[row]:
                    break
                entry = at + LANES * (column - from_)
                out[entry] += np.int64(own) * (moving[j, other_first] if other_first else one)
                out[entry + 1] += np.int64(own_second) * (moving[j, other_second] if other_second else one)
                out[entry + 2] += np.int64(own_third) * (moving[j, other_third] if other_third else one)
                out[entry + 3] += np.int64(own_fourth) * (moving[j, other_fourth] if other_fourth else one)
