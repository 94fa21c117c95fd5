"""Arithmetic on decimals: exact in up to 76 digits, then rounded half up to the digits that Spark keeps."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windloom.model.types import DataType
from windloom.rounds.arrow import arrow_type
from windloom.rounds.evaluate.values import DeclinedError, Value, is_scalar

_EXACT = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_MOST_DIGITS = 38
_WIDE_DIGITS = 76
#: Digits after the point to which Spark divides before it rounds to the scale of the result.
_QUOTIENT_SCALE = 39
#: Integers below it, and powers of ten up to the 22nd, are exact as doubles.
_EXACT_IN_DOUBLE = 2**53
_MOST_EXACT_POWER = 22


def combine(op: str, left: Value, right: Value, kind: DataType) -> Value:
    """A sum, difference or product."""
    scale = left.type.scale + right.type.scale if op == "*" else max(left.type.scale, right.type.scale)
    if scale > _MOST_DIGITS:
        raise DeclinedError("a product of decimals with many digits")
    result = _EXACT[op](_wide(left), _wide(right))
    if op == "*":
        result = pc.cast(result, pa.decimal128(_MOST_DIGITS, scale))  # Spark rounds longer products twice
    return fitted(result, kind)


def fitted(value: Value, kind: DataType) -> Value:
    """Rounded half up to the type; what has too many digits before the point cannot be converted."""
    if value.type.scale > kind.scale:
        roomy = pc.cast(value, pa.decimal256(_WIDE_DIGITS, value.type.scale))
        value = pc.round(roomy, ndigits=kind.scale, round_mode="half_towards_infinity")
    return pc.cast(value, arrow_type(kind))


def divide(left: Value, right: Value, kind: DataType) -> Value:
    """Spark's quotient: 39 digits after the point, rounded half up, and then once more to the type's."""
    shift = _QUOTIENT_SCALE + right.type.scale - left.type.scale
    dividend, divisor = _whole(left), _whole(right)
    # Arrow divides to one digit more than the divisor has, and names room for all of it.
    if dividend.type.precision + shift + 2 + divisor.type.precision + 1 > _WIDE_DIGITS:
        raise DeclinedError("a quotient of decimals with many digits")
    scaled = pc.multiply(dividend, pa.scalar(Decimal(10) ** shift, pa.decimal256(shift + 1, 0)))
    divisor = pc.if_else(pc.equal(divisor, pa.scalar(0, divisor.type)), pa.scalar(None, divisor.type), divisor)
    quotient = pc.round(pc.divide(scaled, divisor), ndigits=0, round_mode="half_towards_infinity")
    return fitted(_viewed(pc.cast(quotient, pa.decimal256(_WIDE_DIGITS, 0)), _QUOTIENT_SCALE), kind)


def to_double(value: Value) -> Value:
    """The nearest double."""
    if is_scalar(value):
        return pa.scalar(None if value.as_py() is None else float(value.as_py()), pa.float64())
    words = np.frombuffer(value.buffers()[1], np.int64).reshape(-1, 2)[value.offset : value.offset + len(value)]
    low, high = words[:, 0], words[:, 1]
    if value.type.scale <= _MOST_EXACT_POWER and bool(
        np.all((high == low >> 63) & (low < _EXACT_IN_DOUBLE) & (low > -_EXACT_IN_DOUBLE))
    ):
        found = low / 10.0**value.type.scale  # of two exact numbers: rounded once
        return pa.array(found, mask=value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None)
    return pc.cast(pc.cast(value, pa.string()), pa.float64())


def _wide(value: Value) -> Value:
    return pc.cast(value, pa.decimal256(value.type.precision, value.type.scale))


def _whole(value: Value) -> Value:
    """The integers of decimals, without their scale, and of no more digits than the largest of them has."""
    whole = _viewed(pc.cast(value, pa.decimal256(_WIDE_DIGITS, value.type.scale)), 0)
    ends = [whole.as_py()] if is_scalar(whole) else pc.min_max(whole).as_py().values()
    digits = max((len(str(abs(int(one)))) for one in ends if one is not None), default=1)
    return pc.cast(whole, pa.decimal256(digits, 0))


def _viewed(value: Value, scale: int) -> Value:
    """The same integers as decimals of another scale."""
    kind = pa.decimal256(_WIDE_DIGITS, scale)
    return pa.repeat(value, 1).view(kind)[0] if is_scalar(value) else value.view(kind)
