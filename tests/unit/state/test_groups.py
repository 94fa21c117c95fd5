from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windloom.model.types import as_array
from windloom.state.cells import concat_keys, describe_group, number_groups


def test_without_grouping_columns_there_is_one_group() -> None:
    numbers, keys = number_groups([], 3)
    assert numbers.tolist() == [0, 0, 0]
    assert keys == []


def test_every_combination_has_a_number_and_a_row_of_keys() -> None:
    first, second = pa.array(["a", "b", "a", "b", "a"]), pa.array([1, 1, 2, 1, 1])
    numbers, keys = number_groups([first, second], 5)
    assert sorted(set(numbers.tolist())) == [0, 1, 2]
    for row, number in enumerate(numbers):
        assert (keys[0][number], keys[1][number]) == (first[row], second[row])


def test_null_is_a_group_of_its_own_and_nan_equals_nan() -> None:
    numbers, keys = number_groups([pa.array([None, math.nan, 0.0, math.nan, None])], 5)
    assert numbers[0] == numbers[4]
    assert numbers[1] == numbers[3]
    assert len(set(numbers.tolist())) == len(keys[0]) == 3


def test_columns_of_nothing_but_null_are_one_group() -> None:
    numbers, keys = number_groups([pa.nulls(4), pa.array(["x"] * 4)], 4)
    assert numbers.tolist() == [0, 0, 0, 0]
    assert [len(key) for key in keys] == [1, 1]


def test_no_rows_are_no_groups() -> None:
    numbers, keys = number_groups([pa.array([], pa.string())], 0)
    assert len(numbers) == len(keys[0]) == 0


def test_numbers_stay_dense_over_many_columns() -> None:
    # The product of the distinct values of ten columns of 1,000 would be 10^30.
    columns = [pa.array(np.random.default_rng(i).permutation(1_000)) for i in range(10)]
    numbers, _ = number_groups(columns, 1_000)
    assert sorted(numbers.tolist()) == list(range(1_000))


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("a", pa.string(), "a"),
        (None, pa.string(), "NULL"),
        (7, pa.int16(), "7"),
        (math.nan, pa.float64(), "nan"),
        (Decimal("1.50"), pa.decimal128(10, 2), "1.50"),
        (True, pa.bool_(), "True"),
        (b"\xff\x00", pa.binary(), r"b'\xff\x00'"),
        (datetime.date(2026, 1, 5), pa.date32(), "2026-01-05"),
        (0, pa.timestamp("us", "UTC"), "1970-01-01 00:00:00+00:00"),
        (None, pa.null(), "NULL"),
    ],
)
def test_a_group_is_described_as_people_read_it(value: Any, kind: pa.DataType, text: str) -> None:
    keys = [pa.array(["first", "second"]), pa.array([value, value], kind)]
    assert describe_group(keys, 1) == f"second, {text}"


def test_the_only_group_is_all() -> None:
    assert describe_group([], 0) == "(all)"


def test_keys_are_put_together_in_one_type() -> None:
    (joined,) = concat_keys([pa.array([1], pa.int64())], [pa.array([2], pa.int32())])
    assert joined.to_pylist() == [1, 2]
    assert joined.type == pa.int64()


@pytest.mark.parametrize("chunks", [[], [[1]], [[1], [2, 3]]])
def test_a_column_in_any_number_of_chunks_is_one_array(chunks: list[list[int]]) -> None:
    column = pa.chunked_array(chunks, pa.int64())
    assert as_array(column).to_pylist() == [value for chunk in chunks for value in chunk]
