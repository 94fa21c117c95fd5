"""The approximate aggregates: how coarse their summaries of a slice are, and the resulting error of an answer.

| aggregate             | a slice keeps                                            | an answer is                      |
|-----------------------|----------------------------------------------------------|-----------------------------------|
| APPROX_COUNT_DISTINCT | the largest rank of a hash in each of 4,096 registers    | off by 1.6 % (one standard error) |
| APPROX_QUANTILE       | how many values are in each bucket; buckets grow by 2 %  | within 1 % of the value there     |
| APPROX_TOP            | how often its 1,000 most frequent values occur           | too low by 0.2 % of all, at most  |

They are HyperLogLog, DDSketch, and the lists of Misra and Gries.
The first two depend only on the values of the window, however it is divided into slices, rounds and shards.
"""

from __future__ import annotations

import math

#: HyperLogLog: registers as a power of two; the standard error is 1.04 / √registers.
REGISTER_BITS = 12
REGISTERS = 1 << REGISTER_BITS
STANDARD_ERROR = 1.04 / math.sqrt(REGISTERS)
#: The bits of a hash in which ranks are counted.
RANK_BITS = 64 - REGISTER_BITS
#: The bits that hold a rank if it shares a number with its register.
PACKED_RANK_BITS = 8

#: DDSketch: bucket i holds GROWTH ** (i - 1) < |x| <= GROWTH ** i.
RELATIVE_ERROR = 0.01
GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
#: Added to the number of a bucket, so that the sum has the sign of the values; then infinities, then NaN.
FIRST_BUCKET, INFINITE_BUCKET, NAN_BUCKET = 1_000_000, 2_000_000, 3_000_000

#: Entries that a slice keeps for APPROX_TOP; during a merge, a list may grow to twice this size.
MOST_ENTRIES = 1_000
#: The largest error, as a share of the values in a window: half from what slices leave out, half from merging.
TOP_ERROR = 2 / (MOST_ENTRIES + 1)
