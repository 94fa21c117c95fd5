"""What Spark projects for approximate aggregates, in plain Python: buckets of numbers, registers of hashes."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from windloom.model.aggregate import (
    FIRST_BUCKET,
    GROWTH,
    INFINITE_BUCKET,
    NAN_BUCKET,
    PACKED_RANK_BITS,
    RANK_BITS,
    REGISTER_BITS,
    REGISTERS,
)


def bucket_of(number: Any) -> int:
    value = float(number)
    if math.isnan(value):
        return NAN_BUCKET
    if value == 0:
        return 0
    size = INFINITE_BUCKET if math.isinf(value) else FIRST_BUCKET + math.ceil(math.log(abs(value)) / math.log(GROWTH))
    return size if value > 0 else -size


def packed_register_of(value: Any) -> int:
    """Any hash will do, the same in every process."""
    plain = 0.0 if isinstance(value, float) and value == 0 else value
    number = int.from_bytes(hashlib.blake2b(repr(plain).encode(), digest_size=8).digest(), "little")
    rest = number >> REGISTER_BITS | 1 << RANK_BITS
    return (number % REGISTERS) << PACKED_RANK_BITS | (rest ^ rest - 1).bit_count()
