"""Frequent items: values that certainly occur more often than a threshold, from top-k lists of sub-windows.

| time    | O(entries of a sub-window) once per query, O(k) per sub-window that enters or leaves,                  |
|         | O(counters) per window                                                                                 |
| space   | k entries per sub-window, a counter for each value                                                     |
| needs   | lists                                                                                                  |
| queries | each its own: sub-windows are the query's                                                              |
| source  | Algorithm 6 (source E, chapter 6)                                                                      |

A sub-window lies between two neighbouring edges of the query's own windows: for a range of n slides, it is a slide.
Only the k most frequent values of each sub-window count, and δ is the sum of the counts of the k-th ones: a value in
none of these lists occurs at most δ times in the window. The lists never overstate a value, so a value with more than δ
in the lists occurs more than δ times: there are no false positives, but there may be false negatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.lists.cells import Frequent, Lists
from windloom.kernels.lists.most_frequent import best_of, put_in, room_for, take_away


def find_frequent(cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Frequent, restart: bool) -> None:
    """Answer the question for every window; with `restart`, each is counted from nothing."""
    windows = (out.windows.ranges, out.windows.slides, out.windows.offsets)
    lane_arrays = (lanes.bounds, lanes.lo, lanes.hi)
    arguments = (cells, out.starts, len(group_bounds) - 1, lane_arrays, windows, queries, out.codes, restart)
    out.items = Lists(*_evaluate(*arguments, min(out.k, out.codes + 1), out.threshold))


@compiled
def _evaluate(cells, starts, groups, lane_arrays, windows, queries, universe, restart, k, threshold):  # type: ignore[no-untyped-def]
    bounds, lo, hi = lane_arrays
    held, places, present = np.zeros(universe, np.int64), np.empty(universe, np.int32), np.empty(universe, np.int32)
    best_codes, best_counts = np.empty(universe, np.int32), np.empty(universe, np.int64)
    row_bounds = np.zeros(len(threshold) + 1, np.int64)
    to_codes, to_counts = np.empty(1024, np.int32), np.empty(1024, np.int64)
    written, next_row = 0, 0
    for query in queries:
        window = windows[0][query], windows[1][query], windows[2][query]
        for lane in range(query * groups, (query + 1) * groups):
            if bounds[lane] == bounds[lane + 1]:
                continue
            base = lo[bounds[lane]]
            of_cell, ends, codes, counts, kth = _summaries(
                cells, starts, base, hi[bounds[lane + 1] - 1], window, k, held, places, present
            )
            left = right = size = 0
            passed = np.int64(0)
            for row in range(bounds[lane], bounds[lane + 1]):
                first, last = of_cell[lo[row] - base], of_cell[hi[row] - base - 1] + 1
                gone, stay = (right, first) if restart or first >= right else (first, right)
                leaving, entering = slice(ends[left], ends[gone]), slice(ends[stay], ends[last])
                size = take_away(codes[leaving], counts[leaving], held, places, present, size)
                size = put_in(codes[entering], counts[entering], held, places, present, size)
                passed += kth[stay:last].sum() - kth[left:gone].sum()
                left, right = first, last
                threshold[row] = passed
                count = _above(passed, held, present[:size], best_codes, best_counts)
                to_codes, to_counts = room_for(to_codes, to_counts, written, count)
                to_codes[written : written + count] = best_codes[:count]
                to_counts[written : written + count] = best_counts[:count]
                row_bounds[next_row : row + 1] = written
                next_row = row + 1
                written += count
            leaving = slice(ends[left], ends[right])
            size = take_away(codes[leaving], counts[leaving], held, places, present, size)
    row_bounds[next_row:] = written
    return row_bounds, to_codes[:written].copy(), to_counts[:written].copy()


@compiled
def _above(least, held, present, best_codes, best_counts):  # type: ignore[no-untyped-def]
    """The values counted more than `least` times, the most frequent first; returns their number."""
    chosen = np.empty(len(present), np.int32)
    count = 0
    for code in present:
        chosen[count] = code
        count += held[code] > least
    return best_of(held, chosen[:count], best_codes, best_counts)


@compiled
def _summaries(cells, starts, begin, end, window, k, held, places, present):  # type: ignore[no-untyped-def]
    """The sub-window of each cell, the top-k list of every sub-window, and how often its k-th value occurs."""
    bounds, codes, counts = cells
    length, slide, offset = window
    of_cell = np.empty(end - begin, np.int64)
    ends = np.zeros(end - begin + 1, np.int64)
    kth = np.zeros(end - begin, np.int64)
    best_codes, best_counts = np.empty(k, np.int32), np.empty(k, np.int64)
    to_codes, to_counts = np.empty(1024, np.int32), np.empty(1024, np.int64)
    sub, cell = 0, begin
    while cell < end:
        first = cell
        edge = _next_edge(starts[cell], slide, offset, length)
        size = 0
        while cell < end and starts[cell] < edge:
            entries = slice(bounds[cell], bounds[cell + 1])
            size = put_in(codes[entries], counts[entries], held, places, present, size)
            of_cell[cell - begin] = sub
            cell += 1
        count = best_of(held, present[:size], best_codes, best_counts)
        if count == k:
            kth[sub] = best_counts[k - 1]
        to_codes, to_counts = room_for(to_codes, to_counts, ends[sub], count)
        to_codes[ends[sub] : ends[sub] + count] = best_codes[:count]
        to_counts[ends[sub] : ends[sub] + count] = best_counts[:count]
        ends[sub + 1] = ends[sub] + count
        entries = slice(bounds[first], bounds[cell])
        take_away(codes[entries], counts[entries], held, places, present, size)
        sub += 1
    return of_cell, ends, to_codes, to_counts, kth


@compiled
def _next_edge(tick, slide, offset, length):  # type: ignore[no-untyped-def]
    """The first start or end of a window after the tick."""
    start = tick - (tick - offset) % slide + slide
    stop = tick - (tick - offset - length) % slide + slide
    return min(start, stop)
