"""The approximate aggregates: how coarse their summaries of a slice are, and so how far an answer may be off.

| aggregate             | a slice keeps                                            | an answer is                      |
|-----------------------|----------------------------------------------------------|-----------------------------------|
| APPROX_COUNT_DISTINCT | the largest rank of a hash in each of 4,096 registers    | off by 1.6 % (one standard error) |
| APPROX_QUANTILE       | how many values are in each bucket; buckets grow by 2 %  | within 1 % of the value there     |
| APPROX_TOP            | how often its 1,000 most frequent values occur           | too low by 0.2 % of all, at most  |

They are HyperLogLog, DDSketch, and the lists of Misra and Gries.
The first two depend on nothing but the values of the window, however it is cut into slices, rounds and shards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

#: A value and its count.
Item = Mapping[str, Any]

#: HyperLogLog: registers as a power of two; the standard error is 1.04 / √registers.
REGISTER_BITS = 12
REGISTERS = 1 << REGISTER_BITS
STANDARD_ERROR = 1.04 / math.sqrt(REGISTERS)
#: Bits of a hash that ranks are counted in.
RANK_BITS = 64 - REGISTER_BITS
#: Bits that hold a rank where it travels in one number with its register.
PACKED_RANK_BITS = 8

#: DDSketch: bucket i holds GROWTH ** (i - 1) < |x| <= GROWTH ** i.
RELATIVE_ERROR = 0.01
GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
#: What is added to a bucket's number, so that the sign of the sum is that of the values; then infinities, then NaN.
FIRST_BUCKET, INFINITE_BUCKET, NAN_BUCKET = 1_000_000, 2_000_000, 3_000_000

#: Entries that a slice keeps for APPROX_TOP; while merging, a list may grow to twice as many.
MOST_ENTRIES = 1_000
#: Of the values in a window: once for what slices leave out, once for what merging takes away.
TOP_ERROR = 2 / (MOST_ENTRIES + 1)

#: Verification takes an estimate for wrong where it is off by more standard errors: one in two million is.
_STANDARD_ERRORS = 5


def is_within_bounds(function: str, parameters: tuple[float, ...], truth: Any, answer: Any) -> bool:
    """Does an approximate answer keep what is promised of it?

    `truth` is the number of different values, the value at the rank ⌊p · (n - 1)⌋, counted from 0, or every value with
    its count, the most frequent first.
    """
    match function:
        case "approx_count_distinct":
            return bool(abs(answer - truth) <= _STANDARD_ERRORS * STANDARD_ERROR * truth + 1)
        case "approx_quantile":
            if truth is None or answer is None or not math.isfinite(truth):
                return str(truth) == str(answer)
            return bool(abs(answer - truth) <= RELATIVE_ERROR * abs(truth) * (1 + 1e-9))
        case "approx_top":
            return _are_most_frequent(int(parameters[0]), truth, answer)
        case _:
            return _are_frequent(answer["threshold"], truth, answer["items"])


def _are_most_frequent(k: int, truth: list[Item], items: list[Item]) -> bool:
    counts = {str(one["value"]): one["count"] for one in truth}
    slack = TOP_ERROR * sum(counts.values())
    found = {str(one["value"]): one["count"] for one in items}
    least = min(found.values()) if len(found) == k else 0
    return (
        len(found) == len(items) <= k
        and all(counts.get(value, 0) - slack <= count <= counts.get(value, 0) for value, count in found.items())
        and all(count <= least + slack for value, count in counts.items() if value not in found)
    )


def _are_frequent(threshold: int, truth: list[Item], items: list[Item]) -> bool:
    """No false positives."""
    counts = {str(one["value"]): one["count"] for one in truth}
    return all(threshold < one["count"] <= counts.get(str(one["value"]), 0) for one in items)
