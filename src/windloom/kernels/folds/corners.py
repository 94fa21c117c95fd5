"""Extrema of a + b, a - b and a · b over pairs, from the lowest and highest a and b of matching rows.

The highest sum or difference is at a known corner of the rectangle of all (a, b), and the highest product at one of its
four corners. With floating-point numbers, infinity and NaN need special care: NaN is above everything in Spark's order,
∞ - ∞ and 0 · ∞ are NaN, and pairs that are not corners may also be NaN.
"""

from __future__ import annotations

import numpy as np

from windloom.kernels.compiling import compiled
from windloom.kernels.folds.int128 import BEYOND, Int128, add, multiply, negated
from windloom.kernels.folds.products import number_at

#: Operators in compiled code; a - b becomes a + (-b) beforehand.
PLUS, TIMES = 0, 1


@compiled
def _better(left, right, lowest):  # type: ignore[no-untyped-def]
    """Return the lower or the higher of two `Int128`; if one is beyond, so is the result, so that it is noticed."""
    if left.high == BEYOND or right.high == BEYOND:
        return Int128(np.int64(BEYOND), np.uint64(0))
    is_below = left.high < right.high or (left.high == right.high and left.low < right.low)
    return left if is_below == lowest else right


@compiled
def exact_corners(  # type: ignore[no-untyped-def]
    left_rows, right_rows, out_rows, lengths, low, high, left_last, left_known, other_low, other_high, right_last,
    right_known, operator, lowest, found, out,
):  # fmt: skip
    """`out` becomes the lowest or highest value of integers that are all `Int128`; `found` shows where there is one."""
    with_left, with_right = len(left_known) > 0, len(right_known) > 0
    for s in range(len(out_rows)):
        i, j, o = np.int64(left_rows[s]), np.int64(right_rows[s]), np.int64(out_rows[s])
        step, other_step = np.int64(i < left_last), np.int64(j < right_last)
        for _ in range(lengths[s]):
            if not (with_left and not left_known[i]) and not (with_right and not right_known[j]):
                a, b = number_at(low, i), number_at(high, i)
                c, d = number_at(other_low, j), number_at(other_high, j)
                if operator == PLUS:
                    best = add(a, c) if lowest else add(b, d)
                else:
                    best = _better(multiply(a, c), multiply(b, d), lowest)
                    best = _better(best, multiply(a, d), lowest)
                    best = _better(best, multiply(b, c), lowest)
                if found[o]:
                    best = _better(Int128(out.high[o], out.low[o]), best, lowest)
                out.high[o] = best.high
                out.low[o] = best.low
                found[o] = True
            i += step
            j += other_step
            o += 1


@compiled
def float_corners(  # type: ignore[no-untyped-def]
    left_rows, right_rows, out_rows, lengths, low, high, nan, left_last, left_known, other_low, other_high, other_nan,
    right_last, right_known, operator, lowest, found, unclear, out,
):  # fmt: skip
    """`out` becomes the lowest or highest value of doubles, over the numbers that are not NaN.

    `low` and `high` are those of such numbers; they are NaN if not known.

    `nan` is 1 if some numbers are NaN and 2 if all are. If extrema do not determine the result, `unclear` becomes true.
    """
    with_left, with_right = len(left_known) > 0, len(right_known) > 0
    for s in range(len(out_rows)):
        i, j, o = np.int64(left_rows[s]), np.int64(right_rows[s]), np.int64(out_rows[s])
        step, other_step = np.int64(i < left_last), np.int64(j < right_last)
        for _ in range(lengths[s]):
            if not (with_left and not left_known[i]) and not (with_right and not right_known[j]):
                a, b, c, d = low[i], high[i], other_low[j], other_high[j]
                if nan[i] == 2 or other_nan[j] == 2 or (not lowest and (nan[i] == 1 or other_nan[j] == 1)):
                    best, is_clear = np.nan, True
                elif operator == PLUS:
                    best, is_clear = _lowest_sum(a, b, c, d) if lowest else _highest_sum(a, b, c, d)
                else:
                    best, is_clear = _lowest_product(a, b, c, d) if lowest else _highest_product(a, b, c, d)
                unclear[o] |= not is_clear
                if found[o]:
                    best = _better_float(out[o], best, lowest)
                out[o] = best
                found[o] = True
            i += step
            j += other_step
            o += 1


@compiled
def _better_float(left, right, lowest):  # type: ignore[no-untyped-def]
    if np.isnan(left) or np.isnan(right):
        return (right if np.isnan(left) else left) if lowest else np.nan
    return min(left, right) if lowest else max(left, right)


@compiled
def _highest_sum(a, b, c, d):  # type: ignore[no-untyped-def]
    if (b == np.inf and c == -np.inf) or (a == -np.inf and d == np.inf):
        return np.nan, True
    return b + d, True


@compiled
def _lowest_sum(a, b, c, d):  # type: ignore[no-untyped-def]
    if np.isnan(a) or np.isnan(c):
        return np.nan, False
    if not np.isnan(a + c):
        return a + c, True
    if a == np.inf:  # then c is -inf
        a, b, c, d = c, d, a, b
    # All numbers of the other side are inf, so the sum is inf for all numbers but -inf.
    if np.isnan(b):
        return np.inf, False
    return (np.inf if b > -np.inf else np.nan), True


@compiled
def _corner_products(a, b, c, d, lowest):  # type: ignore[no-untyped-def]
    best = np.nan
    for corner in (a * c, b * d, a * d, b * c):
        if not np.isnan(corner) and (np.isnan(best) or (corner < best if lowest else corner > best)):
            best = corner
    return best


@compiled
def _highest_product(a, b, c, d):  # type: ignore[no-untyped-def]
    for low, high, other_low, other_high in ((a, b, c, d), (c, d, a, b)):
        if low == -np.inf or high == np.inf:
            if other_low == 0.0 or other_high == 0.0:
                return np.nan, True
            if other_low < 0.0 and other_high > 0.0:
                return np.inf, False  # there may be a zero between them
    return _corner_products(a, b, c, d, False), True


@compiled
def _lowest_product(a, b, c, d):  # type: ignore[no-untyped-def]
    if np.isnan(a) or np.isnan(b) or np.isnan(c) or np.isnan(d):
        return np.nan, False
    best = _corner_products(a, b, c, d, True)
    if np.isnan(best):
        # Zeros meet only infinities; if these have both signs, there may be a number between them.
        return best, a == b and c == d
    return best, True


@compiled
def negate(numbers):  # type: ignore[no-untyped-def]
    high, low = np.empty_like(numbers.high), np.empty_like(numbers.low)
    for i in range(len(high)):
        number = negated(Int128(numbers.high[i], numbers.low[i]))
        high[i] = number.high
        low[i] = number.low
    return Int128(high, low)
