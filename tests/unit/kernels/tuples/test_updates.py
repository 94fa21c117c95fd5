"""Each update kernel against plain Python, over all tuples and over chosen ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windloom.kernels.families import LOWEST
from windloom.kernels.tuples.columns import Column
from windloom.kernels.tuples.updates import (
    add_squares,
    count_rows,
    keep_largest,
    keep_smallest,
    pick_rows,
    sum_floats,
    sum_halves,
    sum_limbs,
    sum_values,
)

CELLS = 7


class Case:
    """Tuples in cells, of which some or all are chosen."""

    def __init__(self, every: bool, count: int = 200) -> None:
        self.rng = random.Random(8)
        self.cells = np.array([self.rng.randrange(CELLS - 1) for _ in range(count)], np.int32)
        self.every = every
        self.chosen = range(count) if every else [i for i in range(count) if self.rng.random() < 0.5]
        self.rows = np.empty(0, np.int32) if every else np.array(self.chosen, np.int32)

    @property
    def where(self) -> tuple[Any, Any, bool]:
        return self.cells, self.rows, self.every

    def folded(self, values: Any, fold: Callable[[list[Any]], Any]) -> list[Any]:
        """`fold` of the chosen values of every cell; the last cell has none."""
        return [fold([values[i] for i in self.chosen if self.cells[i] == cell]) for cell in range(CELLS)]


@pytest.fixture(params=[True, False], ids=["every tuple", "chosen tuples"])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def zeros(kind: type = np.int64) -> Any:
    return np.zeros(CELLS, kind)


def test_tuples_are_counted(case: Case) -> None:
    count = zeros()
    count_rows(*case.where, count)
    assert count.tolist() == case.folded(range(200), len)


def test_short_integers_are_added(case: Case) -> None:
    values, total = np.array([case.rng.randrange(-(2**31), 2**31) for _ in range(200)]), zeros()
    sum_values(*case.where, values, total)
    assert total.tolist() == case.folded(values.tolist(), sum)


def test_long_integers_are_added_in_halves_that_do_not_overflow(case: Case) -> None:
    values = np.array([case.rng.choice([2**63 - 1, -(2**63), case.rng.randrange(-(2**62), 2**62)]) for _ in range(200)])
    high, low = zeros(), zeros()
    sum_halves(*case.where, values, high, low)
    found = [(int(h) << 32) + int(low_half) for h, low_half in zip(high, low, strict=True)]
    assert found == case.folded([int(value) for value in values], sum)


def test_floats_are_added_as_heads_and_rests(case: Case) -> None:
    values = np.array([case.rng.choice([0.1, 1e15, -1e15, 1e-5, 3e37, -3e37]) for _ in range(200)])
    high, low = zeros(np.float64), zeros(np.float64)
    sum_floats(*case.where, values, high, low)
    for h, rest, true in zip(high, low, case.folded(values.tolist(), lambda own: sum(map(Fraction, own))), strict=True):
        scale = 1e-15 * sum(abs(value) for value in values)
        assert abs(Fraction(float(h)) + Fraction(float(rest)) - true) <= scale


def test_floats_beyond_a_finite_head_are_added_whole() -> None:
    values = np.array([1e300, math.inf, math.nan, -1e300])
    high, low = np.zeros(4), np.zeros(4)
    sum_floats(np.arange(4, dtype=np.int32), np.empty(0, np.int32), True, values, high, low)
    assert str(high.tolist()) == str(values.tolist())
    assert low.tolist() == [0.0] * 4


def test_decimals_are_added_word_by_word(case: Case) -> None:
    numbers = [case.rng.randrange(-(10**38) + 1, 10**38) for _ in range(200)]
    values = pa.array(numbers, pa.decimal128(38, 0))
    parts = [zeros() for _ in range(4)]
    sum_limbs(*case.where, Column(pa.chunked_array([values])).limbs, *parts)
    found = [sum(int(part[cell]) << 32 * i for i, part in enumerate(parts)) for cell in range(CELLS)]
    assert found == case.folded(numbers, sum)


def test_the_largest_and_the_smallest_key_are_kept(case: Case) -> None:
    keys = np.array([case.rng.randrange(-99, 99) for _ in range(200)])
    largest, smallest = np.full(CELLS, LOWEST), np.full(CELLS, LOWEST)
    keep_largest(*case.where, keys, largest)
    keep_smallest(*case.where, keys, smallest)
    none = int(LOWEST)
    assert largest.tolist() == case.folded(keys.tolist(), lambda own: max(own, default=none))
    assert smallest.tolist() == case.folded(keys.tolist(), lambda own: ~min(own) if own else none)


def test_deviations_are_squared_and_added(case: Case) -> None:
    values = np.array([case.rng.uniform(-5, 5) for _ in range(200)])
    mean, square = zeros(np.float64), zeros(np.float64)
    sum_values(*case.where, values, mean)
    assert mean.tolist() == pytest.approx(case.folded(values.tolist(), sum))
    mean /= np.maximum(case.folded(values.tolist(), len), 1)
    add_squares(*case.where, values, mean, square)
    expected = case.folded(values.tolist(), lambda own: float(np.var(own)) * len(own) if own else 0.0)
    assert square.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("lowest", [True, False])
@pytest.mark.parametrize("has_null", [True, False])
def test_of_tuples_that_come_first_alike_the_value_decides(case: Case, lowest: bool, has_null: bool) -> None:
    by = np.array([case.rng.randrange(3) for _ in range(200)])
    values = np.array([case.rng.randrange(5) for _ in range(200)])
    known = np.array([case.rng.random() < 0.7 for _ in range(200)]) if has_null else np.empty(0, np.bool_)
    picked = np.full(CELLS, -1)
    pick_rows(*case.where, by, known, values, lowest, picked)

    def place(i: int) -> tuple[int, bool, int]:
        is_known = bool(known[i]) if has_null else True
        return int(by[i]), is_known, int(values[i]) if is_known else 0

    best = min if lowest else max
    expected = case.folded(range(200), lambda own: place(best(own, key=place)) if own else None)
    assert [place(i) if i >= 0 else None for i in picked.tolist()] == expected
