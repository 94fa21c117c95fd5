"""Grouped updates: kernels that fold a column of chosen tuples into their cells, one kernel per way to combine.

`rows` names the chosen tuples in ascending order; with `every`, all tuples are chosen and `rows` is not read.
`cells` has the cell of every tuple of the block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windloom.kernels.compiling import compiled
from windloom.kernels.families import combine, load, store
from windloom.kernels.tuples.columns import Column
from windloom.kernels.tuples.slices import count_sort
from windloom.model.arrays import Codes, Ints

#: Below this magnitude a double has a finite 24-bit head, as in the native sums.
_HEAD_LIMIT = 1e38


@compiled
def count_rows(cells, rows, every, count):  # type: ignore[no-untyped-def]
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        count[np.uint32(cells[i])] += 1


@compiled
def sum_values(cells, rows, every, values, total):  # type: ignore[no-untyped-def]
    """Sum doubles, or integers with so few bits that no sum of a block can overflow."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        total[np.uint32(cells[i])] += values[i]


@compiled
def sum_halves(cells, rows, every, values, high, low):  # type: ignore[no-untyped-def]
    """Sum 64-bit values in halves of 32 bits, so that no sum can overflow unnoticed."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        high[cell] += values[i] >> 32
        low[cell] += values[i] & 0xFFFFFFFF


@compiled
def sum_floats(cells, rows, every, values, high, low):  # type: ignore[no-untyped-def]
    """Sum 24-bit heads and remainders separately, so that equal magnitudes add up without rounding."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        value = values[i]
        head = np.float64(np.float32(value)) if abs(value) < _HEAD_LIMIT else value
        high[cell] += head
        if abs(value) < _HEAD_LIMIT:
            low[cell] += value - head


@compiled
def sum_limbs(cells, rows, every, limbs, first, second, third, fourth):  # type: ignore[no-untyped-def]
    """Sum decimals word by word; the highest word is signed."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        first[cell] += np.int64(limbs[i, 0])
        second[cell] += np.int64(limbs[i, 1])
        third[cell] += np.int64(limbs[i, 2])
        fourth[cell] += np.int64(np.int32(limbs[i, 3]))


@compiled
def keep_largest(cells, rows, every, keys, largest):  # type: ignore[no-untyped-def]
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        if keys[i] > largest[cell]:
            largest[cell] = keys[i]


@compiled
def keep_smallest(cells, rows, every, keys, largest):  # type: ignore[no-untyped-def]
    """Keep the smallest value, reversed, because the family keeps the largest."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        reverse = ~keys[i]
        if reverse > largest[cell]:
            largest[cell] = reverse


@compiled
def add_squares(cells, rows, every, values, mean, square):  # type: ignore[no-untyped-def]
    """Add squared deviations from the mean, which a first pass has found."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        apart = values[i] - mean[cell]
        square[cell] += apart * apart


@compiled
def fold_values(cells, rows, every, values, out):  # type: ignore[no-untyped-def]
    """Combine the values of any family; `values` has one per tuple, `out` a neutral one per cell."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        store(out, cells[i], combine(load(out, cells[i]), load(values, i)))


@compiled
def pick_rows(cells, rows, every, by, known, values, lowest, picked):  # type: ignore[no-untyped-def]
    """Pick the tuple whose `by` is highest, or lowest; among equals the value decides, and NULL is below all values.

    `picked` is -1 if there is none yet; `known` is empty if every tuple has a value.
    """
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        best = picked[cell]
        if best < 0:
            picked[cell] = i
            continue
        order = np.int64(by[i] > by[best]) - np.int64(by[i] < by[best])
        if order == 0 and len(known):
            order = np.int64(known[i]) - np.int64(known[best])
        if order == 0 and (not len(known) or known[i]):
            order = np.int64(values[i] > values[best]) - np.int64(values[i] < values[best])
        if order < 0 if lowest else order > 0:
            picked[cell] = i


# The pairs of two columns in order, by which picks compare tuples; made once for all sets if that is cheap.


@dataclass(frozen=True, slots=True)
class RankedPairs:
    """The rank of every tuple's pair among the distinct pairs, and for each rank a tuple that has its pair.

    Tuples without the first value of the pair have an undefined rank.
    """

    ranks: Ints
    rows: Ints


def ascending_pairs(by: Column) -> RankedPairs | None:
    """Return pairs whose first values ascend tuple by tuple, so that the second never decide; None if they do not."""
    if by.valid is not None or not len(by) or not _ascends(by.equal_keys):
        return None
    rows = np.arange(len(by), dtype=np.int64)
    return RankedPairs(rows, rows)


def rank_pairs(by: Column, value: Column, rows: Codes, every: bool) -> RankedPairs:
    """Return the ranked pairs of the chosen tuples; if the first values are equal, NULL is below all second ones."""
    values = value.ranked.ranks + np.int32(1)
    if value.valid is not None:
        values[~value.valid] = 0
    chosen = len(by) if every else len(rows)
    ranks, firsts = np.empty(len(by), np.int64), np.empty(chosen, np.int64)
    by_value, in_order = np.empty(chosen, np.int32), np.empty(chosen, np.int32)
    count_sort(rows, every, values, len(value.ranked.dictionary) + 1, by_value)
    count_sort(by_value, False, by.ranked.ranks, len(by.ranked.dictionary), in_order)
    count = _number_pairs(in_order, by.ranked.ranks, values, ranks, firsts)
    return RankedPairs(ranks, firsts[:count])


@compiled
def _ascends(keys):  # type: ignore[no-untyped-def]
    back = 0
    for i in range(1, len(keys)):
        back += keys[i] <= keys[i - 1]
    return back == 0


@compiled
def _number_pairs(rows, firsts, seconds, ranks, row_of):  # type: ignore[no-untyped-def]
    count = 0
    for k in range(len(rows)):
        i = np.uint32(rows[k])
        before = np.uint32(rows[k - 1] if k else rows[k])
        if k == 0 or firsts[i] != firsts[before] or seconds[i] != seconds[before]:
            row_of[count] = i
            count += 1
        ranks[i] = count - 1
    return count
