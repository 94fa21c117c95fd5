"""Helpers of techniques that walk lanes: lengths of windows, steady rows, rings, rows in order of right edges."""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiling.compiled import compiled

#: Rows that are tested together, at first and at most: few enough that their edges stay in the nearest cache.
SHORT_STRETCH, LONG_STRETCH = 32, 256


@compiled
def longest_group(group_bounds):  # type: ignore[no-untyped-def]
    """The number of cells of the largest group. No window is longer, so it bounds arrays that hold a window."""
    longest = np.int64(0)
    for group in range(len(group_bounds) - 1):
        longest = max(longest, group_bounds[group + 1] - group_bounds[group])
    return longest


@compiled
def longest_run(groups, bounds, lo, hi, queries):  # type: ignore[no-untyped-def]
    """The number of cells of the longest window, at least 1."""
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
    """The state of `next_stretch` at `row`: the number of rows to test, and the next known run."""
    return np.int64(SHORT_STRETCH), 2 * np.int64(np.searchsorted(runs[1::2], row, side="right"))


@compiled
def next_stretch(lo, hi, runs, row, last_row, look):  # type: ignore[no-untyped-def]
    """Where the stretch from `row` ends, whether it is steady, and the state after it.

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
    """The next power of two, so that a mask maps positions into the ring."""
    size = np.int64(1)
    while size < length:
        size *= 2
    return size


@compiled
def most_rows(groups, bounds, queries):  # type: ignore[no-untyped-def]
    """The number of rows of the group that has the most."""
    most = np.int64(0)
    for group in range(groups):
        rows = np.int64(0)
        for query in queries:
            rows += bounds[query * groups + group + 1] - bounds[query * groups + group]
        most = max(most, rows)
    return most


@compiled
def order_rows(group, groups, group_bounds, bounds, lo, hi, queries, order, spare):  # type: ignore[no-untyped-def]
    """The rows of all queries in a group, by right edge and then from the longest window to the shortest.

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
    """Gives each row the value of its group."""
    groups = len(of_group)
    for lane in range(len(bounds) - 1):
        value = of_group[lane % groups]
        rows = out[bounds[lane] : bounds[lane + 1]]
        for i in range(len(rows)):
            rows[i] = value


@compiled
def shift_queries(values, bounds, of_query, out):  # type: ignore[no-untyped-def]
    """Adds the value of its query to the value of each row."""
    groups = (len(bounds) - 1) // len(of_query)
    for query in range(len(of_query)):
        first, last = bounds[query * groups], bounds[(query + 1) * groups]
        source, target, added = values[first:last], out[first:last], of_query[query]
        for i in range(len(source)):
            target[i] = source[i] + added
