"""Registers: about how many distinct values a window holds, from the largest ranks of their hashes.

| time    | O(1) per entry that enters or leaves, O(ranks) per window                                 |
| space   | registers × ranks counters of cells                                                       |
| needs   | lists                                                                                     |
| queries | each its own                                                                              |
| source  | HyperLogLog (Flajolet et al. 2007), estimated as Ertl does (2017); the counters are ours  |

The value of a register over a window is its largest rank in the window's cells. A maximum cannot be undone, so for
each register and rank the cells that have it are counted, and a bit per rank shows whether any cell has it. The
estimate needs only the number of registers with each value. All of these are integers, so it cannot drift.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.lists.cells import Lists, Registered
from windloom.model.approximate import RANK_BITS, REGISTERS

#: Ranks are 1 to RANK_BITS + 1.
_RANKS = 64


def estimate_distinct(
    cells: Lists, group_bounds: Any, lanes: Any, queries: Any, out: Registered, restart: bool
) -> None:
    """Estimate the distinct values of every window; with `restart`, each is counted from nothing."""
    arguments = (*cells, len(group_bounds) - 1, lanes.bounds, lanes.lo, lanes.hi, queries, out.codes, restart)
    _evaluate(*arguments, out.found)


@compiled
def _evaluate(  # type: ignore[no-untyped-def]
    bounds, codes, ranks, groups, lane_bounds, lo, hi, queries, registers, restart, found
):  # fmt: skip
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
    """The highest bit, or 0 if there is none, since rank 0 does not occur."""
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
