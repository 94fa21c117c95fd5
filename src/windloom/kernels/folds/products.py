"""Adds up products over matching rows: exactly for integers, as double-double pairs for floats.

`left` and `right` are the sides of a product, whichever of them is the parent. A side whose columns have one row more
than its lanes has a last row that stands for no match, and is used for a whole stretch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled, compiled_by_type, compiled_in
from windloom.kernels.families import (
    AddFloat,
    AddInt,
    Columns,
    Moments,
    combine,
    empty_like,
    identity,
    is_selective,
    load,
    store,
)
from windloom.kernels.folds.int128 import Int128, add, multiply


@compiled_in
def _multiply_add(typing_context: Any, left: Any, right: Any, addend: Any) -> Any:
    """left · right + addend, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.DoubleType()
        fused = builder.module.declare_intrinsic("llvm.fma", [kind], ir.FunctionType(kind, [kind] * 3))
        return builder.call(fused, arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@compiled_by_type
def number_at(column: Any, row: Any) -> Callable[..., Any]:
    """Compiled code: a value of columns that are `AddInt`, `Int128` or `AddFloat`, or of a plain array."""
    if isinstance(column, types.Array):
        return lambda column, row: column[row]
    if getattr(column, "instance_class", None) is Int128:
        return lambda column, row: Int128(column.high[row], column.low[row])
    return lambda column, row: load(column, row)


@compiled_by_type
def float_product(left: Any, right: Any) -> Callable[..., Any]:
    """Compiled code: the product of a double-double pair and a pair or a double."""
    # The error of the leading product is exact; products of two remainders are below it by 2^-106.
    if isinstance(right, types.Float):

        def by_double(left: Any, right: Any) -> Any:
            high = left.high * right
            low = _multiply_add(left.high, right, -high) + left.low * right
            return AddFloat(high, low if np.isfinite(high) else 0.0)

        return by_double

    def by_pair(left: Any, right: Any) -> Any:
        high = left.high * right.high
        low = _multiply_add(left.high, right.high, -high) + (left.high * right.low + left.low * right.high)
        return AddFloat(high, low if np.isfinite(high) else 0.0)

    return by_pair


@compiled
def add_products(left_rows, right_rows, out_rows, lengths, left, left_last, right, right_last, out):  # type: ignore[no-untyped-def]
    """`out` += left · right, where `left` and `right` are both `AddInt` or both `Int128`, and `out` is `Int128`."""
    for s in range(len(out_rows)):
        i, j, o = np.int64(left_rows[s]), np.int64(right_rows[s]), np.int64(out_rows[s])
        step, other_step = np.int64(i < left_last), np.int64(j < right_last)
        for _ in range(lengths[s]):
            total = add(Int128(out.high[o], out.low[o]), multiply(number_at(left, i), number_at(right, j)))
            out.high[o] = total.high
            out.low[o] = total.low
            i += step
            j += other_step
            o += 1


@compiled
def add_small_products(left_rows, right_rows, out_rows, lengths, left, left_last, right, right_last, out):  # type: ignore[no-untyped-def]
    """`out` += left · right with plain 64-bit integers throughout, for sums that are known to fit."""
    for s in range(len(out_rows)):
        i, j, o, length = np.int64(left_rows[s]), np.int64(right_rows[s]), np.int64(out_rows[s]), lengths[s]
        # One of three loops, each of which compiles to vector code.
        if i < left_last and j < right_last:
            for k in range(length):
                out[o + k] += left[i + k] * right[j + k]
        elif j < right_last:
            factor = left[i]
            for k in range(length):
                out[o + k] += factor * right[j + k]
        else:
            factor = right[j]
            step = np.int64(i < left_last)
            for k in range(length):
                out[o + k] += left[i + k * step] * factor


@compiled
def add_float_products(  # type: ignore[no-untyped-def]
    left_rows, right_rows, out_rows, lengths, left, left_last, left_known, right, right_last, right_known, out
):  # fmt: skip
    """`out` += left · right where both are known; `left` and `out` are pairs, `right` is pairs or doubles.

    A product with an unknown factor adds nothing, even if the other factor is infinite. Empty arrays mean that all are
    known.
    """
    with_left, with_right = len(left_known) > 0, len(right_known) > 0
    for s in range(len(out_rows)):
        i, j, o = np.int64(left_rows[s]), np.int64(right_rows[s]), np.int64(out_rows[s])
        step, other_step = np.int64(i < left_last), np.int64(j < right_last)
        for _ in range(lengths[s]):
            if not (with_left and not left_known[i]) and not (with_right and not right_known[j]):
                store(out, o, combine(load(out, o), float_product(number_at(left, i), number_at(right, j))))
            i += step
            j += other_step
            o += 1


@compiled
def find_known(left_rows, right_rows, out_rows, lengths, left, left_last, right, right_last, out):  # type: ignore[no-untyped-def]
    """`out` |= left & right; an empty array means that all are known."""
    for s in range(len(out_rows)):
        i, j, o = np.int64(left_rows[s]), np.int64(right_rows[s]), np.int64(out_rows[s])
        step, other_step = np.int64(i < left_last), np.int64(j < right_last)
        for _ in range(lengths[s]):
            out[o] |= (len(left) == 0 or left[i]) and (len(right) == 0 or right[j])
            i += step
            j += other_step
            o += 1


@compiled
def _normalised(high, low):  # type: ignore[no-untyped-def]
    """In place: high halves become the nearest doubles of the pairs."""
    for i in range(len(high)):
        total = high[i] + low[i]
        moved = total - high[i]
        error = (high[i] - (total - moved)) + (low[i] - moved)
        high[i] = total
        low[i] = error if np.isfinite(total) else 0.0


def normalised(pairs: AddFloat) -> AddFloat:
    """Return the numbers, each as the nearest double and a remainder; a sum of cells need not be in this form."""
    high, low = (np.array(half, np.float64) for half in pairs)
    _normalised(high, low)
    return AddFloat(high, low)


#: Integers below this are doubles without rounding.
_EXACT = 1 << 53


def as_doubles(numbers: AddInt) -> NDArray[np.float64] | None:
    """Return the numbers as doubles if that is exact."""
    if len(numbers.value) and max(-int(numbers.value.min()), int(numbers.value.max())) > _EXACT:
        return None
    doubles: NDArray[np.float64] = numbers.value.astype(np.float64)
    return doubles


# Combines values of one side over matching rows, each value as often as its row is matched.


@compiled_by_type
def weigh(value: Any, times: Any) -> Callable[..., Any]:
    """Compiled code: the value combined with itself so that it counts `times` times, at least once."""
    if getattr(value, "instance_class", None) is Moments:
        return lambda value, times: Moments(value.count * times, value.mean, value.square * times)
    if is_selective(value):
        return lambda value, times: value
    return _doubled


def _doubled(value: Any, times: Any) -> Any:
    # Like computing a power: the value is doubled for every binary digit, and added for each digit that is 1.
    while times & 1 == 0:
        value = combine(value, value)
        times >>= 1
    total = value
    times >>= 1
    while times > 0:
        value = combine(value, value)
        if times & 1 == 1:
            total = combine(total, value)
        times >>= 1
    return total


@compiled
def combine_weighed(left_rows, right_rows, out_rows, lengths, left, left_last, times, times_last, out):  # type: ignore[no-untyped-def]
    """`out` is combined with `left`, counted `times` times; `times` is integers, or doubles for moments."""
    for s in range(len(out_rows)):
        i, j, o = np.int64(left_rows[s]), np.int64(right_rows[s]), np.int64(out_rows[s])
        step, other_step = np.int64(i < left_last), np.int64(j < times_last)
        for _ in range(lengths[s]):
            if times[j] > 0:
                store(out, o, combine(load(out, o), weigh(load(left, i), times[j])))
            i += step
            j += other_step
            o += 1


@compiled
def fill_neutral(out):  # type: ignore[no-untyped-def]
    """Set every value to the neutral one."""
    for i in range(len(out[0])):
        store(out, i, identity(out))


def combine_arrays(left: Columns, right: Columns) -> Columns:
    """Return every value of `left` combined with the value of `right` at the same place."""
    out = empty_like(left, len(left[0]))
    _combine_arrays(left, right, out)
    return out


@compiled
def _combine_arrays(left, right, out):  # type: ignore[no-untyped-def]
    for i in range(len(out[0])):
        store(out, i, combine(load(left, i), load(right, i)))
