"""Arithmetic on Arrow columns that equals Spark's to the last bit: numbers, decimals, casts and rounding.

A value is an Arrow array with one value per row, or an Arrow scalar if all rows have the same value. What Spark may
refuse (an overflow, a division by zero) is declined. Decimals are computed exactly in up to 75 digits, then rounded
half up to the digits that Spark keeps. Arrow 26 sometimes divides decimals of 256 bits wrongly if the divisor takes
more than 32 bits. So digits are dropped nine at a time, and quotients are computed with 64-bit integers.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.expressions.node import Node
from windloom.expressions.types import MOST_DIGITS
from windloom.model.types import DataType, TypeKind, arrow_type

Value: TypeAlias = "pa.Array | pa.Scalar"
#: The rows whose values are needed (never NULL); None: all of them.
Active: TypeAlias = "pa.Array | None"

#: Operations that never fail, and those that fail on overflow, for integers.
_OPERATIONS = {
    "+": (pc.add, pc.add_checked),
    "-": (pc.subtract, pc.subtract_checked),
    "*": (pc.multiply, pc.multiply_checked),
    "negative": (pc.negate, pc.negate_checked),
    "abs": (pc.abs, pc.abs_checked),
}
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
#: Digits of the decimals that hold any bigint.
_BIGINT_DIGITS = 19
#: Rounded numbers have fewer digits than this, so that all of them, and the halves between them, are distinct doubles.
_MOST_UNITS = 1e14


class DeclinedError(Exception):
    """The result is left to Spark, which may refuse one of the rows."""


def is_scalar(value: Value) -> bool:
    return isinstance(value, pa.Scalar)


def masked(operands: list[Value], active: Active) -> list[Value]:
    """Return the operands with NULL where no result is needed, so that no such row is refused.

    An operation on NULL gives NULL, so one operand is enough; one on constants alone is the same for all rows.
    """
    at = next((index for index, operand in enumerate(operands) if not is_scalar(operand)), None)
    if active is None or at is None:
        return operands
    wanted = pc.if_else(active, operands[at], pa.scalar(None, operands[at].type))
    return [*operands[:at], wanted, *operands[at + 1 :]]


def any_of(flags: Value) -> bool:
    """Whether one of the flags is true; NULL is not."""
    return bool(flags.as_py()) if is_scalar(flags) else bool(pc.any(flags).as_py())


def _with_numpy(function: Any, *operands: Value) -> Value:
    """Apply a NumPy function to plain numbers; a row with a NULL gives NULL."""
    lengths = [len(operand) for operand in operands if not is_scalar(operand)]
    arrays = [
        pa.repeat(operand, lengths[0] if lengths else 1) if is_scalar(operand) else operand for operand in operands
    ]
    valid = np.ones(len(arrays[0]), np.bool_)
    for array in arrays:
        if array.null_count:
            valid &= array.is_valid().to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        # Any number will do for NULL.
        filled = (pc.fill_null(array, 1) if array.null_count else array for array in arrays)
        result = function(*(array.to_numpy(zero_copy_only=False) for array in filled))
    values = pa.array(result, mask=None if valid.all() else ~valid)
    return values if lengths else values[0]


# Integers and floating-point numbers ----------------------------------------------------------------------------------


def combine(node: Node, operands: list[Value], active: Active) -> Value:
    """Compute a sum, difference, product, negative or absolute value."""
    plain, checked = _OPERATIONS[node.op]
    if node.kind.kind is TypeKind.INTEGER:
        return checked(*masked(operands, active))
    if node.kind.kind is TypeKind.FLOAT or len(operands) == 1:
        return plain(*operands)
    left, right = masked(operands, active)
    scale = left.type.scale + right.type.scale if node.op == "*" else max(left.type.scale, right.type.scale)
    if scale > MOST_DIGITS:
        raise DeclinedError("a product of decimals with many digits")
    result = plain(*(pc.cast(each, pa.decimal256(each.type.precision, each.type.scale)) for each in (left, right)))
    if node.op == "*":
        result = pc.cast(result, pa.decimal128(MOST_DIGITS, scale))  # Spark rounds longer products twice
    return _fitted(result, node.kind)


def divide(node: Node, operands: list[Value], active: Active) -> Value:
    """Compute a quotient, a whole quotient or a remainder; only `try_divide` does not decline a division by zero."""
    left, right = operands if node.op == "try_divide" else masked(operands, active)
    is_zero = pc.equal(right, pa.scalar(0, right.type))
    if node.op != "try_divide" and any_of(pc.and_(is_zero, pc.is_valid(left))):
        raise DeclinedError("a division by zero")
    if node.op == "%":
        return _with_numpy(_remainder, left, right)
    if node.op == "/":
        is_decimal = node.kind.kind is TypeKind.DECIMAL
        return _divide_decimals(left, right, node.kind) if is_decimal else pc.divide(left, right)
    # NULL divided by zero is not refused, but no processor divides integers by it.
    divisor = pc.if_else(is_zero, pa.scalar(None, right.type), right)
    return (pc.divide_checked if node.op == "div" else pc.divide)(left, divisor)


def _remainder(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return remainders with the sign of the dividend, as in Java."""
    if left.dtype.kind == "f":
        return np.asarray(np.fmod(left, right))
    # Some processors cannot divide the smallest number by -1, or anything by 0; NULL stands for such rows later.
    return np.asarray(np.fmod(left, np.where((right == -1) | (right == 0), 1, right).astype(right.dtype)))


