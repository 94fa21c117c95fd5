"""Adds up products of integers over pairs of tuples with the same key, four sums at a time, without making cells.

It does what `cell_products` does, and gives the same entries of a band. The tuples of a key are near each other, and so
are those of both sides that meet: they stay in the caches while the moving ones are added up by slice, and while
each of the fixed ones then meets a row of the band.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.compiling.lanes import LANES, add_lanes, add_scaled
from windloom.kernels.folds.cell_products import Band
from windloom.model.arrays import Ints, Positions

#: The bits of a place that have the number of a slice; those above have the number of a group.
SLICE_BITS = 16
_SLICES = (1 << SLICE_BITS) - 1
#: If a key has moving tuples in at least one slice out of this many, they are added up by slice; others are walked.
_SPREAD = 8

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
    """Moves `lo` and `hi` on to the tuples of each key whose slices are `first : last`; both only move forward."""
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
    """Adds fixed · moving to `out`, for all tuples of pairs of keys that some window holds together.

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
