"""Which cells does each window cover: two cursors over sorted slice starts, for all queries and groups at once.

Cells of one group lie side by side in order of slice start. Window edges are slice edges, so a window is a run
`[lo, hi)` of its group's cells. Windows without cells are skipped, never visited: the work is proportional to rows
and cells, and sparse and dense data take the same path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiled import compiled

Ints = NDArray[np.int64]
Positions = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class WindowArrays:
    """Ranges, slides and offsets of a tree's queries, in ticks."""

    ranges: Ints
    slides: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.ranges)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Rows to answer: lane `query · groups + group` holds rows `bounds[lane] : bounds[lane + 1]`, windows ascending.

    Row i covers cells `lo[i] : hi[i]`; `tail[i]`, where there are marks, is the mark whose running value completes it.
    """

    bounds: Ints
    window_start: Ints
    lo: Positions
    hi: Positions
    tail: Positions

    def __len__(self) -> int:
        return len(self.lo)


def locate(
    starts: Ints,
    group_bounds: Ints,
    windows: WindowArrays,
    after: int | Ints,
    until: int,
    marks: tuple[Ints, Ints, Positions],
) -> Lanes:
    """Lanes of every (query, group), for windows that end in `(after, until]`; `after` is one tick, or one a query.

    `marks` = (starts of the marked cells, their group bounds, the cell each lies in); three empty arrays without marks.
    """
    queries, groups = len(windows), len(group_bounds) - 1
    if len(starts) >= 2**31 or len(marks[0]) >= 2**31:
        raise OverflowError("a block holds at most 2**31 cells")
    counts = np.zeros(queries * groups + 1, np.int64)
    no_ints, no_positions = np.empty(0, np.int64), np.empty(0, np.int32)
    _walk = _walk_marks if len(marks[0]) else _walk_cells
    after_each = np.array(np.broadcast_to(np.asarray(after, np.int64), (queries,)))
    arguments = (starts, group_bounds, *marks, windows.ranges, windows.slides, windows.offsets, after_each, until)
    _walk(*arguments, True, counts, no_ints, no_positions, no_positions, no_positions)
    bounds = np.cumsum(counts)
    rows = int(bounds[-1])
    lanes = Lanes(
        bounds,
        np.empty(rows, np.int64),
        np.empty(rows, np.int32),
        np.empty(rows, np.int32),
        np.empty(rows if len(marks[0]) else 0, np.int32),
    )
    _walk(*arguments, False, bounds, lanes.window_start, lanes.lo, lanes.hi, lanes.tail)
    return lanes


@compiled
def _seek(starts, position, end, target, guess):  # type: ignore[no-untyped-def]
    """First index from `position` on whose start is at or past `target`; `guess` is how far it was last time."""
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
def _walk_cells(  # type: ignore[no-untyped-def]
    starts, group_bounds, mark_starts, mark_bounds, mark_cell,
    ranges, slides, offsets, after, until, counting, lanes, window_start, lo, hi, tail,
):  # fmt: skip
    groups = len(group_bounds) - 1
    for query in range(len(ranges)):
        length, slide, offset = ranges[query], slides[query], offsets[query]
        last = (until - offset - length) // slide
        earliest = (after[query] - offset - length) // slide + 1
        for group in range(groups):
            begin, end = group_bounds[group], group_bounds[group + 1]
            lane = query * groups + group
            row = np.int64(0) if counting else lanes[lane]
            if begin < end:
                index = max(earliest, (starts[begin] - offset - length) // slide + 1)
                left = begin
                right = begin
                left_step = np.int64(1)
                right_step = np.int64(1)
                while index <= last:
                    opens = index * slide + offset
                    moved = _seek(starts, left, end, opens, left_step)
                    left_step = moved - left
                    left = moved
                    if left >= end:
                        break
                    if right < left:
                        right = left
                    moved = _seek(starts, right, end, opens + length, right_step)
                    right_step = moved - right
                    right = moved
                    if left < right:
                        if not counting:
                            window_start[row] = opens
                            lo[row] = left
                            hi[row] = right
                        row += 1
                        index += 1
                    else:
                        # Nothing in this window: on to the first one that reaches the next cell.
                        index = max(index + 1, (starts[left] - offset - length) // slide + 1)
            if counting:
                lanes[lane + 1] = row


@compiled
def _walk_marks(  # type: ignore[no-untyped-def]
    starts, group_bounds, mark_starts, mark_bounds, mark_cell,
    ranges, slides, offsets, after, until, counting, lanes, window_start, lo, hi, tail,
):  # fmt: skip
    # The window's last cell may be cut by its end: whole cells up to it, then that cell's running value at the end.
    groups = len(group_bounds) - 1
    for query in range(len(ranges)):
        length, slide, offset = ranges[query], slides[query], offsets[query]
        last = (until - offset - length) // slide
        earliest = (after[query] - offset - length) // slide + 1
        for group in range(groups):
            begin, end = group_bounds[group], group_bounds[group + 1]
            mark_begin, mark_end = mark_bounds[group], mark_bounds[group + 1]
            lane = query * groups + group
            row = np.int64(0) if counting else lanes[lane]
            if begin < end:
                index = max(earliest, (mark_starts[mark_begin] - offset - length) // slide + 1)
                left = begin
                right = mark_begin
                while index <= last:
                    opens = index * slide + offset
                    left = _seek(starts, left, end, opens, 1)
                    if left >= end:
                        break
                    right = _seek(mark_starts, right, mark_end, opens + length, 1)
                    if right > mark_begin and mark_starts[right - 1] >= opens:
                        if not counting:
                            window_start[row] = opens
                            lo[row] = left
                            hi[row] = mark_cell[right - 1]
                            tail[row] = right - 1
                        row += 1
                        index += 1
                    else:
                        index = max(index + 1, (mark_starts[right] - offset - length) // slide + 1)
            if counting:
                lanes[lane + 1] = row
