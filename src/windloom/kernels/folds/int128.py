"""Integers of 128 bits for compiled code: products and sums that show if they no longer fit.

A sum over pairs may exceed 64 bits, for a while or in the end: a million tuples on both sides are 10^12 pairs. A number
that 128 bits cannot hold becomes *beyond*, and whatever is computed from it is beyond too, so an overflow is found
where the result is read, however long ago it happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled, compiled_by_type, compiled_in
from windloom.kernels.families import AddFloat, AddInt


class Int128(NamedTuple):
    """`high · 2^64 + low`; beyond if `high` is `BEYOND`."""

    high: Any  # int64
    low: Any  # uint64


#: The upper half of a number that does not fit; such numbers are at least 2^127 - 2^64, far above 38 digits.
BEYOND = -(2**63)


def zero_wide(length: int) -> Int128:
    return Int128(np.zeros(length, np.int64), np.zeros(length, np.uint64))


@compiled_in
def _product(typing_context: Any, left: Any, right: Any) -> Any:
    """Return the whole product of two 64-bit integers, signed or not, as its upper and lower half."""
    is_signed = left is types.int64
    result = types.Tuple((left, types.uint64))  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, double = ir.IntType(64), ir.IntType(128)
        widened = [(builder.sext if is_signed else builder.zext)(argument, double) for argument in arguments]
        product = builder.mul(*widened)
        high = builder.trunc(builder.lshr(product, ir.Constant(double, 64)), word)
        return context.make_tuple(builder, result, [high, builder.trunc(product, word)])

    if left is not right or left not in (types.int64, types.uint64):
        return None
    return result(left, right), generate


@compiled_by_type
def multiply(left: Any, right: Any) -> Callable[..., Any] | None:
    """Compiled code: the product of two numbers as an `Int128`; both are `AddInt` values, or both `Int128`."""
    kinds = getattr(left, "instance_class", None), getattr(right, "instance_class", None)
    if kinds == (AddInt, AddInt):
        return lambda left, right: Int128(*_product(left.value, right.value))
    return _multiply_wide if kinds == (Int128, Int128) else None


def _multiply_wide(left: Any, right: Any) -> Any:
    if left.high == BEYOND or right.high == BEYOND:
        return Int128(np.int64(BEYOND), np.uint64(0))
    long, short = _size(left), _size(right)
    if long.high != np.uint64(0) and short.high != np.uint64(0):
        return Int128(np.int64(BEYOND), np.uint64(0))
    if long.high == np.uint64(0):
        long, short = short, long
    carried, middle = _product(long.high, short.low)
    top, low = _product(long.low, short.low)
    high = top + middle
    if carried != np.uint64(0) or high < top or high >= np.uint64(2**63 - 1):
        return Int128(np.int64(BEYOND), np.uint64(0))
    product = Int128(np.int64(high), low)
    return _negative(product) if (left.high < 0) != (right.high < 0) else product


@compiled
def _negative(number):  # type: ignore[no-untyped-def]
    low = ~number.low + np.uint64(1)
    return Int128(~number.high + np.int64(low == np.uint64(0)), low)


@compiled
def _size(number):  # type: ignore[no-untyped-def]
    """Return the magnitude, with an unsigned upper half."""
    positive = _negative(number) if number.high < 0 else number
    return Int128(np.uint64(positive.high), positive.low)


@compiled
def add(left, right):  # type: ignore[no-untyped-def]
    """Return the sum of two `Int128`."""
    low = left.low + right.low
    high = left.high + right.high + np.int64(low < left.low)
    is_beyond = ((left.high ^ high) & (right.high ^ high)) < 0
    if is_beyond or left.high == BEYOND or right.high == BEYOND:
        return Int128(np.int64(BEYOND), np.uint64(0))
    return Int128(high, low)


@compiled
def negated(number):  # type: ignore[no-untyped-def]
    """Return the number with the other sign; beyond stays beyond."""
    return number if number.high == BEYOND else _negative(number)


@compiled
def _from_limbs(limbs, weights, out):  # type: ignore[no-untyped-def]
    """`out[i]` = the sum of `limbs[j][i] · 2^weights[j]`."""
    for i in range(len(out.high)):
        total = Int128(np.int64(0), np.uint64(0))
        for j in range(len(limbs)):
            limb = limbs[j, i]
            if weights[j] < 64:
                shifted = Int128(*_product(limb, np.int64(1) << weights[j]))
            else:
                shift = weights[j] - 64
                moved = limb << shift
                shifted = Int128(moved if moved >> shift == limb else np.int64(BEYOND), np.uint64(0))
            total = add(total, shifted)
        out.high[i] = total.high
        out.low[i] = total.low


def from_limbs(limbs: list[NDArray[np.int64]], weights: list[int]) -> Int128:
    """Return numbers from signed pieces, whose j-th counts `2^weights[j]`; no weight is above 96 or equals 63."""
    out = zero_wide(len(limbs[0]))
    _from_limbs(np.stack(limbs), np.array(weights, np.int64), out)
    return out


@compiled
def _join_halves(high, low, out):  # type: ignore[no-untyped-def]
    """Join halves; return whether all numbers fit."""
    beyond = np.int64(0)
    for i in range(len(out)):
        head = high[i] + (low[i] >> 32)
        beyond |= head ^ (head << 32 >> 32)
        out[i] = (head << 32) | (low[i] & 0xFFFFFFFF)
    return beyond == 0


def from_halves(high: NDArray[np.int64], low: NDArray[np.int64]) -> AddInt | None:
    """Return the numbers `high · 2^32 + low` if all of them fit 64 bits; no sum of halves comes close to 64 bits."""
    out = np.empty(len(high), np.int64)
    return AddInt(out) if _join_halves(high, low, out) else None


@compiled
def _fits(high, low):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(high)):
        count += high[i] == np.int64(low[i]) >> 63
    return count == len(high)


def narrowed(numbers: Int128) -> AddInt | Int128:
    """Return the numbers in 64 bits if all of them fit."""
    return AddInt(numbers.low.view(np.int64)) if _fits(numbers.high, numbers.low) else numbers


def widened(numbers: AddInt | Int128) -> Int128:
    if isinstance(numbers, Int128):
        return numbers
    return Int128(numbers.value >> 63, numbers.value.view(np.uint64))


@compiled
def _add_signed(left, right, sign):  # type: ignore[no-untyped-def]
    for i in range(len(left.high)):
        right_number = Int128(right.high[i], right.low[i])
        total = add(Int128(left.high[i], left.low[i]), right_number if sign > 0 else negated(right_number))
        left.high[i] = total.high
        left.low[i] = total.low


def add_signed(total: Int128, numbers: AddInt | Int128, sign: int) -> None:
    """Add numbers to `total`, or subtracts them if `sign` is -1."""
    _add_signed(total, widened(numbers), sign)


def as_floats(numbers: AddInt | Int128) -> AddFloat:
    """Return numbers as doubles and their remainders; numbers beyond 128 bits become NaN."""
    if isinstance(numbers, AddInt):
        return AddFloat(*_two_sum(*_halves(numbers.value)))
    upper, lower = _halves(numbers.high), (numbers.low >> np.uint64(32), numbers.low & np.uint64(0xFFFFFFFF))
    total, rest = _two_sum(upper[0] * 2.0**64, upper[1] * 2.0**64)
    for piece in (lower[0].astype(np.float64) * 2.0**32, lower[1].astype(np.float64)):
        total, error = _two_sum(total, piece)
        rest = rest + error
    total, rest = _two_sum(total, rest)
    is_beyond = numbers.high == BEYOND
    return AddFloat(np.where(is_beyond, np.nan, total), np.where(is_beyond, 0.0, rest))


def _halves(values: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two doubles whose sum is exactly the integer."""
    return (values >> 32).astype(np.float64) * 2.0**32, (values & 0xFFFFFFFF).astype(np.float64)


