"""Helpers of techniques that walk lanes: lengths of windows, steady rows, rings, rows in order of right edges."""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiling import compiled

#: Rows that are tested together, at first and at most: few enough that their edges stay in the nearest cache.
SHORT_STRETCH, LONG_STRETCH = 32, 256


@compiled
def longest_group(group_bounds):  # type: ignore[no-untyped-def]
    """Return the number of cells of the largest group. No window is longer, so it bounds arrays that hold a window."""
    longest = np.int64(0)
    for group in range(len(group_bounds) - 1):
        longest = max(longest, group_bounds[group + 1] - group_bounds[group])
    return longest


@compiled
def longest_run(groups, bounds, lo, hi, queries):  # type: ignore[no-untyped-def]
    """Return the number of cells of the longest window, at least 1."""
    longest = np.int32(1)
    for query in queries:
        first, last = bounds[query * groups], bounds[(query + 1) * groups]
        # Slices whose indices count from 0, and 32-bit arithmetic, compile to vector code.
        left, right = lo[first:last], hi[first:last]
        for row in range(len(left)):
            longest = max(longest, np.int32(right[row] - left[row]))
    return np.int64(longest)


@compiled
def first_look(runs, row):  # type: ignore[no-untyped-def]
    """Return the state of `next_stretch` at `row`: the number of rows to test, and the next known run."""
    return np.int64(SHORT_STRETCH), 2 * np.int64(np.searchsorted(runs[1::2], row, side="right"))


@compiled
def next_stretch(lo, hi, runs, row, last_row, look):  # type: ignore[no-untyped-def]
    """Return where the stretch from `row` ends, whether it is steady, and the state after it.

    In a steady stretch each window lies one cell further than the one before it, so that it is answered without looking
    at edges again. Known runs are such stretches. Outside of them, all rows of a stretch are tested at once, in vector
    code; steady stretches grow.
    """
    wanted, run = look
    while run < len(runs) and runs[run + 1] <= row:
        run += 2
    if run < len(runs):
        if runs[run] <= row:
            return min(runs[run + 1], last_row), True, (wanted, run)
        last_row = min(last_row, runs[run])
    stop = min(row + wanted, last_row)
    left, right = lo[row:stop], hi[row:stop]
    begin, end = np.uint32(left[0]), np.uint32(right[0])
    off = np.uint32(0)
    # Unsigned and 32 bits wide throughout: anything else is widened, and only half the rows fit into an instruction.
    for i in range(len(left)):
        moved = np.uint32(np.uint32(np.uint32(left[i]) - begin) ^ np.uint32(i))
        off = np.uint32(off | np.uint32(moved | np.uint32(np.uint32(np.uint32(right[i]) - end) ^ np.uint32(i))))
    if off != 0:
        return stop, False, (np.int64(SHORT_STRETCH), run)
    return stop, True, (np.int64(min(2 * wanted, LONG_STRETCH)), run)


@compiled
def ring_size(length):  # type: ignore[no-untyped-def]
    """Return the next power of two, so that a mask maps positions into the ring."""
    size = np.int64(1)
    while size < length:
        size *= 2
    return size


@compiled
def most_rows(groups, bounds, queries):  # type: ignore[no-untyped-def]
    """Return the number of rows of the group that has the most."""
    most = np.int64(0)
    for group in range(groups):
        rows = np.int64(0)
        for query in queries:
            rows += bounds[query * groups + group + 1] - bounds[query * groups + group]
        most = max(most, rows)
    return most


@compiled
def order_rows(group, groups, group_bounds, bounds, lo, hi, queries, order, spare):  # type: ignore[no-untyped-def]
    """Order the rows of all queries in a group by right edge and then from the longest window to the shortest.

    Two stable counting sorts, first by left edge. A single lane is in order already. Returns the number of rows.
    """
    count = 0
    for query in queries:
        lane = query * groups + group
        for row in range(bounds[lane], bounds[lane + 1]):
            order[count] = row
            count += 1
    if len(queries) > 1:
        begin = group_bounds[group]
        places = np.zeros(group_bounds[group + 1] - begin + 2, np.int64)
        _sort_by(lo, begin, order, count, spare, places)
        places[:] = 0
        _sort_by(hi, begin, spare, count, order, places)
    return count


@compiled
def _sort_by(edges, begin, source, count, target, places):  # type: ignore[no-untyped-def]
    for i in range(count):
        places[edges[source[i]] - begin + 1] += 1
    for i in range(1, len(places)):
        places[i] += places[i - 1]
    for i in range(count):
        edge = edges[source[i]] - begin
        target[places[edge]] = source[i]
        places[edge] += 1


@compiled
def spread_groups(of_group, bounds, out):  # type: ignore[no-untyped-def]
    """Give each row the value of its group."""
    groups = len(of_group)
    for lane in range(len(bounds) - 1):
        value = of_group[lane % groups]
        rows = out[bounds[lane] : bounds[lane + 1]]
        for i in range(len(rows)):
            rows[i] = value


@compiled
def shift_queries(values, bounds, of_query, out):  # type: ignore[no-untyped-def]
    """Add the value of its query to the value of each row."""
    groups = (len(bounds) - 1) // len(of_query)
    for query in range(len(of_query)):
        first, last = bounds[query * groups], bounds[(query + 1) * groups]
        source, target, added = values[first:last], out[first:last], of_query[query]
        for i in range(len(source)):
            target[i] = source[i] + added


# Moves along sorted slice starts: to the next one at or after a tick, or along the ends of windows that grow.

#: Stands for no landmark: the windows of the query begin one range before they end.
NO_LANDMARK = -(2**63)


@compiled
def seek(starts, position, end, target, guess):  # type: ignore[no-untyped-def]
    """Return the first index from `position` on whose start is at or after `target`; `guess` is the last distance."""
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
    """Write a row for each stretch from `index` to `last`, all beginning at `left`; return the next row and cell."""
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
    """Write the rows of one lane whose windows all begin at the landmark: one for every end after its first cell.

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
    """Write the rows of one lane whose windows restart every so many stretches: in every period from its first cell.

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
