"""Group keys as small integers: each distinct combination of grouping values gets a number and a row of a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def number_groups(keys: list[pa.Array], rows: int) -> tuple[NDArray[np.int64], list[pa.Array]]:
    """Return (group number of each row, the distinct keys by number). Without grouping columns there is one group."""
    if not keys:
        return np.zeros(rows, np.int64), []
    numbers, distinct = _codes(keys[0])
    for key in keys[1:]:
        codes, count = _codes(key)
        # Numbers stay dense after every column, so the product never outgrows 64 bits.
        numbers, distinct = _codes(pa.array(numbers * count + codes))
    if rows == 0:
        return numbers, [key.slice(0, 0) for key in keys]
    a_row = np.empty(distinct, np.int64)
    a_row[numbers] = np.arange(rows)
    return numbers, [key.take(pa.array(a_row)) for key in keys]


def _codes(column: pa.Array) -> tuple[NDArray[np.int64], int]:
    """Return a number for each distinct value; as in Spark's grouping, NULL is a value, and NaN equals NaN."""
    encoded = column.dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, max(1, len(encoded.dictionary))


def concat_keys(*parts: list[pa.Array]) -> list[pa.Array]:
    """Return the keys of all parts, one part after the other, in the types of the first."""
    return [pa.concat_arrays([key.cast(columns[0].type) for key in columns]) for columns in zip(*parts, strict=True)]


def describe_group(keys: list[pa.Array], number: int) -> str:
    """Return a group as text, for error messages."""
    if not keys:
        return "(all)"
    values = [key[number].as_py() for key in keys]
    return ", ".join("NULL" if value is None else str(value) for value in values)
