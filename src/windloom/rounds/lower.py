"""Lowering: combined components become the answer's column, typed as Spark types it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.kernels.families import AddFloat, Columns, Moments
from windloom.model.aggregate import Aggregate
from windloom.model.types import DataType, TypeKind
from windloom.rounds.arrow import arrow_type as arrow_type
from windloom.rounds.lift import float_values

#: Called with the first row whose value does not fit its type; raises an error that names query, window and group.
Refuse = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Combined:
    """One component over the rows of a shape: like `Lifted`, but a row a window."""

    parts: tuple[Columns, ...]
    valid: NDArray[np.bool_] | None
    dictionary: pa.Array | None


def lower(aggregate: Aggregate, argument: DataType | None, combined: list[Combined], refuse: Refuse) -> pa.Array:
    """`combined` holds the aggregate's components in order."""
    first = combined[0]
    kind = aggregate.result_type(argument)
    match aggregate.function:
        case "count":
            return pa.array(first.parts[0][0])
        case "sum":
            return _sum(first, kind, refuse)
        case "avg":
            scale = argument.scale if argument is not None else 0
            return _average(first, combined[1].parts[0][0], kind, scale, refuse)
        case "min" | "max" | "bool_and" | "bool_or" | "min_by" | "max_by" | "first" | "last":
            return _extremum(first, kind, reverse=aggregate.components[0].kind.is_lowest)
        case _:
            return _moment(aggregate.function, first)


def _masked(values: NDArray[np.generic], valid: NDArray[np.bool_] | None) -> pa.Array:
    return pa.array(values, mask=None if valid is None else ~valid)


def _sum(summed: Combined, kind: DataType, refuse: Refuse) -> pa.Array:
    if kind.kind is TypeKind.FLOAT:
        return _masked(_rounded(summed), summed.valid)
    if kind.kind is TypeKind.DECIMAL:
        words = _carried([part[0] for part in summed.parts], kind, refuse)
        return _decimal_array(words, kind, summed.valid)
    if len(summed.parts) == 1:
        return _masked(summed.parts[0][0], summed.valid)
    high, low = summed.parts[0][0], summed.parts[1][0]
    head = high + (low >> 32)
    beyond = np.flatnonzero((head < -(2**31)) | (head >= 2**31))
    if len(beyond):
        refuse(int(beyond[0]), str((int(head[beyond[0]]) << 32) + (int(low[beyond[0]]) & 0xFFFFFFFF)))
    return _masked((head << 32) | (low & 0xFFFFFFFF), summed.valid)


def _average(summed: Combined, count: NDArray[np.int64], kind: DataType, scale: int, refuse: Refuse) -> pa.Array:
    if kind.kind is TypeKind.DECIMAL:
        return _decimal_average(summed, count, kind, scale, refuse)
    parts = summed.parts
    if isinstance(parts[0], AddFloat):
        total = _rounded(summed)
    elif len(parts) == 2:
        # Carry first: halves of opposite sign would cancel in floats.
        total = (parts[0][0] + (parts[1][0] >> 32)) * float(2**32) + (parts[1][0] & 0xFFFFFFFF)
    else:
        total = parts[0][0].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _masked(total / count, summed.valid)


def _rounded(summed: Combined) -> NDArray[np.float64]:
    """A double-double as the nearest double; one cell alone is a head and a rest that were never added up."""
    pair = summed.parts[0]
    assert isinstance(pair, AddFloat)
    total: NDArray[np.float64] = pair.high + pair.low
    return total