# Decimals -------------------------------------------------------------------------------------------------------------


def _fitted(value: Value, kind: DataType) -> Value:
    """Round half up to the type; a value with too many digits before the point cannot be converted."""
    if value.type.scale > kind.scale:
        wide = _wide(value)
        half = pa.scalar(Decimal(5).scaleb(-kind.scale - 1), wide.type)
        is_negative = pc.less(wide, pa.scalar(Decimal(0), wide.type))
        value = _truncated(pc.add(wide, pc.if_else(is_negative, pc.negate(half), half)), kind.scale)
    return pc.cast(value, arrow_type(kind))


def _truncated(value: Value, scale: int) -> Value:
    """Cut off the digits beyond the scale."""
    value = _wide(value)
    while value.type.scale > scale:
        kind = pa.decimal256(_WIDE_DIGITS, max(scale, value.type.scale - _DROPPED))
        value = pc.cast(value, options=pc.CastOptions(target_type=kind, allow_decimal_truncate=True))
    return value


def _divide_decimals(left: Value, right: Value, kind: DataType) -> Value:
    """Compute Spark's quotient: rounded half up to 39 digits after the point, and then again to those of the type."""
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
    result = pc.if_else(pa.array(valid), quotient.view(pa.decimal256(_WIDE_DIGITS, _QUOTIENT_SCALE)), None)
    result = _fitted(result, kind)
    return result[0] if is_scalar(left) and is_scalar(right) else result


def _longs(count: int, *values: Value) -> tuple[list[NDArray[Any]], NDArray[np.bool_]]:
    """Return the integers of decimals, without their scale, and where none of them is NULL."""
    longs, valid = [], np.ones(count, np.bool_)
    for value in values:
        array = pa.repeat(value, count) if is_scalar(value) else value
        low, high = _words(array)
        present = array.is_valid().to_numpy(zero_copy_only=False)
        limit = 10**_LONG_DIGITS
        if np.any(present & ((high != low >> 63) | (low >= limit) | (low <= -limit))):
            raise DeclinedError(f"a decimal of more than {_LONG_DIGITS} digits")
        longs.append(np.where(present, low, 1))
        valid &= present
    return longs, valid


def _words(array: pa.Array) -> tuple[NDArray[Any], NDArray[Any]]:
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words[:, 0], words[:, 1]


