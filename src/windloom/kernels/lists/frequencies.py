"""Questions about how often values occur in windows, answered from cells that hold lists.

Most frequent: the k values that occur most often in a window, from running counts.

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

from windloom.kernels.compiling import compiled
from windloom.kernels.lists.distinct import count_last_seen, estimate_distinct, recount_distinct
from windloom.kernels.lists.lists import Distinct, Frequent, Lists, Members, Question, RankedLists, Top
from windloom.model.aggregate import Property


@compiled
def _find_most_frequent(  # type: ignore[no-untyped-def]
    bounds, codes, counts, groups, lane_bounds, lo, hi, queries, restart, universe, k, rows
):  # fmt: skip
    count_of = np.zeros(universe, np.int64)
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
                size = take_away(codes[left:gone], counts[left:gone], count_of, places, present, size)
                size = put_in(codes[stay:last], counts[stay:last], count_of, places, present, size)
                left, right = first, last
                count = best_of(count_of, present[:size], best_codes, best_counts)
                to_codes, to_counts = room_for(to_codes, to_counts, written, count)
                to_codes[written : written + count] = best_codes[:count]
                to_counts[written : written + count] = best_counts[:count]
                # Rows of queries that ask for something else hold nothing.
                row_bounds[next_row : row + 1] = written
                next_row = row + 1
                written += count
            size = take_away(codes[left:right], counts[left:right], count_of, places, present, size)
    row_bounds[next_row:] = written
    return row_bounds, to_codes[:written].copy(), to_counts[:written].copy()


@compiled
def _find_members(  # type: ignore[no-untyped-def]
    bounds, codes, counts, groups, lane_bounds, lo, hi, queries, restart, universe, repeats, most, rows
):  # fmt: skip
    count_of, places, present = np.zeros(universe, np.int64), np.empty(universe, np.int32), np.empty(universe, np.int32)
    row_bounds = np.zeros(rows + 1, np.int64)
    to_codes, to_counts = np.empty(1024, np.int32), np.empty(1024, np.int64)
    size, written, next_row = 0, 0, 0
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            left = right = np.int64(0)
            for row in range(lane_bounds[lane], lane_bounds[lane + 1]):
                first, last = bounds[lo[row]], bounds[hi[row]]
                gone, stay = (right, first) if restart or first >= right else (first, right)
                size = take_away(codes[left:gone], counts[left:gone], count_of, places, present, size)
                size = put_in(codes[stay:last], counts[stay:last], count_of, places, present, size)
                left, right = first, last
                to_codes, to_counts = room_for(to_codes, to_counts, written, size)
                in_order = np.sort(present[:size])
                listed = np.int64(0)
                for i in range(size):
                    to_codes[written + i] = in_order[i]
                    to_counts[written + i] = count_of[in_order[i]]
                    listed += to_counts[written + i] if repeats else 1
                if listed > most:
                    return row_bounds, to_codes[:0].copy(), to_counts[:0].copy(), row
                row_bounds[next_row : row + 1] = written
                next_row = row + 1
                written += size
            size = take_away(codes[left:right], counts[left:right], count_of, places, present, size)
    row_bounds[next_row:] = written
    return row_bounds, to_codes[:written].copy(), to_counts[:written].copy(), -1


@compiled
def put_in(codes, counts, count_of, places, present, size):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        code = codes[i]
        if count_of[code] == 0:
            present[size] = code
            places[code] = size
            size += 1
        count_of[code] += counts[i]
    return size


@compiled
def take_away(codes, counts, count_of, places, present, size):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        code = codes[i]
        count_of[code] -= counts[i]
        if count_of[code] == 0:
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
    """Return whether it occurs less often. Among values that occur equally often, the smaller one comes first."""
    return count < other_count or (count == other_count and code > other_code)


@compiled
def best_of(count_of, present, best_codes, best_counts):  # type: ignore[no-untyped-def]
    """Find the most frequent of the values present, in order; return their number."""
    size = min(len(best_codes), len(present))
    for i in range(len(present)):
        code, count = present[i], count_of[present[i]]
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
    """Restore the heap below `root`: no entry is less than the one above it."""
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


# Frequent items: values that certainly occur more often than a threshold, from top-k lists of sub-windows.
#
# | time    | O(entries of a sub-window) once per query, O(k) per sub-window that enters or leaves,                  |
# |         | O(counters) per window                                                                                 |
# | space   | k entries per sub-window, a counter for each value                                                     |
# | needs   | lists                                                                                                  |
# | queries | each its own: sub-windows are the query's                                                              |
# | source  | Algorithm 6 (source E, chapter 6)                                                                      |
#
# A sub-window lies between two neighbouring edges of the query's own windows: for a range of n slides, it is a slide.
# Only the k most frequent values of each sub-window count, and δ is the sum of the counts of the k-th ones: a value in
# none of these lists occurs at most δ times in the window. The lists never overstate a value, so a value with more than
# δ in the lists occurs more than δ times: there are no false positives, but there may be false negatives.


@compiled
def _find_frequent(  # type: ignore[no-untyped-def]
    cells, groups, bounds, lo, hi, queries, restart, universe, starts, windows, k, threshold
):  # fmt: skip
    count_of, places, present = np.zeros(universe, np.int64), np.empty(universe, np.int32), np.empty(universe, np.int32)
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
                cells, starts, base, hi[bounds[lane + 1] - 1], window, k, count_of, places, present
            )
            left = right = size = 0
            passed = np.int64(0)
            for row in range(bounds[lane], bounds[lane + 1]):
                first, last = of_cell[lo[row] - base], of_cell[hi[row] - base - 1] + 1
                gone, stay = (right, first) if restart or first >= right else (first, right)
                leaving, entering = slice(ends[left], ends[gone]), slice(ends[stay], ends[last])
                size = take_away(codes[leaving], counts[leaving], count_of, places, present, size)
                size = put_in(codes[entering], counts[entering], count_of, places, present, size)
                passed += kth[stay:last].sum() - kth[left:gone].sum()
                left, right = first, last
                threshold[row] = passed
                count = _above(passed, count_of, present[:size], best_codes, best_counts)
                to_codes, to_counts = room_for(to_codes, to_counts, written, count)
                to_codes[written : written + count] = best_codes[:count]
                to_counts[written : written + count] = best_counts[:count]
                row_bounds[next_row : row + 1] = written
                next_row = row + 1
                written += count
            leaving = slice(ends[left], ends[right])
            size = take_away(codes[leaving], counts[leaving], count_of, places, present, size)
    row_bounds[next_row:] = written
    return row_bounds, to_codes[:written].copy(), to_counts[:written].copy()


@compiled
def _above(least, count_of, present, best_codes, best_counts):  # type: ignore[no-untyped-def]
    """Find the values counted more than `least` times, the most frequent first; return their number."""
    chosen = np.empty(len(present), np.int32)
    count = 0
    for code in present:
        chosen[count] = code
        count += count_of[code] > least
    return best_of(count_of, chosen[:count], best_codes, best_counts)


@compiled
def _summaries(cells, starts, begin, end, window, k, count_of, places, present):  # type: ignore[no-untyped-def]
    """Return the sub-window of each cell, the top-k list of every sub-window, and how often its k-th value occurs."""
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
        tick, size = starts[cell], 0
        # The first start or end of a window after the tick.
        edge = min(tick - (tick - offset) % slide + slide, tick - (tick - offset - length) % slide + slide)
        while cell < end and starts[cell] < edge:
            entries = slice(bounds[cell], bounds[cell + 1])
            size = put_in(codes[entries], counts[entries], count_of, places, present, size)
            of_cell[cell - begin] = sub
            cell += 1
        count = best_of(count_of, present[:size], best_codes, best_counts)
        if count == k:
            kth[sub] = best_counts[k - 1]
        to_codes, to_counts = room_for(to_codes, to_counts, ends[sub], count)
        to_codes[ends[sub] : ends[sub] + count] = best_codes[:count]
        to_counts[ends[sub] : ends[sub] + count] = best_counts[:count]
        ends[sub + 1] = ends[sub] + count
        entries = slice(bounds[first], bounds[cell])
        take_away(codes[entries], counts[entries], count_of, places, present, size)
        sub += 1
    return of_cell, ends, to_codes, to_counts, kth


# Order statistics: the values at given ranks of a window, from running counts with sums above them.
#
# | time    | O(log₆₄ values) per entry that enters or leaves, O(64 · log₆₄ values) per window   |
# | space   | a counter for each value, and one for every 64, 4,096, … of them                   |
# | needs   | lists                                                                              |
# | queries | each its own                                                                       |
# | source  | QUANTILE from frequency counts (source E §2.3.4); the 64-way sums are ours         |
#
# A Fenwick tree would change log₂ counters per entry and read the same number per window. Entries outnumber windows, so
# changes must be cheap: a counter has 64 below it, adjacent in memory, which a question reads one by one.

#: Counters below one counter, as a power of two.
_BITS = 6


def _levels_of(codes: int) -> Any:
    """Return where the counters of each level begin, and where the last level ends."""
    levels, size = [0], max(1, codes)
    while size > 1 or len(levels) == 1:
        size = ((size - 1) >> _BITS) + 1
        levels.append(levels[-1] + (size << _BITS))
    return np.array(levels)


@compiled
def _find_ranks(  # type: ignore[no-untyped-def]
    bounds, codes, counts, groups, lane_bounds, lo, hi, queries, restart, levels, share, is_one, total, lower, higher
):  # fmt: skip
    sums = np.zeros(levels[-1], np.int64)
    size = np.int64(0)
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            left = right = np.int64(0)  # entries of the window so far
            for row in range(lane_bounds[lane], lane_bounds[lane + 1]):
                first, last = bounds[lo[row]], bounds[hi[row]]
                gone, stay = (right, first) if restart or first >= right else (first, right)
                size += _change(codes[left:gone], counts[left:gone], np.int64(-1), sums, levels)
                size += _change(codes[stay:last], counts[stay:last], np.int64(1), sums, levels)
                left, right = first, last
                total[row] = size
                if size > 0:
                    place = max(np.ceil(size * share), 1.0) - 1.0 if is_one else (size - 1) * share
                    below, above = np.int64(np.floor(place)), np.int64(np.ceil(place))
                    lower[row] = _at_rank(sums, levels, below)
                    higher[row] = lower[row] if above == below else _at_rank(sums, levels, above)
                else:
                    lower[row] = higher[row] = 0
            size += _change(codes[left:right], counts[left:right], np.int64(-1), sums, levels)


@compiled
def _change(codes, counts, sign, sums, levels):  # type: ignore[no-untyped-def]
    """Add entries to the sums, or subtracts them; return the change of the total."""
    change = np.int64(0)
    for i in range(len(codes)):
        count = sign * counts[i]
        place = np.int64(codes[i])
        change += count
        for level in range(len(levels) - 1):
            sums[np.uint64(levels[level] + place)] += count
            place >>= _BITS
    return change


@compiled
def _at_rank(sums, levels, rank):  # type: ignore[no-untyped-def]
    """Return the code that has `rank` others before it."""
    place = np.int64(0)
    for level in range(len(levels) - 2, -1, -1):
        place <<= _BITS
        while sums[levels[level] + place] <= rank:
            rank -= sums[levels[level] + place]
            place += 1
    return place


# Running counts: how often each value occurs in the window, updated as cells enter and leave it.
#
# | time    | O(entries that enter or leave) per window, plus the cost of the question      |
# | space   | a counter for each value                                                      |
# | needs   | lists                                                                         |
# | queries | each its own; COUNT(DISTINCT x) all at once, see `distinct`                   |
# | source  | running and interval synopses with frequency counts (source E §2.3.4, §6.1)   |
#
# Adding and subtracting whole numbers is exact, so a lane never drifts. Between rounds, only the cells are kept: a
# running synopsis of the whole stream would hold values that never occur again (source E).


class RunningCounts:
    name = "running_counts"
    needs = (Property.LISTS,)

    def evaluate(self, cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Question) -> None:
        answer(cells, group_bounds, lanes, queries, out, restart=False)


def answer(cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Question, *, restart: bool) -> None:
    """Answer a question from cells that hold lists; with `restart`, every window is counted from nothing."""
    if isinstance(out, Distinct):
        count = recount_distinct if restart else count_last_seen
        count(*cells[:2], group_bounds, lanes.bounds, lanes.lo, lanes.hi, queries, out.codes, out.found)
        return
    arguments = (len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, queries, restart)
    if isinstance(out, RankedLists):
        levels = _levels_of(out.codes)
        _find_ranks(*cells, *arguments, levels, out.share, out.is_one, out.total, out.lower, out.higher)
    elif isinstance(out, Top):
        out.items = Lists(*_find_most_frequent(*cells, *arguments, out.codes, min(out.k, out.codes), len(lanes)))
    elif isinstance(out, Members):
        *lists, out.beyond = _find_members(*cells, *arguments, out.codes, out.repeats, out.most, len(lanes))
        out.items = Lists(*lists)
    elif isinstance(out, Frequent):
        windows, k = (out.windows.ranges, out.windows.slides, out.windows.offsets), min(out.k, out.codes + 1)
        out.items = Lists(*_find_frequent(cells, *arguments, out.codes, out.starts, windows, k, out.threshold))
    else:
        estimate_distinct(*cells, *arguments, out.codes, out.found)
