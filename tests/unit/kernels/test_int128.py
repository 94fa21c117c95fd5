"""Integers of 128 bits: exact where they fit, beyond where they do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from windloom.kernels.compiling import compiled
from windloom.kernels.families import AddInt
from windloom.kernels.folds.int128 import (
    Int128,
    add_signed,
    as_floats,
    as_python,
    from_halves,
    from_limbs,
    multiply,
    narrowed,
    scaled,
    widened,
    within,
    zero_wide,
)

WIDE = st.one_of(st.integers(-(2**127) + 2**64, 2**127 - 2**64), st.integers(-(2**64), 2**64), st.integers(-9, 9))
#: Numbers from here on are beyond; just below it they may be.
LIMIT = 2**127 - 2**65


def wide(*numbers: int) -> Int128:
    high, low = [number >> 64 for number in numbers], [number & (2**64 - 1) for number in numbers]
    return Int128(np.array(high, np.int64), np.array(low, np.uint64))


@compiled
def _multiplied(left, right, out):  # type: ignore[no-untyped-def]
    for i in range(len(out.high)):
        product = multiply(Int128(left.high[i], left.low[i]), Int128(right.high[i], right.low[i]))
        out.high[i], out.low[i] = product.high, product.low


@compiled
def _multiplied_narrow(left, right, out):  # type: ignore[no-untyped-def]
    for i in range(len(out.high)):
        product = multiply(AddInt(left[i]), AddInt(right[i]))
        out.high[i], out.low[i] = product.high, product.low


def agrees(found: int | None, exact: int) -> bool:
    return found == exact if abs(exact) < LIMIT else found in (None, exact)


@settings(max_examples=examples(300), deadline=None)
@given(left=WIDE, right=WIDE)
def test_products_and_sums_are_exact_or_beyond(left: int, right: int) -> None:
    product, total = zero_wide(1), wide(left)
    _multiplied(wide(left), wide(right), product)
    assert agrees(as_python(product, 0), left * right)
    add_signed(total, wide(right), 1)
    assert agrees(as_python(total, 0), left + right)
    difference = wide(left)
    add_signed(difference, wide(right), -1)
    assert agrees(as_python(difference, 0), left - right)


@settings(max_examples=examples(100), deadline=None)
@given(left=st.integers(-(2**63), 2**63 - 1), right=st.integers(-(2**63), 2**63 - 1))
def test_products_of_64_bits_always_fit(left: int, right: int) -> None:
    product = zero_wide(1)
    _multiplied_narrow(np.array([left]), np.array([right]), product)
    assert as_python(product, 0) == left * right


def test_what_is_beyond_stays_beyond() -> None:
    total, huge = zero_wide(1), wide(2**126)
    for _ in range(2):
        add_signed(total, huge, 1)
    assert as_python(total, 0) is None
    add_signed(total, huge, -1)
    assert as_python(total, 0) is None
    product = zero_wide(1)
    _multiplied(total, wide(0), product)
    assert as_python(product, 0) is None


@settings(max_examples=examples(100), deadline=None)
@given(number=WIDE)
def test_numbers_become_doubles_with_a_remainder(number: int) -> None:
    pair = as_floats(wide(number))
    assert abs(Fraction(pair.high[0]) + Fraction(pair.low[0]) - number) <= abs(number) * Fraction(2) ** -104
    if -(2**63) <= number < 2**63:
        pair = as_floats(AddInt(np.array([number])))
        assert Fraction(pair.high[0]) + Fraction(pair.low[0]) == number


def test_limbs_are_carried_and_numbers_that_fit_are_narrowed() -> None:
    limbs = [np.array([limb], np.int64) for limb in (-1, 5, -3, 2)]
    exact = -1 + (5 << 32) + (-3 << 64) + (2 << 96)
    assert as_python(from_limbs(limbs, [0, 32, 64, 96]), 0) == exact
    assert as_python(from_limbs([np.array([1 << 52]) for _ in limbs], [0, 32, 64, 96]), 0) is None
    assert isinstance(narrowed(wide(2**63 - 1, -(2**63))), AddInt)
    assert isinstance(narrowed(wide(2**63)), Int128)
    assert as_python(widened(AddInt(np.array([-5]))), 0) == -5


def test_numbers_are_scaled_and_compared_with_a_limit() -> None:
    assert as_python(scaled(wide(-12345), 30), 0) == -12345 * 10**30
    assert as_python(scaled(wide(10**20), 19), 0) is None
    limit = 10**38
    assert within(wide(limit - 1, limit, 1 - limit, -limit), limit).tolist() == [True, False, True, False]
    assert within(scaled(wide(10**20), 19), limit).tolist() == [False]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(-(2**50), 2**50)), min_size=1, max_size=4))
def test_halves_become_numbers_of_64_bits_if_all_of_them_fit(halves: list[tuple[int, int]]) -> None:
    truth = [(high << 32) + low for high, low in halves]
    found = from_halves(*(np.array(own, np.int64) for own in zip(*halves, strict=True)))
    if all(-(2**63) <= number < 2**63 for number in truth):
        assert found is not None
        assert found.value.tolist() == truth
    else:
        assert found is None
