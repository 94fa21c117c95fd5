"""Slice matrix: folds slices with slices once, and answers windows of any ranges as rectangles of slices.

| time   | O(pairs of cells that some window holds) once for all joins, and for four sums of integers in one walk   |
|        | along the cells (see `bands`); per window 4 look-ups for integers,                                   |
|        | O(slices of both windows) additions for floats, extrema and moments, which are never subtracted          |
| space  | groups of the result × slices of one side × slices of the other, for some windows at a time              |
| needs  | two sides, an inner join, windows of time, few groups of the result; no lists, no extrema of both sides  |
| source | ours; shares what the binary joins of source E §8.2 (BIJ) keep per pair of ranges                        |

Entry `[group, slice of one side, slice of the other]` is the result of folding these two slices. A window that
ends at t holds the slices `[t - R1, t)` of one side and `[t - R2, t)` of the other: a rectangle, whatever the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.kernels.families import AddInt, Columns, Family, combine, declare, empty_like, identity, like, load, store
from windloom.kernels.folds.int128 import BEYOND, Int128, add, narrowed, widened, zero_wide
from windloom.kernels.folds.matching import Stretches
from windloom.model.aggregate import Property
from windloom.model.arrays import Ints, Positions

#: Stretches in a block: they stay near the caches while each value is folded.
BLOCK_STRETCHES = 1 << 16

#: Integers of 128 bits as a family, for totals that must notice when they no longer fit.
ADD_WIDE = declare(
    Family("add_wide", Int128, (np.int64, np.uint64), Property.ASSOCIATIVE | Property.COMMUTATIVE, "recalculate"),
    lambda left, right: add(left, right),
    (0, 0),
)


class SliceMatrix:
    name = "slice_matrix"


@dataclass(frozen=True, slots=True)
class CellSide:
    """The cells of one side: those of group g are `lo[g] : hi[g]`, in order of `slices`, which count from `first`."""

    lo: Ints
    hi: Ints
    slices: Positions
    first: int
    width: int  # the number of slices of this side in the matrix
    outs: Ints  # what remains of each group in the result, as a number


@dataclass(frozen=True, slots=True)
class Rectangles:
    """Windows as rectangles of slices: rows `lo : hi`, columns `left : right`, each from the first of the matrix.

    Rectangles of one end lie side by side, `bounds[e] : bounds[e + 1]`, and ascend from their last `lo` to their first.
    """

    bounds: Ints
    lo: Positions
    hi: Positions
    left: Positions
    right: Positions

    def __len__(self) -> int:
        return len(self.lo)


def number_slices(starts: Ints, period: int) -> tuple[Ints, Positions]:
    """Return the distinct starts of cells in ascending order, and the place of each cell's start among them.

    All of them are a multiple of `period` apart.
    """
    if not len(starts):
        return starts, np.empty(0, np.int32)
    first = int(starts.min())
    most = (int(starts.max()) - first) // period + 1
    if most > max(_MOST_MARKS, 4 * len(starts)):
        ticks = np.unique(starts)
        return ticks, np.searchsorted(ticks, starts).astype(np.int32)
    places = np.empty(len(starts), np.int32)
    marks = np.zeros(most, np.int32)
    count = _number_slices(starts, first, period, marks, places)
    ticks = np.flatnonzero(marks)
    assert len(ticks) == count
    return first + ticks * period, places


#: Marks that are made for slices, however few of them there are.
_MOST_MARKS = 1 << 20


@compiled
def _number_slices(starts, first, period, marks, places):  # type: ignore[no-untyped-def]
    # Multiplying by the reciprocal of the period is off by less than a half, and faster than dividing.
    times = 1.0 / period
    for i in range(len(starts)):
        places[i] = np.int32(np.float64(starts[i] - first) * times + 0.5)
        marks[places[i]] = 1
    count = 0
    for i in range(len(marks)):
        if marks[i]:
            count += 1
            marks[i] = count
    if count < len(marks):
        for i in range(len(places)):
            places[i] = marks[places[i]] - 1
    return count


@compiled
def cells_between(bounds, slices, first, last, lo, hi):  # type: ignore[no-untyped-def]
    """Move `lo` and `hi` on to the cells of each group whose slices are `first : last`; both only move forward."""
    for group in range(len(bounds) - 1):
        end = bounds[group + 1]
        i = lo[group]
        while i < end and slices[i] < first:
            i += 1
        j = max(hi[group], i)
        while j < end and slices[j] < last:
            j += 1
        lo[group] = i
        hi[group] = j


def cell_stretches(
    pairs: tuple[Positions, Positions],
    fixed: CellSide,
    moving: CellSide,
    runs: Positions,
    bands: tuple[Positions, Positions],
    groups: NDArray[np.int32],
    *,
    is_swapped: bool,
) -> Iterator[Stretches]:
    """Yield cells that some window holds together: one of the fixed side with those of the moving side that follow.

    `pairs` are groups of both sides with one key. `bands` hold, for every slice of the fixed side, the slices of the
    moving side that are in a window with it. `groups` are the numbers of groups of the result, by what remains of both.
    With `is_swapped`, the fixed side is the child.
    """
    room = Stretches(*(np.empty(BLOCK_STRETCHES, np.int32) for _ in Stretches._fields))
    to_fixed, to_moving = (room.child, room.parent) if is_swapped else (room.parent, room.child)
    state = np.array([0, -1, 0, 0], np.int64)  # the next pair, its cell, where the cell's band begins, the cell there
    while state[0] < len(pairs[0]):
        count = _list_stretches(
            *pairs,
            *(fixed.lo, fixed.hi, fixed.slices, fixed.first, fixed.width, fixed.outs),
            *(moving.lo, moving.hi, moving.slices, moving.first, moving.width, moving.outs),
            runs,
            *bands,
            groups,
            state,
            *(to_fixed, to_moving, room.out, room.length),
        )
        if count:
            yield Stretches(*(column[:count] for column in room))


@compiled
def _list_stretches(  # type: ignore[no-untyped-def]
    groups_fixed, groups_moving, fixed_lo, fixed_hi, fixed_slices, fixed_first, fixed_width, fixed_outs,
    moving_lo, moving_hi, moving_slices, moving_first, moving_width, moving_outs, runs, band_lo, band_hi, numbers,
    state, to_fixed, to_moving, to_out, to_length,
):  # fmt: skip
    """List stretches from where the last call stopped until there is no room; return their number."""
    pair, i, begin, j = state
    count = 0
    room = len(to_fixed)
    while pair < len(groups_fixed):
        group_fixed, group_moving = groups_fixed[pair], groups_moving[pair]
        last_i, last_j = fixed_hi[group_fixed], moving_hi[group_moving]
        if i < 0:
            i, begin = fixed_lo[group_fixed], moving_lo[group_moving]
            j = begin
        base = np.int64(numbers[fixed_outs[group_fixed], moving_outs[group_moving]]) * fixed_width
        while i < last_i:
            own = np.int64(fixed_slices[i]) - fixed_first
            low, high = band_lo[own] + moving_first, band_hi[own] + moving_first
            while begin < last_j and moving_slices[begin] < low:
                begin += 1
            j = max(j, begin)
            row = (base + own) * moving_width - moving_first
            while j < last_j and moving_slices[j] < high:
                if count == room:
                    state[0], state[1], state[2], state[3] = pair, i, begin, j
                    return count
                length = min(np.int64(runs[j]), last_j - j, high - moving_slices[j])
                to_fixed[count] = i
                to_moving[count] = j
                to_out[count] = row + moving_slices[j]
                to_length[count] = length
                count += 1
                j += length
            i += 1
            j = begin
        pair += 1
        i = np.int64(-1)
    state[0], state[1], state[2], state[3] = pair, i, begin, j
    return count


# ---- rectangles -----------------------------------------------------------------------------------------------------


def sum_rectangles(numbers: AddInt | Int128, shape: tuple[int, int, int], rectangles: Rectangles) -> AddInt | Int128:
    """Return sums of integers over rectangles, group by group: four look-ups in running totals if these are exact."""
    groups, rows, columns = shape
    corners = (rectangles.lo, rectangles.hi, rectangles.left, rectangles.right)
    if isinstance(numbers, AddInt) and float(np.abs(numbers.value.astype(np.float64)).sum()) < 2.0**62:
        totals = np.zeros((groups, rows + 1, columns + 1), np.int64)
        _add_up(numbers.value.reshape(shape), totals)
        out = np.empty(groups * len(rectangles), np.int64)
        _look_up(totals, *corners, out)
        return AddInt(out)
    wide = widened(numbers)
    # Numbers of 128 bits wrap around, and so do their totals: differences are right if sums fit.
    largest = float(np.abs(wide.high.astype(np.float64)).max(initial=0.0)) + 1.0
    if (wide.high == BEYOND).any() or largest * rows * columns >= 2.0**62:
        noticing: Int128 = combine_rectangles(wide, shape, rectangles)
        return noticing
    high, low = (np.zeros((groups, rows + 1, columns + 1), kind) for kind in (np.int64, np.uint64))
    _add_up_wide(wide.high.reshape(shape), wide.low.reshape(shape), high, low)
    sums = zero_wide(groups * len(rectangles))
    _look_up_wide(high, low, *corners, sums.high, sums.low)
    return narrowed(sums)


@compiled
def _add_up(values, totals):  # type: ignore[no-untyped-def]
    groups, rows, columns = values.shape
    for group in range(groups):
        for row in range(rows):
            along = np.int64(0)
            for column in range(columns):
                along += values[group, row, column]
                totals[group, row + 1, column + 1] = totals[group, row, column + 1] + along


@compiled
def _look_up(totals, lo, hi, left, right, out):  # type: ignore[no-untyped-def]
    count = len(lo)
    for group in range(totals.shape[0]):
        for i in range(count):
            inside = totals[group, hi[i], right[i]] - totals[group, lo[i], right[i]]
            out[group * count + i] = inside - totals[group, hi[i], left[i]] + totals[group, lo[i], left[i]]


@compiled
def _plus(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    total = low + other_low
    return high + other_high + np.int64(total < low), total


@compiled
def _minus(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    return high - other_high - np.int64(low < other_low), low - other_low


@compiled
def _add_up_wide(values_high, values_low, high, low):  # type: ignore[no-untyped-def]
    groups, rows, columns = values_high.shape
    for group in range(groups):
        for row in range(rows):
            along = np.int64(0), np.uint64(0)
            for column in range(columns):
                along = _plus(*along, values_high[group, row, column], values_low[group, row, column])
                total = _plus(*along, high[group, row, column + 1], low[group, row, column + 1])
                high[group, row + 1, column + 1], low[group, row + 1, column + 1] = total


@compiled
def _look_up_wide(high, low, lo, hi, left, right, out_high, out_low):  # type: ignore[no-untyped-def]
    count = len(lo)
    for group in range(high.shape[0]):
        for i in range(count):
            inside = high[group, hi[i], right[i]], low[group, hi[i], right[i]]
            inside = _minus(*inside, high[group, lo[i], right[i]], low[group, lo[i], right[i]])
            inside = _minus(*inside, high[group, hi[i], left[i]], low[group, hi[i], left[i]])
            inside = _plus(*inside, high[group, lo[i], left[i]], low[group, lo[i], left[i]])
            out_high[group * count + i], out_low[group * count + i] = inside


def combine_rectangles(values: Columns, shape: tuple[int, int, int], rectangles: Rectangles) -> Any:
    """Return values of any family, combined over rectangles, group by group; nothing is ever removed."""
    out = empty_like(values, shape[0] * len(rectangles))
    corners = (rectangles.bounds, rectangles.lo, rectangles.hi, rectangles.left, rectangles.right)
    _combine(values, *shape, *corners, out)
    return out


@compiled
def _combine(values, groups, rows, columns, bounds, lo, hi, left, right, out):  # type: ignore[no-untyped-def]
    """Go backwards from the last slice of both sides, so that larger rectangles of an end continue smaller ones."""
    count = len(lo)
    row_values = like(values, columns)
    for group in range(groups):
        for end in range(len(bounds) - 1):
            first, last = bounds[end], bounds[end + 1]
            if first == last:
                continue
            least = left[first]
            for i in range(first, last):
                least = min(least, left[i])
            stop, width = right[first], right[first] - least
            for place in range(width):
                store(row_values, place, identity(values))
            i = first
            for row in range(hi[first] - 1, lo[last - 1] - 1, -1):
                along = identity(values)
                at = (group * rows + row) * columns + stop - 1
                for place in range(width):
                    along = combine(along, load(values, at - place))
                    store(row_values, place, combine(load(row_values, place), along))
                while i < last and lo[i] == row:
                    store(out, group * count + i, load(row_values, stop - 1 - left[i]))
                    i += 1
