"""Moves along sorted slice starts: to the next one at or after a tick, or along the ends of windows that grow."""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiling.compiled import compiled

#: Stands for no landmark: the windows of the query begin one range before they end.
NO_LANDMARK = -(2**63)


@compiled
def seek(starts, position, end, target, guess):  # type: ignore[no-untyped-def]
    """The first index from `position` on whose start is at or after `target`; `guess` is the last distance."""
    if position >= end or starts[position] >= target:
        return position
    near = position + guess
    if near > position and near <= end and starts[near - 1] < target:
        if near == end or starts[near] >= target:
            return near
        position = near
    step = 1
    low = position  # starts[low] < target
    high = position + 1
    while high < end and starts[high] < target:
        low = high
        step *= 2
        high = low + step
    if high > end:
        high = end
    low += 1
    while low < high:
        middle = (low + high) // 2
        if starts[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _write_growing(  # type: ignore[no-untyped-def]
    fine_starts, right, fine_end, mark_cell, slide, offset, index, last, left, row, window_start, lo, hi, tail
):  # fmt: skip
    """Writes a row for each stretch from `index` to `last`, all beginning at `left`; returns the next row and cell."""
    step = np.int64(1)
    for stretch in range(index, last + 1):
        opens = stretch * slide + offset
        moved = seek(fine_starts, right, fine_end, opens + slide, step)
        step = moved - right
        right = moved
        window_start[row] = opens
        lo[row] = left
        if len(tail):
            hi[row] = mark_cell[right - 1]
            tail[row] = right - 1
        else:
            hi[row] = right
        row += 1
    return row, right


@compiled
def walk_landmark(  # type: ignore[no-untyped-def]
    starts, begin, end, fine_starts, fine_begin, fine_end, mark_cell, slide, offset, landmark, earliest, last,
    counting, row, window_start, lo, hi, tail,
):  # fmt: skip
    """The rows of one lane whose windows all begin at the landmark: one for every end after its first cell.

    With marks, the fine cells are the marked ones; otherwise they are the cells themselves.
    """
    first = seek(fine_starts, fine_begin, fine_end, landmark, 1)
    if first >= fine_end:
        return row
    index = max(earliest, (fine_starts[first] - offset) // slide)
    if counting:
        return row + max(np.int64(0), last - index + 1)
    left = seek(starts, begin, end, landmark, 1)
    row, _ = _write_growing(
        fine_starts, first, fine_end, mark_cell, slide, offset, index, last, left, row, window_start, lo, hi, tail
    )
    return row


@compiled
def walk_periods(  # type: ignore[no-untyped-def]
    starts, begin, end, fine_starts, fine_begin, fine_end, mark_cell, slide, offset, stretches, earliest, last,
    counting, row, window_start, lo, hi, tail,
):  # fmt: skip
    """The rows of one lane whose windows restart every so many stretches: in every period from its first cell on.

    Fine cells are those of `walk_landmark`.
    """
    left, right = np.int64(begin), np.int64(fine_begin)
    if right >= fine_end:
        return row
    index = max(earliest, (fine_starts[right] - offset) // slide)
    while index <= last:
        right = seek(fine_starts, right, fine_end, (index - index % stretches) * slide + offset, 1)
        if right >= fine_end:
            break
        own = (fine_starts[right] - offset) // slide  # of the first cell of the period, or of a later one
        index = max(index, own)
        stop = min(last, own - own % stretches + stretches - 1)
        if counting:
            row += max(np.int64(0), stop - index + 1)
            index = stop + 1
            continue
        left = seek(starts, left, end, (own - own % stretches) * slide + offset, 1)
        row, right = _write_growing(
            fine_starts, right, fine_end, mark_cell, slide, offset, index, stop, left, row, window_start, lo, hi, tail
        )
        index = stop + 1
    return row
