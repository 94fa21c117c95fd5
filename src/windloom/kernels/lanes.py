"""What techniques that walk lanes share: how long windows get, rings, and rows in order of their right edge."""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiled import compiled


@compiled
def longest_run(groups, bounds, lo, hi, queries):  # type: ignore[no-untyped-def]
    """Cells of the longest window, at least 1."""
    longest = np.int64(1)
    for query in queries:
        for row in range(bounds[query * groups], bounds[(query + 1) * groups]):
            longest = max(longest, np.int64(hi[row]) - lo[row])
    return longest


@compiled
def ring_size(length):  # type: ignore[no-untyped-def]
    """The next power of two: positions fall into the ring by a mask."""
    size = np.int64(1)
    while size < length:
        size *= 2
    return size


@compiled
def most_rows(groups, bounds, queries):  # type: ignore[no-untyped-def]
    """Rows of the group that has most."""
    most = np.int64(0)
    for group in range(groups):
        rows = np.int64(0)
        for query in queries:
            rows += bounds[query * groups + group + 1] - bounds[query * groups + group]
        most = max(most, rows)
    return most


@compiled
def order_rows(group, groups, group_bounds, bounds, lo, hi, queries, order, spare):  # type: ignore[no-untyped-def]
    """A group's rows of all queries, by right edge and then from the longest window to the shortest.

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
