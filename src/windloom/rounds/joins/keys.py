"""Join keys of two sides as numbers: equal keys have equal numbers, as Spark compares them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windloom.model.arrays import Ints
from windloom.rounds.groups import number_groups


def number_keys(
    left: Sequence[pa.Array], right: Sequence[pa.Array], null_safe: Sequence[bool], groups: tuple[int, int]
) -> tuple[Ints, Ints, int]:
    """Return a number for the key of every group of both sides, and how many there are; -1 if a key matches nothing.

    NULL equals nothing unless its column is null-safe. NaN equals NaN, and -0.0 equals 0.0.
    """
    columns = [_plain(pa.concat_arrays([a, b.cast(a.type)])) for a, b in zip(left, right, strict=True)]
    count = sum(groups)
    numbers, distinct = number_groups(columns, count)
    for column, is_safe in zip(columns, null_safe, strict=True):
        if column.null_count and not is_safe:
            numbers = np.where(column.is_null().to_numpy(zero_copy_only=False), -1, numbers)
    return numbers[: groups[0]], numbers[groups[0] :], len(distinct[0]) if distinct else 1


def _plain(column: pa.Array) -> pa.Array:
    """Return a column whose floats have one zero and one NaN."""
    if not pa.types.is_floating(column.type):
        return column
    plain = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(plain), pa.scalar(float("nan"), column.type), plain)


def number_kept(columns: Sequence[pa.Array], groups: int, *, is_distinct: bool) -> tuple[Ints, list[pa.Array], int]:
    """Return a number for the values that are kept of every group, these values by number, and how many numbers there
    are.

    `is_distinct` says that no two groups keep the same values.
    """
    if is_distinct:
        return np.arange(groups, dtype=np.int64), list(columns), groups
    numbers, distinct = number_groups(list(columns), groups)
    return numbers, distinct, len(distinct[0]) if distinct else 1
