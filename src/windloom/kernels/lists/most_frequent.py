"""Most frequent: the k values that occur most often in a window, from running counts.

| time    | O(1) per entry that enters or leaves, O(values in the window) per window       |
| space   | a counter and a place for each value                                           |
| needs   | lists                                                                          |
| queries | each its own                                                                   |
| source  | TOP k from frequency counts (source E §2.3.4)                                  |

The values that the window holds are listed next to the counters, so that a question reads only those. The k best so
far are a heap whose root is the least of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.lists.cells import Lists, Top


def find_most_frequent(cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Top, restart: bool) -> None:
    """Answer the question for every window; with `restart`, each is counted from nothing."""
    arguments = (*cells, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, queries, out.codes, restart)
    out.items = Lists(*_evaluate(*arguments, min(out.k, out.codes), len(lanes)))


@compiled
def _evaluate(  # type: ignore[no-untyped-def]
    bounds, codes, counts, groups, lane_bounds, lo, hi, queries, universe, restart, k, rows
):  # fmt: skip
    held = np.zeros(universe, np.int64)
    places = np.empty(universe, np.int32)
    present = np.empty(universe, np.int32)  # the codes whose counter is not 0
    size = 0
    row_bounds = np.zeros(rows + 1, np.int64)
    best_codes, best_counts = np.empty(k, np.int32), np.empty(k, np.int64)
    to_codes, to_counts = np.empty(1024, np.int32), np.empty(1024, np.int64)
    written = 0
    next_row = 0
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            left = right = np.int64(0)
            for row in range(lane_bounds[lane], lane_bounds[lane + 1]):
                first, last = bounds[lo[row]], bounds[hi[row]]
                gone, stay = (right, first) if restart or first >= right else (first, right)
                size = take_away(codes[left:gone], counts[left:gone], held, places, present, size)
                size = put_in(codes[stay:last], counts[stay:last], held, places, present, size)
                left, right = first, last
                count = best_of(held, present[:size], best_codes, best_counts)
                to_codes, to_counts = room_for(to_codes, to_counts, written, count)
                to_codes[written : written + count] = best_codes[:count]
                to_counts[written : written + count] = best_counts[:count]
                # Rows of queries that ask for something else hold nothing.
                row_bounds[next_row : row + 1] = written
                next_row = row + 1
                written += count
            size = take_away(codes[left:right], counts[left:right], held, places, present, size)
    row_bounds[next_row:] = written
    return row_bounds, to_codes[:written].copy(), to_counts[:written].copy()


@compiled
def put_in(codes, counts, held, places, present, size):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        code = codes[i]
        if held[code] == 0:
            present[size] = code
            places[code] = size
            size += 1
        held[code] += counts[i]
    return size


@compiled
def take_away(codes, counts, held, places, present, size):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        code = codes[i]
        held[code] -= counts[i]
        if held[code] == 0:
            size -= 1
            moved = present[size]
            present[places[code]] = moved
            places[moved] = places[code]
    return size


@compiled
def room_for(codes, counts, written, more):  # type: ignore[no-untyped-def]
    if written + more <= len(codes):
        return codes, counts
    length = max(2 * len(codes), written + more)
    wider, longer = np.empty(length, np.int32), np.empty(length, np.int64)
    wider[:written] = codes[:written]
    longer[:written] = counts[:written]
    return wider, longer


@compiled
def _is_less(code, count, other_code, other_count):  # type: ignore[no-untyped-def]
    """Whether it occurs less often. Among values that occur equally often, the smaller one comes first."""
    return count < other_count or (count == other_count and code > other_code)


@compiled
def best_of(held, present, best_codes, best_counts):  # type: ignore[no-untyped-def]
    """The most frequent of the values present, in order; returns their number."""
    size = min(len(best_codes), len(present))
    for i in range(len(present)):
        code, count = present[i], held[present[i]]
        if i < size:
            best_codes[i] = code
            best_counts[i] = count
            if i == size - 1:
                for root in range(size // 2 - 1, -1, -1):
                    _sink(best_codes, best_counts, root, size)
        elif _is_less(best_codes[0], best_counts[0], code, count):
            best_codes[0] = code
            best_counts[0] = count
            _sink(best_codes, best_counts, 0, size)
    for last in range(size - 1, 0, -1):
        best_codes[0], best_codes[last] = best_codes[last], best_codes[0]
        best_counts[0], best_counts[last] = best_counts[last], best_counts[0]
        _sink(best_codes, best_counts, 0, last)
    return size


@compiled
def _sink(codes, counts, root, size):  # type: ignore[no-untyped-def]
    """Restores the heap below `root`: no entry is less than the one above it."""
    while True:
        least = root
        for child in range(2 * root + 1, min(2 * root + 3, size)):
            if _is_less(codes[child], counts[child], codes[least], counts[least]):
                least = child
        if least == root:
            return
        codes[root], codes[least] = codes[least], codes[root]
        counts[root], counts[least] = counts[least], counts[root]
        root = least
