"""Adds up lists of values over matching rows: each value counts as often as its row is matched.

A row is a run of cells, so nothing is copied for the windows of a side: lists are read from the cells themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled
from windloom.kernels.lists.lists import Lists
from windloom.model.arrays import Ints, Positions


def match_rows(
    rows: Positions, other_rows: Positions, outs: Positions, lengths: Positions, last: int, times: Ints, times_last: int
) -> tuple[Positions, Positions, Ints]:
    """Return stretches as single rows: the row of the result, the row that has the list, and how often that row counts.

    Rows from `last` on have no list, and rows that count 0 times are left out.
    """
    most = int(lengths.sum(dtype=np.int64))
    to_outs, to_rows, to_times = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int64)
    count = _match_rows(rows, other_rows, outs, lengths, last, times, times_last, to_outs, to_rows, to_times)
    return to_outs[:count], to_rows[:count], to_times[:count]


@compiled
def _match_rows(rows, other_rows, outs, lengths, last, times, times_last, to_outs, to_rows, to_times):  # type: ignore[no-untyped-def]
    count = 0
    for s in range(len(outs)):
        if rows[s] >= last:
            continue
        i, j, o = np.int64(rows[s]), np.int64(other_rows[s]), np.int64(outs[s])
        other_step = np.int64(j < times_last)
        for _ in range(lengths[s]):
            if times[j] > 0:
                to_outs[count] = o
                to_rows[count] = i
                to_times[count] = times[j]
                count += 1
            i += 1
            j += other_step
            o += 1
    return count


def add_lists(
    before: Lists, cells: Lists, codes: int, matched: tuple[Positions, Positions, Ints], runs: Any, *, largest: bool
) -> Lists | None:
    """Return the lists `before`, one per row of the result, and those of all matches; None if a count exceeds 64 bits.

    `matched` is the result of `match_rows`, and `runs` are the bounds of the cells of its rows. With `largest`, the
    largest count of a value is kept, however often it is matched.
    """
    lo, hi = runs
    rows = len(before.bounds) - 1
    entries = int(before.bounds[-1]) + int((cells.bounds[hi] - cells.bounds[lo])[matched[1]].sum())
    most = min(entries, rows * codes)
    lists = Lists(np.zeros(rows + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.int64))
    used = _add_lists(before, cells, codes, *matched, lo, hi, largest, *lists)
    if used < 0:
        return None
    return Lists(lists.bounds, lists.codes[:used].copy(), lists.counts[:used].copy())


@compiled
def _add_lists(before, cells, universe, outs, rows, times, lo, hi, largest, to_bounds, to_codes, to_counts):  # type: ignore[no-untyped-def]
    results = len(to_bounds) - 1
    # Matches in order of the row that they add to.
    begin = np.zeros(results + 1, np.int64)
    for out in outs:
        begin[out + 1] += 1
    for out in range(results):
        begin[out + 1] += begin[out]
    place, order = begin[:-1].copy(), np.empty(len(outs), np.int64)
    for match in range(len(outs)):
        order[place[outs[match]]] = match
        place[outs[match]] += 1
    count_of, present = np.zeros(universe, np.int64), np.empty(universe, np.int32)
    used = np.int64(0)
    for out in range(results):
        size = np.int64(0)
        for entry in range(before.bounds[out], before.bounds[out + 1]):
            present[size] = before.codes[entry]
            size += 1
            count_of[before.codes[entry]] = before.counts[entry]
        for i in range(begin[out], begin[out + 1]):
            row = rows[order[i]]
            weight = np.int64(1) if largest else times[order[i]]
            for entry in range(cells.bounds[lo[row]], cells.bounds[hi[row]]):
                code, count = cells.codes[entry], cells.counts[entry]
                if count_of[code] == 0:
                    present[size] = code
                    size += 1
                if largest:
                    count_of[code] = max(count_of[code], count)
                    continue
                if count > (np.int64(2**63 - 1) - count_of[code]) // weight:
                    return np.int64(-1)
                count_of[code] += count * weight
        codes_in_order = present[:size]
        codes_in_order.sort()
        for code in codes_in_order:
            to_codes[used] = code
            to_counts[used] = count_of[code]
            count_of[code] = 0
            used += 1
        to_bounds[out + 1] = used
    return used
