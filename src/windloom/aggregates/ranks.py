"""Order-preserving 64-bit keys: the values themselves if they fit, otherwise their ranks in a sorted dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.aggregates.arrow import Column, as_array, as_floats, as_integers
from windloom.kernels.families.float_keys import KEY_OF_MINUS_ZERO, float_keys


def keys_of(column: Column) -> tuple[NDArray[np.int64], pa.Array | None]:
    """64-bit keys in Spark's order of the values, with NaN above everything; ranks if values do not fit."""
    kind = column.type
    if pa.types.is_floating(kind):
        return float_keys(as_floats(column)), None
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return as_integers(column.cast(pa.int64())), None
    if pa.types.is_date32(kind):
        return as_integers(column.cast(pa.int32())), None
    if pa.types.is_timestamp(kind):
        return as_integers(column.cast(pa.int64())), None
    return ranks_of(as_array(column))


def ranks_of(values: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The rank of each value among the distinct values, and the distinct values in order."""
    if pa.types.is_struct(values.type):
        return _ranks_of_pairs(values)
    encoded = values.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    codes = as_integers(encoded.indices)
    keys = rank[codes] if len(rank) else np.zeros(len(codes), np.int64)
    return keys, encoded.dictionary.take(order)


def pick_keys(by: Column, value: Column) -> tuple[NDArray[np.int64], pa.Array]:
    """Ranks of the pairs (by, value), and the distinct pairs in order."""
    pairs = pick_pairs(by, value)
    if not by.null_count:
        return ranks_of(pairs)
    known = as_array(by).is_valid()
    ranks = np.zeros(len(pairs), np.int64)
    ranks[np.asarray(known, dtype=np.bool_)], dictionary = ranks_of(pairs.filter(known))
    return ranks, dictionary


def pick_pairs(by: Column, value: Column) -> pa.StructArray:
    """Pairs (by, value); `by` is kept as a key if it has one, with one key for 0.0 and -0.0."""
    keys, ranked = keys_of(by)
    if pa.types.is_floating(by.type):
        keys[keys == KEY_OF_MINUS_ZERO] = 0
    if pa.types.is_timestamp(value.type) and value.type.tz is not None:
        # Spark writes the zone of the session, which may differ when a stream is started again.
        value = value.cast(pa.timestamp("us", tz="UTC"))
    return pa.StructArray.from_arrays(
        [pa.array(keys) if ranked is None else as_array(by), as_array(value)], names=["by", "value"]
    )


def _ranks_of_pairs(pairs: pa.StructArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Ranks in Spark's order of structs: if the first fields are equal, the second ones decide; NULL is lowest."""
    (first, _), (second, _) = keys_of(pairs.field(0)), keys_of(pairs.field(1))
    known = np.asarray(pairs.field(1).is_valid(), dtype=np.bool_)
    second[~known] = 0
    order = np.argsort(first)
    sorted_first = first[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = sorted_first[1:] != sorted_first[:-1]
    if not is_new.all():  # `by` distinguishes most pairs: only the others are sorted by value
        is_tied = ~is_new
        is_tied[:-1] |= ~is_new[1:]
        tied = order[is_tied]
        tied = tied[np.lexsort((second[tied], known[tied], first[tied]))]
        order[is_tied] = tied
        is_new[1:] |= (second[order[1:]] != second[order[:-1]]) | (known[order[1:]] != known[order[:-1]])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_new) - 1
    return ranks, pairs.take(pa.array(order[is_new]))
