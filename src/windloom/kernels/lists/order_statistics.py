"""Order statistics: the values at given ranks of a window, from running counts with sums above them.

| time    | O(log₆₄ values) per entry that enters or leaves, O(64 · log₆₄ values) per window   |
| space   | a counter for each value, and one for every 64, 4,096, … of them                   |
| needs   | lists                                                                              |
| queries | each its own                                                                       |
| source  | QUANTILE from frequency counts (source E §2.3.4); the 64-way sums are ours         |

A Fenwick tree would change log₂ counters per entry and read the same number per window. Entries outnumber windows, so
changes must be cheap: a counter has 64 below it, adjacent in memory, which a question reads one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.lists.cells import Lists, Ranked

#: Counters below one counter, as a power of two.
_BITS = 6


def find_ranks(cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Ranked, restart: bool) -> None:
    """Answer the question for every window; with `restart`, each is counted from nothing."""
    levels = [0]
    size = max(1, out.codes)
    while True:
        size = ((size - 1) >> _BITS) + 1
        levels.append(levels[-1] + (size << _BITS))
        if size == 1:
            break
    arguments = (*cells, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, queries)
    _evaluate(*arguments, np.array(levels), restart, out.share, out.total, out.lower, out.higher)


@compiled
def _evaluate(  # type: ignore[no-untyped-def]
    bounds, codes, counts, groups, lane_bounds, lo, hi, queries, levels, restart, share, total, lower, higher
):  # fmt: skip
    sums = np.zeros(levels[-1], np.int64)
    held = np.int64(0)
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            left = right = np.int64(0)  # entries of the window so far
            for row in range(lane_bounds[lane], lane_bounds[lane + 1]):
                first, last = bounds[lo[row]], bounds[hi[row]]
                gone, stay = (right, first) if restart or first >= right else (first, right)
                held += _change(codes[left:gone], counts[left:gone], np.int64(-1), sums, levels)
                held += _change(codes[stay:last], counts[stay:last], np.int64(1), sums, levels)
                left, right = first, last
                total[row] = held
                if held > 0:
                    place = (held - 1) * share
                    below, above = np.int64(np.floor(place)), np.int64(np.ceil(place))
                    lower[row] = _at_rank(sums, levels, below)
                    higher[row] = lower[row] if above == below else _at_rank(sums, levels, above)
                else:
                    lower[row] = higher[row] = 0
            held += _change(codes[left:right], counts[left:right], np.int64(-1), sums, levels)


@compiled
def _change(codes, counts, sign, sums, levels):  # type: ignore[no-untyped-def]
    """Adds entries to the sums, or subtracts them; returns the change of the total."""
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
    """The code that has `rank` others before it."""
    place = np.int64(0)
    for level in range(len(levels) - 2, -1, -1):
        place <<= _BITS
        while sums[levels[level] + place] <= rank:
            rank -= sums[levels[level] + place]
            place += 1
    return place
