"""Grouped updates: kernels that fold a column of chosen tuples into their cells, one kernel per way to combine.

`rows` names the chosen tuples in ascending order; with `every`, all tuples are chosen and `rows` is not read.
`cells` has the cell of every tuple of the block.
"""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.families.algebra import combine, load, store

#: Below this magnitude a double has a finite 24-bit head, as in the native sums.
_HEAD_LIMIT = 1e38


@compiled
def count_rows(cells, rows, every, count):  # type: ignore[no-untyped-def]
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        count[np.uint32(cells[i])] += 1


@compiled
def sum_values(cells, rows, every, values, total):  # type: ignore[no-untyped-def]
    """Sums doubles, or integers with so few bits that no sum of a block can overflow."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        total[np.uint32(cells[i])] += values[i]


@compiled
def sum_halves(cells, rows, every, values, high, low):  # type: ignore[no-untyped-def]
    """Sums 64-bit values in halves of 32 bits, so that no sum can overflow unnoticed."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        high[cell] += values[i] >> 32
        low[cell] += values[i] & 0xFFFFFFFF


@compiled
def sum_floats(cells, rows, every, values, high, low):  # type: ignore[no-untyped-def]
    """Sums 24-bit heads and remainders separately, so that equal magnitudes add up without rounding."""
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
    """Sums decimals word by word; the highest word is signed."""
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
    """Keeps the smallest value, reversed, because the family keeps the largest."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        reverse = ~keys[i]
        if reverse > largest[cell]:
            largest[cell] = reverse


@compiled
def add_squares(cells, rows, every, values, mean, square):  # type: ignore[no-untyped-def]
    """Adds squared deviations from the mean, which a first pass has found."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        apart = values[i] - mean[cell]
        square[cell] += apart * apart


@compiled
def fold_values(cells, rows, every, values, out):  # type: ignore[no-untyped-def]
    """Combines the values of any family; `values` has one per tuple, `out` a neutral one per cell."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        store(out, cells[i], combine(load(out, cells[i]), load(values, i)))


@compiled
def pick_rows(cells, rows, every, by, known, values, lowest, picked):  # type: ignore[no-untyped-def]
    """Picks the tuple whose `by` is highest, or lowest; among equals the value decides, and NULL is below all values.

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
