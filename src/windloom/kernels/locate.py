"""The cells that each window covers, found by two cursors over sorted slice starts, for all queries and groups at once.

Cells of one group lie side by side in order of slice start. Window edges are slice edges, so a window is a run
`[lo, hi)` of its group's cells. Windows without cells are skipped, never visited, so the work is proportional to rows
and cells. If cells are evenly spaced, edges move by the same number of cells row after row, and runs of rows are
written as arithmetic progressions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from windloom.kernels.compiling import compiled, new_array
from windloom.kernels.lanes import NO_LANDMARK, seek, walk_landmark, walk_periods
from windloom.model.arrays import Ints, Positions

#: Runs of at least this many rows are noted.
LONG_RUN = 64
#: Rows are taken one by one where evenly spaced cells are fewer than this on average, and nowhere enough for a run.
SHORT_STRETCH = 16
#: Up to this many cells per slide, looking at each of them takes less time than searching among them.
FEW_CELLS = 32
#: Below this many ticks, 35 years, a quotient by a slide is the floor of the product with its reciprocal.
EXACT_TICKS = 1 << 50


@dataclass(frozen=True, slots=True)
class WindowArrays:
    """Ranges, slides and offsets of a tree's queries, in ticks.

    All windows of a query with a landmark begin there; those of a query with a period restart at every
    `k·period + offset` (0 stands for no period). The range of both is their slide, and a row is identified by the
    stretch `[end - slide, end)` that is new in its window.
    """

    ranges: Ints
    slides: Ints
    offsets: Ints
    landmarks: Ints | None = None
    periods: Ints | None = None

    def __len__(self) -> int:
        return len(self.ranges)

    @property
    def landmark_queries(self) -> Ints:
        """The positions of the queries that have a landmark."""
        return np.flatnonzero(self.every_landmark != NO_LANDMARK)

    @property
    def every_landmark(self) -> Ints:
        return np.full(len(self), NO_LANDMARK, np.int64) if self.landmarks is None else self.landmarks

    @property
    def periodic_queries(self) -> Ints:
        """The positions of the queries whose windows restart."""
        return np.flatnonzero(self.every_period)

    @property
    def every_period(self) -> Ints:
        return np.zeros(len(self), np.int64) if self.periods is None else self.periods


@dataclass(frozen=True, slots=True)
class Lanes:
    """Rows to answer: lane `query · groups + group` holds rows `bounds[lane] : bounds[lane + 1]`, windows ascending.

    Row i covers cells `lo[i] : hi[i]`; with marks, `tail[i]` is the mark whose running value completes it.
    In rows `runs[0] : runs[1]`, `runs[2] : runs[3]` and so on, each within a lane, every window lies one cell further
    than the one before it. Only long runs are noted, and only if they are known; other windows may also do so.
    """

    bounds: Ints
    window_start: Ints
    lo: Positions
    hi: Positions
    tail: Positions
    runs: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.lo)


def locate(
    starts: Ints,
    group_bounds: Ints,
    windows: WindowArrays,
    after: int | Ints,
    until: int | Ints,
    marks: tuple[Ints, Ints, Positions],
    span: tuple[Ints, Ints] | None = None,
) -> Lanes:
    """Return the lanes of every (query, group), for windows that end in `(after, until]`: one tick, or one per query.

    `span` narrows both bounds per group.
    `marks` = (starts of the marked cells, their group bounds, the cell each lies in); three empty arrays if there
    are no marks.
    """
    queries, groups = len(windows), len(group_bounds) - 1
    if len(starts) >= 2**31 or len(marks[0]) >= 2**31:
        raise OverflowError("a block holds at most 2**31 cells")
    counts = np.zeros(queries * groups + 1, np.int64)
    no_ints, no_positions = np.empty(0, np.int64), np.empty(0, np.int32)
    _walk = _walk_marks if len(marks[0]) else _walk_cells
    after_each, until_each = (
        np.array(np.broadcast_to(np.asarray(ticks, np.int64), (queries,))) for ticks in (after, until)
    )
    lengths = (windows.ranges, windows.slides, windows.offsets, windows.every_landmark, windows.every_period)
    if span is None:
        span = (np.full(groups, np.iinfo(np.int64).min), np.full(groups, np.iinfo(np.int64).max))
    arguments = (starts, group_bounds, *marks, *lengths, after_each, until_each, *span)
    _walk(*arguments, True, counts, no_ints, no_positions, no_positions, no_positions, no_ints)
    bounds = np.cumsum(counts)
    rows = int(bounds[-1])
    window_start, lo, hi = new_array(rows, np.int64), new_array(rows, np.int32), new_array(rows, np.int32)
    tail = new_array(rows if len(marks[0]) else 0, np.int32)
    runs = new_array(rows // LONG_RUN * 2, np.int64)  # the largest possible number
    noted = _walk(*arguments, False, bounds, window_start, lo, hi, tail, runs)
    return Lanes(bounds, window_start, lo, hi, tail, runs[:noted])


@compiled
def _even_until(starts, group_bounds):  # type: ignore[no-untyped-def]
    """For each cell, the last one of its group up to which cells are evenly spaced; both count from the first group.

    Also, for each group, whether that is so for a few cells at a time only.
    """
    base = group_bounds[0]
    until = np.empty(group_bounds[-1] - base, np.int32)
    is_uneven = np.empty(len(group_bounds) - 1, np.bool_)
    for group in range(len(group_bounds) - 1):
        begin, end = group_bounds[group], group_bounds[group + 1]
        stretches = longest = np.int64(0)
        for cell in range(end - 1, begin - 1, -1):
            even = cell + 2 < end and starts[cell + 1] - starts[cell] == starts[cell + 2] - starts[cell + 1]
            until[cell - base] = until[cell + 1 - base] if even else min(cell + 1, end - 1) - base
            stretches += not even
            longest = max(longest, until[cell - base] - (cell - base))
        is_uneven[group] = longest < LONG_RUN and stretches * SHORT_STRETCH > end - begin
    return until, is_uneven


@compiled
def _even_steps(starts, even, base, position, end, target, slide):  # type: ignore[no-untyped-def]
    """Return the number of further rows in which an edge moves by the same number of cells, and that number of cells.

    `target` moves by `slide`.
    """
    if position == end:
        return np.int64(2**62), np.int64(0)
    ahead = starts[position] - target
    if ahead >= slide:
        return ahead // slide, np.int64(0)
    until = even[position - base] + base
    if until == position:
        return np.int64(0), np.int64(0)
    apart = starts[position + 1] - starts[position]
    cells = np.int64(1) if apart == slide else slide // apart
    if cells * apart != slide or ahead >= apart:
        return np.int64(0), np.int64(0)
    return (until - position) // cells, cells


@compiled
def _write_run(opens, slide, left, left_cells, right, right_cells, window_start, lo, hi):  # type: ignore[no-untyped-def]
    """Write rows in arithmetic progression, in three loops because each of them compiles to vector code."""
    for i in range(len(window_start)):
        window_start[i] = opens + i * slide
    for i in range(len(lo)):
        lo[i] = np.int32(left) + np.int32(i) * np.int32(left_cells)
    for i in range(len(hi)):
        hi[i] = np.int32(right) + np.int32(i) * np.int32(right_cells)


@compiled
def _walk_cells(  # type: ignore[no-untyped-def]
    starts, group_bounds, mark_starts, mark_bounds, mark_cell,
    ranges, slides, offsets, landmarks, periods, after, until, group_after, group_until,
    counting, lanes, window_start, lo, hi, tail, runs,
):  # fmt: skip
    """Count the rows of each lane, or writes every row and the runs. Returns how many entries of `runs` are filled."""
    groups = len(group_bounds) - 1
    noted = np.int64(0)
    base = group_bounds[0]
    even, is_uneven = _even_until(starts, group_bounds)
    for query in range(len(ranges)):
        length, slide, offset = ranges[query], slides[query], offsets[query]
        for group in range(groups):
            last = (min(until[query], group_until[group]) - offset - length) // slide
            earliest = (max(after[query], group_after[group]) - offset - length) // slide + 1
            lane = query * groups + group
            begin, end = group_bounds[group], group_bounds[group + 1]
            row = np.int64(0) if counting else lanes[lane]
            if landmarks[query] != NO_LANDMARK:
                row = walk_landmark(
                    starts, begin, end, starts, begin, end, mark_cell, slide, offset, landmarks[query], earliest, last,
                    counting, row, window_start, lo, hi, tail,
                )  # fmt: skip
            elif periods[query] > 0:
                row = walk_periods(
                    starts, begin, end, starts, begin, end, mark_cell, slide, offset, periods[query] // slide,
                    earliest, last, counting, row, window_start, lo, hi, tail,
                )  # fmt: skip
            elif begin < end:
                index = max(earliest, (starts[begin] - offset - length) // slide + 1)
                span = starts[end - 1] - starts[begin]
                if is_uneven[group] and counting and starts[end - 1] - (index * slide + offset) < EXACT_TICKS:
                    row = _count_lane(starts, begin, end, length, slide, offset, index, last)
                elif is_uneven[group] and float(slide) * (end - begin) < FEW_CELLS * float(span):
                    row = _walk_sparse(
                        starts, begin, end, length, slide, offset, index, last, counting, row, window_start, lo, hi
                    )
                else:
                    row, noted = _walk_lane(
                        starts, even, base, begin, end, length, slide, offset, index, last,
                        counting, row, window_start, lo, hi, runs, noted,
                    )  # fmt: skip
            if counting:
                lanes[lane + 1] = row
    return noted


@compiled
def _count_lane(starts, begin, end, length, slide, offset, index, last):  # type: ignore[no-untyped-def]
    """Return the number of rows of a lane, from its cells alone: each adds the windows that hold it and no cell before.

    Nothing is divided: ticks are few enough for products with the reciprocal, at half a tick, to be exact.
    """
    rows = following = np.int64(0)  # windows are counted from `index` on
    first, count, per_slide = index * slide + offset, last - index + 1, 1.0 / slide
    for cell in range(begin, end):
        since = starts[cell] - first
        opened = min(np.int64(np.floor((since + 0.5) * per_slide)) + 1, count)
        closed = np.int64(np.floor((since - length + 0.5) * per_slide)) + 1
        rows += max(np.int64(0), opened - max(closed, following))
        following = max(following, opened)
    return rows


@compiled
def _walk_sparse(starts, begin, end, length, slide, offset, index, last, counting, row, window_start, lo, hi):  # type: ignore[no-untyped-def]
    """Walk the rows of a lane with few cells per slide: both edges move from cell to cell."""
    left = right = np.int64(begin)
    opens, latest = index * slide + offset, last * slide + offset
    while opens <= latest:
        while left < end and starts[left] < opens:
            left += 1
        if left == end:
            break
        right = max(right, left)
        while right < end and starts[right] < opens + length:
            right += 1
        if left == right:
            # This window is empty: continue with the first one that reaches the next cell.
            opens += ((starts[left] - length - opens) // slide + 1) * slide
            continue
        if not counting:
            window_start[row] = opens
            lo[row] = left
            hi[row] = right
        row += 1
        opens += slide
    return row


@compiled
def _walk_lane(  # type: ignore[no-untyped-def]
    starts, even, base, begin, end, length, slide, offset, index, last, counting, row, window_start, lo, hi, runs, noted
):  # fmt: skip
    """Walk the rows of one lane, a run at a time if cells are evenly spaced; return the row after them, and `noted`."""
    left = right = np.int64(begin)
    left_step = right_step = np.int64(1)
    alone = np.int64(0)  # rows to take one by one, after an attempt at a run has failed
    while index <= last:
        opens = index * slide + offset
        moved = seek(starts, left, end, opens, left_step)
        left_step = moved - left
        left = moved
        if left >= end:
            break
        right = max(right, left)
        moved = seek(starts, right, end, opens + length, right_step)
        right_step = moved - right
        right = moved
        if left == right:
            # This window is empty: continue with the first one that reaches the next cell.
            index = max(index + 1, (starts[left] - offset - length) // slide + 1)
            continue
        more = np.int64(0)
        left_cells = right_cells = np.int64(0)
        if alone > 0:
            alone -= 1
        else:
            more, left_cells = _even_steps(starts, even, base, left, end, opens, slide)
            others, right_cells = _even_steps(starts, even, base, right, end, opens + length, slide)
            more = min(more, others, last - index)
            if left_cells > right_cells:
                more = min(more, (right - left - 1) // (left_cells - right_cells))
            alone = np.int64(8 if more < 2 else 0)
        if not counting:
            rows = slice(row, row + more + 1)
            _write_run(opens, slide, left, left_cells, right, right_cells, window_start[rows], lo[rows], hi[rows])
            if more + 1 >= LONG_RUN and left_cells == 1 and right_cells == 1:
                runs[noted], runs[noted + 1] = row, row + more + 1
                noted += 2
        left += more * left_cells
        right += more * right_cells
        row += more + 1
        index += more + 1
    return row, noted


@compiled
def _walk_marks(  # type: ignore[no-untyped-def]
    starts, group_bounds, mark_starts, mark_bounds, mark_cell,
    ranges, slides, offsets, landmarks, periods, after, until, group_after, group_until,
    counting, lanes, window_start, lo, hi, tail, runs,
):  # fmt: skip
    # The end of the window may cut its last cell: take whole cells up to it, then that cell's running value at the end.
    groups = len(group_bounds) - 1
    for query in range(len(ranges)):
        length, slide, offset = ranges[query], slides[query], offsets[query]
        for group in range(groups):
            last = (min(until[query], group_until[group]) - offset - length) // slide
            earliest = (max(after[query], group_after[group]) - offset - length) // slide + 1
            begin, end = group_bounds[group], group_bounds[group + 1]
            mark_begin, mark_end = mark_bounds[group], mark_bounds[group + 1]
            lane = query * groups + group
            row = np.int64(0) if counting else lanes[lane]
            if landmarks[query] != NO_LANDMARK:
                row = walk_landmark(
                    starts, begin, end, mark_starts, mark_begin, mark_end, mark_cell, slide, offset, landmarks[query],
                    earliest, last, counting, row, window_start, lo, hi, tail,
                )  # fmt: skip
            elif periods[query] > 0:
                row = walk_periods(
                    starts, begin, end, mark_starts, mark_begin, mark_end, mark_cell, slide, offset,
                    periods[query] // slide, earliest, last, counting, row, window_start, lo, hi, tail,
                )  # fmt: skip
            elif begin < end:
                index = max(earliest, (mark_starts[mark_begin] - offset - length) // slide + 1)
                left = begin
                right = mark_begin
                while index <= last:
                    opens = index * slide + offset
                    left = seek(starts, left, end, opens, 1)
                    if left >= end:
                        break
                    right = seek(mark_starts, right, mark_end, opens + length, 1)
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
    return 0


def sliding_lanes(cells: int, lengths: list[int]) -> Lanes:
    """Return lanes with a window of each length that ends at every cell."""
    ends = np.arange(1, cells + 1)
    runs = [(i * cells + length - 1, (i + 1) * cells) for i, length in enumerate(lengths) if length < cells]
    return Lanes(
        np.arange(len(lengths) + 1) * cells,
        np.empty(0, np.int64),
        np.concatenate([np.maximum(ends - length, 0) for length in lengths]).astype(np.int32),
        np.tile(ends.astype(np.int32), len(lengths)),
        np.empty(0, np.int32),
        np.array(runs, np.int64).reshape(-1),
    )
