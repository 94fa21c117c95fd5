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
