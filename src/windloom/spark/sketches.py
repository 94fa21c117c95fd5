"""Native SQL of the approximate aggregates' summaries: the register and rank of a hash, the bucket of a number."""

from __future__ import annotations

import math

from windloom.model.approximate import (
    FIRST_BUCKET,
    GROWTH,
    INFINITE_BUCKET,
    NAN_BUCKET,
    PACKED_RANK_BITS,
    RANK_BITS,
    REGISTERS,
)


def register_sql(argument: str) -> str:
    """The lowest bits of the hash."""
    return f"(xxhash64({argument}) & {REGISTERS - 1}L)"


def rank_sql(argument: str) -> str:
    """Zeros at the end of the other bits, and one more; all of them zero is the largest rank."""
    rest = f"(shiftrightunsigned(xxhash64({argument}), {64 - RANK_BITS}) | {1 << RANK_BITS}L)"
    return f"CAST(bit_count({rest} ^ ({rest} - 1L)) AS BIGINT)"


def bucket_sql(argument: str) -> str:
    """A whole number in the order of the values: see `rounds.holistic.bucket_values`."""
    number = f"CAST({argument} AS DOUBLE)"
    size = f"{FIRST_BUCKET}L + CAST(ceil(ln(abs({number})) * {1 / math.log(GROWTH)!r}D) AS BIGINT)"
    size = f"if(abs({number}) = double('infinity'), {INFINITE_BUCKET}L, {size})"
    return (
        f"CASE WHEN isnan({number}) THEN {NAN_BUCKET}L WHEN {number} = 0D THEN 0L"
        f" ELSE CAST(sign({number}) AS BIGINT) * ({size}) END"
    )


def packed_register_sql(argument: str) -> str:
    """Register and rank in one number, the rank in the lowest bits; NULL for NULL."""
    packed = f"shiftleft({register_sql(argument)}, {PACKED_RANK_BITS}) | {rank_sql(argument)}"
    return f"if(({argument}) IS NOT NULL, {packed}, NULL)"
