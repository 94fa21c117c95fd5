"""Cells of counts and sums of one set: what they share, and what is not looked at where nothing is missing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from support.weaving import cut_of, tuples_of
from windloom.aggregates.columns import ComponentColumns, valid_in
from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.expression import Expression
from windloom.model.types import DataType

TICKS = [0, 0, 1, 1, 1, 2, 3]


def woven(kind: str, cut: SetTuples, read: ComponentInput) -> ComponentColumns:
    planned = PlannedComponent(Component(kind, Expression.of_column("x")), DataType.parse("bigint"))
    found = planned.aggregator.weave(planned, cut, read)
    assert isinstance(found, ComponentColumns)
    return found


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3, 4, 5, 6, 2**32 - 1],
        [1, 2, 3, 4, 5, 6, 2**32],
        [1, 2, 3, -4, 5, 6, 7],
        [2**62, 2**62, -(2**63), 0, 1, 2**63 - 1, 5],
        [1, None, 3, None, 2**40, None, 7],
    ],
)
def test_sums_in_halves_are_the_same_whatever_the_values(values: list[int | None]) -> None:
    cut = cut_of(tuples_of(TICKS, pa.array(values, pa.int64())))
    high, low = (limb.value for limb in woven("sum", cut, ComponentInput(0)).limbs)
    for tick in range(4):
        own = [value for value, at in zip(values, TICKS, strict=True) if at == tick and value is not None]
        assert (high[tick], low[tick]) == (sum(value >> 32 for value in own), sum(value & 0xFFFFFFFF for value in own))


def test_a_column_without_nulls_is_counted_once_and_has_a_value_in_every_cell() -> None:
    column, holes = pa.array(range(7), pa.int64()), pa.array([1, None, 3, 4, 5, None, 7], pa.int64())
    cut = cut_of(tuples_of(TICKS, column, holes))
    every = PlannedComponent(COUNT_STAR, None).aggregator.weave(
        PlannedComponent(COUNT_STAR, None), cut, ComponentInput()
    )
    assert isinstance(every, ComponentColumns)
    assert woven("count", cut, ComponentInput(0)).limbs[0].value is every.limbs[0].value
    assert valid_in(cut, ComponentInput(0)) is None
    assert woven("count", cut, ComponentInput(1)).limbs[0].value.tolist() == [1, 3, 0, 1]
    valid = valid_in(cut, ComponentInput(1))
    assert valid is not None
    assert valid.value.tolist() == [1, 3, 0, 1]


def test_a_filter_or_a_bit_of_the_set_decides_what_counts() -> None:
    bits, column = pa.array([1, 3, 1, 0, 3, 0, 2], pa.int64()), pa.array(range(7), pa.int64())
    cut = cut_of(tuples_of(TICKS, bits, column, words=1), own=(0,))
    assert valid_in(cut, ComponentInput(0)) is None, "every cell of the set has a tuple of the set"
    valid = valid_in(cut, ComponentInput(0, filter=1))
    assert valid is None, "both cells have one that passes the filter"
    assert cut.kept_counts(ComponentInput(0, filter=1), 0).tolist() == [1, 1]
    assert not cut.counts_all(ComponentInput(0, filter=1), 0)
    assert np.array_equal(cut.kept_counts(ComponentInput(0), 0), [2, 2])