def _two_sum(left: NDArray[np.float64], right: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rounded sum and its error, exactly (Knuth)."""
    total = left + right
    moved = total - left
    return total, (left - (total - moved)) + (right - moved)


def as_python(numbers: AddInt | Int128, row: int) -> int | None:
    """Return one number as Python's; None if it is beyond."""
    if isinstance(numbers, AddInt):
        return int(numbers.value[row])
    return None if numbers.high[row] == BEYOND else (int(numbers.high[row]) << 64) + int(numbers.low[row])


@compiled
def _scale(numbers, factor, out):  # type: ignore[no-untyped-def]
    for i in range(len(out.high)):
        number = multiply(Int128(numbers.high[i], numbers.low[i]), factor)
        out.high[i] = number.high
        out.low[i] = number.low


def scaled(numbers: Int128, digits: int) -> Int128:
    """Return the numbers times 10^digits."""
    if not digits:
        return numbers
    factor, out = 10**digits, zero_wide(len(numbers.high))
    _scale(numbers, Int128(np.int64(factor >> 64), np.uint64(factor & (2**64 - 1))), out)
    return out


def within(numbers: Int128, limit: int) -> NDArray[np.bool_]:
    """Return a mask of the numbers that are above -limit and below limit; those that are beyond are not."""
    top, rest = limit >> 64, np.uint64(limit & (2**64 - 1))
    below = (numbers.high < top) | ((numbers.high == top) & (numbers.low < rest))
    bottom, rest = -limit >> 64, np.uint64(-limit & (2**64 - 1))
    above = (numbers.high > bottom) | ((numbers.high == bottom) & (numbers.low > rest))
    return np.asarray(below & above & (numbers.high != BEYOND))
