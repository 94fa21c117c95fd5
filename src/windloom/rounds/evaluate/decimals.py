"""Arithmetic on decimals: exact in up to 75 digits, then rounded half up to the digits that Spark keeps.

Arrow 26 sometimes divides decimals of 256 bits wrongly if the divisor takes more than 32 bits. So digits are
dropped nine at a time, and quotients are computed with 64-bit integers.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.aggregates.arrow import arrow_type
from windloom.model.types import DataType
from windloom.rounds.evaluate.values import DeclinedError, Value, is_scalar

_EXACT = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_MOST_DIGITS = 38
_WIDE_DIGITS = 75  # one less than Arrow's maximum, so that a sum fits
#: Digits that are dropped at a time.
_DROPPED = 9
#: Digits after the point to which Spark divides before it rounds to the scale of the result.
_QUOTIENT_SCALE = 39
#: The digits of the integers that are divided, and of their factors.
_LONG_DIGITS = 18
#: Integers below it, and powers of ten up to the 22nd, are exact as doubles.
_EXACT_IN_DOUBLE = 2**53
_MOST_EXACT_POWER = 22


def combine(op: str, left: Value, right: Value, kind: DataType) -> Value:
    """A sum, difference or product."""
    scale = left.type.scale + right.type.scale if op == "*" else max(left.type.scale, right.type.scale)
    if scale > _MOST_DIGITS:
        raise DeclinedError("a product of decimals with many digits")
    wide = [pc.cast(operand, pa.decimal256(operand.type.precision, operand.type.scale)) for operand in (left, right)]
    result = _EXACT[op](*wide)
    if op == "*":
        result = pc.cast(result, pa.decimal128(_MOST_DIGITS, scale))  # Spark rounds longer products twice
    return fitted(result, kind)


def fitted(value: Value, kind: DataType) -> Value:
    """Rounded half up to the type; a value with too many digits before the point cannot be converted."""
    if value.type.scale > kind.scale:
        wide = _wide(value)
        half = pa.scalar(Decimal(5).scaleb(-kind.scale - 1), wide.type)
        value = truncated(pc.add(wide, pc.if_else(_is_negative(wide), pc.negate(half), half)), kind.scale)
    return pc.cast(value, arrow_type(kind))


def truncated(value: Value, scale: int) -> Value:
    """The value without the digits beyond the scale."""
    value = _wide(value)
    while value.type.scale > scale:
        kind = pa.decimal256(_WIDE_DIGITS, max(scale, value.type.scale - _DROPPED))
        value = pc.cast(value, options=pc.CastOptions(target_type=kind, allow_decimal_truncate=True))
    return value


def to_whole(value: Value, op: str) -> Value:
    """floor or ceil."""
    wide, whole = _wide(value), truncated(value, 0)
    aside = (pc.less if op == "floor" else pc.greater)(wide, pc.cast(whole, wide.type))
    unit, none = (pa.scalar(Decimal(number), pa.decimal256(1, 0)) for number in (1, 0))
    step = pc.if_else(aside, unit, none)
    return pc.subtract(whole, step) if op == "floor" else pc.add(whole, step)


def divide(left: Value, right: Value, kind: DataType) -> Value:
    """Spark's quotient: rounded half up to 39 digits after the point, and then again to those of the type."""
    shift = _QUOTIENT_SCALE + right.type.scale - left.type.scale
    if _LONG_DIGITS + 2 + shift > _WIDE_DIGITS:
        raise DeclinedError("a quotient of decimals with many digits")
    count = max((len(operand) for operand in (left, right) if not is_scalar(operand)), default=1)
    (dividend, divisor), valid = _longs(count, left, right)
    size = np.abs(np.where(valid & (divisor != 0), divisor, 1))
    whole, rest = np.divmod(np.abs(dividend), size)
    quotient = pc.cast(pa.array(whole), pa.decimal256(_LONG_DIGITS + 1, 0))
    step = _LONG_DIGITS - len(str(int(size.max(initial=1))))
    if step < 1:
        raise DeclinedError("a divisor of many digits")
    for first in range(0, shift, step):
        digits = min(step, shift - first)
        more, rest = np.divmod(rest * 10**digits, size)
        raised = pc.multiply(quotient, pa.scalar(Decimal(10) ** digits, pa.decimal256(digits + 1, 0)))
        quotient = pc.add(raised, pc.cast(pa.array(more), pa.decimal256(_LONG_DIGITS + 1, 0)))
        quotient = pc.cast(quotient, pa.decimal256(_LONG_DIGITS + 1 + first + digits, 0))
    quotient = _wide(pc.add(quotient, pc.cast(pa.array(1 * (2 * rest >= size)), pa.decimal256(_LONG_DIGITS + 1, 0))))
    quotient = pc.if_else(pa.array((dividend < 0) != (divisor < 0)), pc.negate(quotient), quotient)
    found = pc.if_else(pa.array(valid), quotient.view(pa.decimal256(_WIDE_DIGITS, _QUOTIENT_SCALE)), None)
    result = fitted(found, kind)
    return result[0] if is_scalar(left) and is_scalar(right) else result


def _longs(count: int, *values: Value) -> tuple[list[NDArray[Any]], NDArray[np.bool_]]:
    """The integers of decimals, without their scale, and where none of them is NULL."""
    found, valid = [], np.ones(count, np.bool_)
    for value in values:
        array = pa.repeat(value, count) if is_scalar(value) else value
        low, high = _words(array)
        mine = array.is_valid().to_numpy(zero_copy_only=False)
        limit = 10**_LONG_DIGITS
        if np.any(mine & ((high != low >> 63) | (low >= limit) | (low <= -limit))):
            raise DeclinedError(f"a decimal of more than {_LONG_DIGITS} digits")
        found.append(np.where(mine, low, 1))
        valid &= mine
    return found, valid


def _words(array: pa.Array) -> tuple[NDArray[Any], NDArray[Any]]:
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words[:, 0], words[:, 1]


def to_double(value: Value) -> Value:
    """The nearest double."""
    if is_scalar(value):
        return pa.scalar(None if value.as_py() is None else float(value.as_py()), pa.float64())
    low, high = _words(value)
    if value.type.scale <= _MOST_EXACT_POWER and bool(
        np.all((high == low >> 63) & (low < _EXACT_IN_DOUBLE) & (low > -_EXACT_IN_DOUBLE))
    ):
        found = low / 10.0**value.type.scale  # a quotient of two exact numbers, rounded once
        return pa.array(found, mask=value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None)
    return pc.cast(pc.cast(value, pa.string()), pa.float64())


def _wide(value: Value) -> Value:
    return pc.cast(value, pa.decimal256(_WIDE_DIGITS, value.type.scale))


def _is_negative(value: Value) -> Value:
    return pc.less(value, pa.scalar(Decimal(0), value.type))
