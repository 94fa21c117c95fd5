"""Comparison of rows of a column: NULL is a value, and NaN equals NaN."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def same_rows(column: pa.Array, left: Rows, right: Rows) -> NDArray[np.bool_]:
    """Return whether row `left[i]` has the value of row `right[i]`, for every i."""
    nulls = np.asarray(column.is_null(), np.bool_)
    both = nulls[left] & nulls[right]
    same = both | (~nulls[left] & ~nulls[right])
    if nulls.all() or not len(left):
        return same
    kind = column.type
    if pa.types.is_struct(kind):
        for field in column.flatten():  # which has the NULLs of the struct too
            same &= same_rows(field, left, right)
        return same
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return both | (same & _same_lists(column, left, right))
    values = [column.take(pa.array(rows)) for rows in (left, right)]
    equal = pc.fill_null(pc.equal(*values), False)
    if pa.types.is_floating(kind):
        equal = pc.or_(equal, pc.fill_null(pc.and_(*(pc.is_nan(value) for value in values)), False))
    return both | (same & np.asarray(equal, np.bool_))


def _same_lists(column: pa.Array, left: Rows, right: Rows) -> NDArray[np.bool_]:
    if pa.types.is_map(column.type):
        kind = column.type
        entries = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        column = column.cast(pa.list_(entries))
    offsets = column.offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    same: NDArray[np.bool_] = sizes[left] == sizes[right]
    pairs = np.flatnonzero(same & (sizes[left] > 0))
    if len(pairs):
        counts = sizes[left[pairs]]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        first = np.repeat(offsets[left[pairs]], counts) + within
        second = np.repeat(offsets[right[pairs]], counts) + within
        same_values = same_rows(column.values, first, second)
        differs = np.bincount(np.repeat(np.arange(len(pairs)), counts), weights=~same_values, minlength=len(pairs))
        same[pairs] = differs == 0
    return same
