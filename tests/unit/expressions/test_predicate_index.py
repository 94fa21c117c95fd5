"""Places: values are placed among constants as NumPy's search does, in buckets or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from windloom.expressions import predicate_index
from windloom.expressions.evaluate import DecodedColumns
from windloom.expressions.node import Node
from windloom.expressions.predicate_index import ComparedValue, buckets
from windloom.model.types import DataType

_LIMITS = np.iinfo(np.int64)
_ALL = st.integers(int(_LIMITS.min), int(_LIMITS.max))
WHOLE = st.one_of(st.integers(-9, 9), _ALL, st.integers(2**53 - 3, 2**53 + 3))
FLOATS = st.one_of(st.floats(allow_nan=False), st.floats(-9, 9), st.integers(-9, 9).map(float))


def placed(kind: str, constants: list[Any], values: list[Any]) -> list[int]:
    subject = ComparedValue(Node("read", DataType.parse(kind), value="v"), sorted(constants))
    arrow = pa.int64() if kind == "bigint" else pa.float64()
    codes = np.ones(len(values), np.int32)  # a digit before
    subject.place(DecodedColumns(pa.table({"v": pa.array(values, arrow)})), codes)
    return (codes - subject.places).tolist()


def expected(constants: list[Any], value: Any) -> int:
    """The definition: how many constants are below, and whether one is equal; NaN and NULL come last."""
    if value is None:
        return 2 * len(constants) + 2
    if value != value:
        return 2 * len(constants) + 1
    return 2 * sum(constant < value for constant in constants) + (value in constants)


@pytest.mark.parametrize("most", [0, 1, 64, predicate_index.MOST_BUCKETS])
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_values_are_placed_between_constants(most: int, data: st.DataObject) -> None:
    kind, numbers = data.draw(st.sampled_from([("bigint", WHOLE), ("double", FLOATS)]))
    constants = data.draw(st.lists(numbers, max_size=30).map(lambda found: [value + 0 for value in found]))
    constants = sorted(set(constants))
    others = st.sampled_from([None, *([float("nan"), float("inf"), -float("inf")] if kind == "double" else [])])
    near = [
        value
        for constant in constants
        for value in ([math.nextafter(constant, math.inf)] if kind == "double" else [constant - 1, constant + 1])
        if kind == "double" or _LIMITS.min <= value <= _LIMITS.max
    ]
    values = data.draw(st.lists(st.one_of(numbers, others), max_size=20)) + constants + near
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predicate_index, "MOST_BUCKETS", most)
        found = placed(kind, constants, values)
    assert found == [expected(constants, value) for value in values]


def test_evenly_spaced_constants_have_buckets_and_others_have_none() -> None:
    assert buckets(np.arange(0, 300, 10)) is not None
    assert buckets(np.array([5.0])) is not None
    assert buckets(np.array([], np.int64)) is None
    assert buckets(np.array([0.0, 1.0, 1e9])) is None
    assert buckets(np.array([-1e308, 1e308])) is None
    assert buckets(np.array([0.0, 5e-324])) is None
    assert buckets(np.array([1.0, np.inf])) is None
