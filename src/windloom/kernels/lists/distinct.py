"""Distinct values of windows: counted exactly from where each was last seen, or estimated from registers of hashes.

Last seen: all queries are answered in one pass over the cells.

| time    | O(log cells) per entry and per window, whatever the number of queries           |
| space   | a position for each value, a counter for each cell of one group                 |
| needs   | lists                                                                           |
| queries | many: rows of all lanes of a group are answered in order of their right edges   |
| source  | ours; the running form of source E §2.3.4 visits every entry once per query     |

Cells enter from left to right, and for each value the last cell that held it is kept. A window `[lo, hi)` that ends
where the pass is now holds a value exactly if the value was last seen at `lo` or later. A Fenwick tree counts, for each
cell, the values that were last seen there.
"""

from __future__ import annotations

import math

import numpy as np

from windloom.kernels.compiling import compiled
from windloom.kernels.lanes import longest_group, most_rows, order_rows
from windloom.model.aggregate import RANK_BITS, REGISTERS


@compiled
def recount_distinct(bounds, codes, group_bounds, lane_bounds, lo, hi, queries, universe, found):  # type: ignore[no-untyped-def]
    """Count as the slow reference does: visit every entry of every window, every time."""
    groups = len(group_bounds) - 1
    seen_by = np.full(universe, -1, np.int64)
    for query in queries:
        for row in range(lane_bounds[query * groups], lane_bounds[(query + 1) * groups]):
            found[row] = 0
            for entry in range(bounds[lo[row]], bounds[hi[row]]):
                found[row] += seen_by[codes[entry]] != row
                seen_by[codes[entry]] = row


@compiled
def count_last_seen(bounds, codes, group_bounds, lane_bounds, lo, hi, queries, universe, found):  # type: ignore[no-untyped-def]
    """Count the distinct values of every window."""
    groups = len(group_bounds) - 1
    last = np.full(universe, -1, np.int64)
    tree = np.empty(longest_group(group_bounds) + 1, np.int64)
    rows = most_rows(groups, lane_bounds, queries)
    order, spare = np.empty(rows, np.int64), np.empty(rows, np.int64)
    for group in range(groups):
        count = order_rows(group, groups, group_bounds, lane_bounds, lo, hi, queries, order, spare)
        if count == 0:
            continue
        begin = group_bounds[group]
        size = group_bounds[group + 1] - begin
        tree[: size + 1] = 0
        seen = np.int64(0)
        # Cells before the first window are never needed.
        right = begin + size
        for i in range(count):
            right = min(right, np.int64(lo[order[i]]))
        entered = right
        for i in range(count):
            row = order[i]
            while right < hi[row]:
                for entry in range(bounds[right], bounds[right + 1]):
                    before = last[codes[entry]]
                    if before < 0:
                        seen += 1
                    else:
                        _add(tree, size, before - begin + 1, -1)
                    last[codes[entry]] = right
                _add(tree, size, right - begin + 1, bounds[right + 1] - bounds[right])
                right += 1
            found[row] = seen - _sum(tree, lo[row] - begin)
        for entry in range(bounds[entered], bounds[right]):
            last[codes[entry]] = -1


@compiled
def _add(tree, size, place, change):  # type: ignore[no-untyped-def]
    while place <= size:
        tree[place] += change
        place += place & -place


@compiled
def _sum(tree, place):  # type: ignore[no-untyped-def]
    """Return the sum of the first `place` counters."""
    total = np.int64(0)
    while place > 0:
        total += tree[place]
        place -= place & -place
    return total


# Registers: about how many distinct values a window holds, from the largest ranks of their hashes.
#
# | time    | O(1) per entry that enters or leaves, O(ranks) per window                                 |
# | space   | registers × ranks counters of cells                                                       |
# | needs   | lists                                                                                     |
# | queries | each its own                                                                              |
# | source  | HyperLogLog (Flajolet et al. 2007), estimated as Ertl does (2017); the counters are ours  |
#
# The value of a register over a window is its largest rank in the window's cells. A maximum cannot be undone, so for
# each register and rank the cells that have it are counted, and a bit per rank shows whether any cell has it. The
# estimate needs only the number of registers with each value. All of these are integers, so it cannot drift.

#: Ranks are 1 to RANK_BITS + 1.
_RANKS = 64


@compiled
def estimate_distinct(  # type: ignore[no-untyped-def]
    bounds, codes, ranks, groups, lane_bounds, lo, hi, queries, restart, registers, found
):  # fmt: skip
    """Estimate the distinct values of every window; with `restart`, each is counted from nothing."""
    cells_with = np.zeros((registers, _RANKS), np.int32)
    present = np.zeros(registers, np.uint64)  # bit r: some cell of the window has rank r
    having = np.zeros(_RANKS, np.int64)  # registers by value
    having[0] = REGISTERS
    for query in queries:
        for lane in range(query * groups, (query + 1) * groups):
            left = right = np.int64(0)
            for row in range(lane_bounds[lane], lane_bounds[lane + 1]):
                first, last = bounds[lo[row]], bounds[hi[row]]
                gone, stay = (right, first) if restart or first >= right else (first, right)
                _change(codes[left:gone], ranks[left:gone], -1, cells_with, present, having)
                _change(codes[stay:last], ranks[stay:last], 1, cells_with, present, having)
                left, right = first, last
                found[row] = np.int64(np.rint(_estimate(having)))
            _change(codes[left:right], ranks[left:right], -1, cells_with, present, having)


@compiled
def _change(codes, ranks, change, cells_with, present, having):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        code, rank = codes[i], ranks[i]
        cells_with[code, rank] += change
        bits = present[code]
        bit = np.uint64(1) << np.uint64(rank)
        after = bits | bit if cells_with[code, rank] > 0 else bits & ~bit
        if after != bits:
            having[_largest(bits)] -= 1
            having[_largest(after)] += 1
            present[code] = after


@compiled
def _largest(bits):  # type: ignore[no-untyped-def]
    """Return the highest bit, or 0 if there is none, since rank 0 does not occur."""
    place = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if bits >> np.uint64(shift):
            bits >>= np.uint64(shift)
            place += shift
    return place


@compiled
def _estimate(having):  # type: ignore[no-untyped-def]
    """Ertl's improved raw estimator: without tables, and without a switch between small and large numbers."""
    total = REGISTERS * _tau(1.0 - having[RANK_BITS + 1] / REGISTERS)
    highest = RANK_BITS
    while total == 0.0 and highest > 0 and having[highest] == 0:  # skips high ranks that no register has
        highest -= 1
    for rank in range(highest, 0, -1):
        total = 0.5 * (total + having[rank])
    total += REGISTERS * _sigma(having[0] / REGISTERS)
    return REGISTERS / (2.0 * math.log(2.0)) * REGISTERS / total


@compiled
def _sigma(share):  # type: ignore[no-untyped-def]
    if share == 1.0:
        return np.inf
    factor, total, before = 1.0, share, -1.0
    while total != before:
        share *= share
        before = total
        total += share * factor
        factor += factor
    return total


@compiled
def _tau(share):  # type: ignore[no-untyped-def]
    if share == 0.0 or share == 1.0:
        return 0.0
    factor, total, before = 1.0, 1.0 - share, -1.0
    while total != before:
        share = math.sqrt(share)
        before = total
        factor *= 0.5
        total -= (1.0 - share) ** 2 * factor
    return total / 3.0