def _to_double(value: Value) -> Value:
    """Convert to the nearest double."""
    if is_scalar(value):
        return pa.scalar(None if value.as_py() is None else float(value.as_py()), pa.float64())
    low, high = _words(value)
    fits = (high == low >> 63) & (low < _EXACT_IN_DOUBLE) & (low > -_EXACT_IN_DOUBLE)
    if value.type.scale > _MOST_EXACT_POWER or not fits.all():
        return pc.cast(pc.cast(value, pa.string()), pa.float64())
    quotients = low / 10.0**value.type.scale  # a quotient of two exact numbers, rounded once
    return pa.array(quotients, mask=value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None)


def _wide(value: Value) -> Value:
    return pc.cast(value, pa.decimal256(_WIDE_DIGITS, value.type.scale))


# Casts ----------------------------------------------------------------------------------------------------------------


def cast(node: Node, operands: list[Value], active: Active) -> Value:
    """Convert as CAST does in ANSI mode: a value that does not fit is declined, never truncated."""
    source, kind = node.operands[0].kind, node.kind
    if source == kind:
        return operands[0]
    if kind.kind is TypeKind.FLOAT:
        is_decimal = source.kind is TypeKind.DECIMAL
        return _to_double(operands[0]) if is_decimal else pc.cast(operands[0], arrow_type(kind), safe=False)
    (value,) = masked(operands, active)
    if kind.kind is TypeKind.DECIMAL:
        if source.kind is TypeKind.INTEGER:
            value = pc.cast(pc.cast(value, pa.int64()), pa.decimal128(_BIGINT_DIGITS, 0))
        return _fitted(value, kind)
    if kind.kind is not TypeKind.INTEGER:
        raise DeclinedError(f"a cast of {source} to {kind}")
    if source.kind is TypeKind.FLOAT:
        return _whole(pc.trunc(pc.cast(value, pa.float64())), kind)
    if source.kind is TypeKind.DECIMAL:
        value = _truncated(value, 0)
    return pc.cast(value, arrow_type(kind))


def _whole(value: Value, kind: DataType) -> Value:
    """Convert doubles without a fraction to integers."""
    limit = 2.0 ** (kind.bits - 1)
    fits = pc.and_(pc.less(value, limit), pc.greater_equal(value, -limit))  # FALSE for NaN
    if any_of(pc.invert(fits)):
        raise DeclinedError(f"a number that does not fit {kind}")
    return pc.cast(value, arrow_type(kind), safe=False)


# Rounding -------------------------------------------------------------------------------------------------------------


def round_off(node: Node, operands: list[Value], active: Active) -> Value:
    """Compute round(), floor() or ceil()."""
    (value,), is_floor, is_decimal = masked(operands, active), node.op == "floor", node.kind.kind is TypeKind.DECIMAL
    if node.op == "round":
        return _fitted(value, node.kind) if is_decimal else _with_numpy(partial(_half_up, digits=node.value), value)
    if not is_decimal:
        return _whole(pc.floor(value) if is_floor else pc.ceil(value), node.kind)
    wide, whole = _wide(value), _truncated(value, 0)
    is_aside = (pc.less if is_floor else pc.greater)(wide, pc.cast(whole, wide.type))
    step = pc.if_else(is_aside, *(pa.scalar(Decimal(number), pa.decimal256(1, 0)) for number in (1, 0)))
    return _fitted(pc.subtract(whole, step) if is_floor else pc.add(whole, step), node.kind)


def _half_up(values: NDArray[Any], digits: int) -> NDArray[Any]:
    """Round as Spark does, by the digits of the printed double: 2.675 becomes 2.68, although the double is less.

    A double is printed as a number halfway between two results if and only if it is the double nearest to that number,
    and otherwise lies on the same side of it as what is printed.
    """
    power = 10.0**digits
    size = np.abs(values)
    units = np.floor(size * power)
    finite = np.isfinite(values)
    if np.any(finite & (units >= _MOST_UNITS)):
        raise DeclinedError("round() of a number with many digits")
    halfway = (2.0 * units + 1.0) / (2.0 * power)
    units += size >= halfway
    rounded = np.where(units == 0, 0.0, np.copysign(units / power, values))  # no -0.0: decimals do not have it
    return np.where(finite, rounded, values)