def _extremum(found: Combined, kind: DataType, *, reverse: bool) -> pa.Array:
    keys = found.parts[0][0]
    keys = ~keys if reverse else keys
    if found.dictionary is not None:
        ranks = pa.array(keys, mask=None if found.valid is None else ~found.valid)
        values = found.dictionary
        if pa.types.is_struct(values.type):
            values = values.field("value")
        return values.take(ranks).cast(arrow_type(kind))
    if found.valid is not None and not found.valid.any():
        return pa.nulls(len(keys), arrow_type(kind))
    if kind.kind is TypeKind.FLOAT:
        return _masked(float_values(keys), found.valid).cast(arrow_type(kind), safe=False)
    if found.valid is not None:
        keys = np.where(found.valid, keys, 0)
    if kind.kind is TypeKind.DATE:
        return _masked(keys.astype(np.int32), found.valid).cast(pa.date32())
    if kind.kind is TypeKind.BOOLEAN:
        return _masked(keys.astype(np.bool_), found.valid)
    return _masked(keys, found.valid).cast(arrow_type(kind))


def _moment(function: str, found: Combined) -> pa.Array:
    moments = found.parts[0]
    assert isinstance(moments, Moments)
    count, square = moments.count, moments.square
    less = 1.0 if function.endswith("samp") else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        # Rounding may leave a tiny negative sum of squares where all values are equal.
        variance = np.where(square < 0.0, 0.0, square) / (count - less)
        values = np.sqrt(variance) if function.startswith("stddev") else variance
    return _masked(values, count > less)


def _carried(limbs: list[NDArray[np.int64]], kind: DataType, refuse: Refuse) -> NDArray[np.uint32]:
    """Four summed limbs as the words of a 128-bit integer; refuses what the type's precision cannot hold."""
    words = np.empty((len(limbs[0]), 4), np.uint32)
    carry = np.zeros(len(limbs[0]), np.int64)
    for i in range(4):
        total = limbs[i] + carry
        words[:, i] = (total & 0xFFFFFFFF).astype(np.uint32)
        carry = total >> 32
    # The carry out of the top limb is its sign when the value fits 128 bits; the magnitude decides the rest.
    rough = limbs[3] * 2.0**96 + limbs[2] * 2.0**64 + limbs[1] * 2.0**32 + limbs[0]
    for row in np.flatnonzero(np.abs(rough) >= 10.0**kind.precision * (1 - 1e-9)):
        exact = sum(int(limb[row]) << (32 * i) for i, limb in enumerate(limbs))
        if abs(exact) >= 2**127:
            refuse(int(row), "a sum of more than 38 digits")  # of one slice already: see OVERFLOWED_LIMB
        if abs(exact) >= 10**kind.precision:
            refuse(int(row), str(Decimal(exact).scaleb(-kind.scale)))
    return words


def _decimal_array(words: NDArray[np.uint32], kind: DataType, valid: NDArray[np.bool_] | None) -> pa.Array:
    bitmap, nulls = None, 0
    if valid is not None:
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
        nulls = int(np.count_nonzero(~valid))
    return pa.Array.from_buffers(
        pa.decimal128(kind.precision, kind.scale), len(words), [bitmap, pa.py_buffer(words.tobytes())], nulls
    )


def _decimal_average(
    summed: Combined, count: NDArray[np.int64], kind: DataType, scale: int, refuse: Refuse
) -> pa.Array:
    """Sum over count, rounded half up as Spark does; exact through Python's integers (wide decimals are rare)."""
    limbs = [part[0].astype(object) for part in summed.parts]
    total = limbs[0] + (limbs[1] << 32) + (limbs[2] << 64) + (limbs[3] << 96)
    # The sum has the argument's scale; AVG has four digits more unless that would pass 38.
    scaled = abs(total) * 10 ** (kind.scale - scale)
    whole = count.astype(object)
    whole[count == 0] = 1
    rounded = (2 * scaled + whole) // (2 * whole)
    too_large = np.flatnonzero(rounded >= 10**kind.precision)
    if len(too_large):
        refuse(int(too_large[0]), str(Decimal(int(rounded[too_large[0]])).scaleb(-kind.scale)))
    signed = np.where(total < 0, -rounded, rounded)
    words = np.empty((len(signed), 4), np.uint32)
    for i in range(4):
        words[:, i] = ((signed >> (32 * i)) & 0xFFFFFFFF).astype(np.uint32)
    return _decimal_array(words, kind, summed.valid)
