"""Lists of cells: weaving, merging, joining and forgetting, with values that are hard to tell apart."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.weaving import woven_cells
from windloom.aggregates.columns import ListColumns, keep, keep_none
from windloom.aggregates.registry import PlannedComponent, neutral
from windloom.model import Component, DataType, Expression


def planned(kind: str) -> PlannedComponent:
    return PlannedComponent(Component("frequencies", Expression.of_column("x")), DataType.parse(kind))


def woven(kind: str, arrow: pa.DataType, cells: list[list[Any]]) -> ListColumns:
    found = woven_cells(planned(kind), [pa.array(values, arrow) for values in cells])
    assert isinstance(found, ListColumns)
    return found


def shown(listed: ListColumns) -> list[list[tuple[str, int]]]:
    bounds, codes, counts = listed.cells
    values = [str(value) for value in listed.dictionary.to_pylist()]
    pairs = [(values[code], int(count)) for code, count in zip(codes, counts, strict=True)]
    return [pairs[first:last] for first, last in pairwise(bounds)]


def merged(listed: ListColumns, *runs: list[int]) -> ListColumns:
    order = np.array([cell for run in runs for cell in run], np.int64)
    return listed.merge(order, np.cumsum([0, *map(len, runs)]))


def test_a_cell_lists_its_values_in_order_with_their_counts() -> None:
    found = woven("string", pa.string(), [["b", "b"], [], ["c", "a", "c"], ["b", "b", "b"]])
    assert shown(found) == [[("b", 2)], [], [("a", 1), ("c", 2)], [("b", 3)]]
    assert shown(merged(found, [0, 1, 2, 3])) == [[("a", 1), ("b", 5), ("c", 2)]]
    assert shown(merged(found, [3], [1], [2, 0])) == [[("b", 3)], [], [("a", 1), ("b", 2), ("c", 2)]]


def test_floats_are_told_apart_as_spark_groups_and_orders_them() -> None:
    cells = [[math.nan], [0.0], [-0.0, -0.0], [math.inf], [-1.5], [math.nan, -math.nan]]
    found = woven("double", pa.float64(), cells)
    assert shown(merged(found, [0, 1, 2, 3, 4, 5])) == [[("-1.5", 1), ("0.0", 3), ("inf", 1), ("nan", 3)]]


@pytest.mark.parametrize(
    ("kind", "arrow", "values"),
    [
        ("boolean", pa.bool_(), [True, False]),
        ("decimal(10,2)", pa.decimal128(10, 2), [Decimal("2.50"), Decimal("-1.00")]),
        ("double", pa.float64(), [math.nan, 3.0]),
        ("string", pa.large_string(), ["ä", "z"]),
        ("binary", pa.binary(), [b"\xff", b"\x00"]),
    ],
)
def test_joined_cells_keep_their_values(kind: str, arrow: pa.DataType, values: list[Any]) -> None:
    left, right = woven(kind, arrow, [[values[0]]]), woven(kind, arrow, [[values[1]] * 2, [values[0]] * 4])
    both = left.concat(right)
    assert shown(both) == [*shown(left), *shown(right)]
    assert len(both.dictionary) == 2
    assert shown(neutral(planned(kind), 2).concat(right)) == [[], [], *shown(right)]
    assert sorted(shown(merged(both, [2, 1, 0]))[0]) == sorted([(str(values[0]), 5), (str(values[1]), 2)])


@pytest.mark.parametrize("count", [3, 500])
def test_no_cells_are_what_is_left_if_every_cell_goes(count: int) -> None:
    found = woven("bigint", pa.int64(), [[value] for value in range(count)])
    none, kept = keep_none(found), keep(found, np.zeros(count, np.bool_))
    assert isinstance(none, ListColumns)
    assert isinstance(kept, ListColumns)
    assert [column.tolist() for column in none.cells] == [column.tolist() for column in kept.cells] == [[0], [], []]
    assert [column.dtype for column in none.cells] == [column.dtype for column in kept.cells]
    assert none.dictionary.equals(kept.dictionary)


def test_values_that_no_cell_holds_are_forgotten_once_they_are_most() -> None:
    found = woven("bigint", pa.int64(), [[value] for value in range(500)])
    last = np.zeros(500, np.bool_)
    last[[3, 499]] = True
    kept = found.keep(last)
    assert shown(kept) == [[("3", 1)], [("499", 1)]]
    assert len(kept.dictionary) == 500
    assert shown(kept.without_unused()) == shown(kept)
    assert len(kept.without_unused().dictionary) == 2
