"""MIN_BY, MAX_BY, FIRST and LAST: pairs of what is looked at and a value, lifted, put together and lowered."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windloom.aggregates.columns import (
    SMALL_DICTIONARY,
    ComponentColumns,
    WindowValues,
    concat,
    merge,
    ranks_of,
    without_unused,
)
from windloom.aggregates.registry import PlannedComponent, lift, lower, neutral
from windloom.checkpoint.state_codec import decode, encode
from windloom.model import Aggregate, DataType, Expression
from windloom.model.types import arrow_type
from windloom.state.cells import Cells
from windloom.state.state import State

X, Y = Expression.of_column("x"), Expression.of_column("y")


def planned(function: str, kind: str) -> PlannedComponent:
    return PlannedComponent(Aggregate(function, X, Y).components[0], DataType.parse(kind))


def lifted(function: str, kind: str, by: pa.Array, values: list[Any]) -> ComponentColumns:
    return lift(planned(function, kind), [by, pa.array(values, arrow_type(DataType.parse(kind)))])


def lowered(function: str, kind: str, cells: ComponentColumns) -> list[Any]:
    valid = None if cells.valid is None else cells.valid.value > 0
    combined = WindowValues(cells.limbs, valid, cells.dictionary)
    found = lower(Aggregate(function, X, Y), DataType.parse(kind), [combined], lambda row, value: None)
    assert found.type == arrow_type(DataType.parse(kind))
    return list(found.to_pylist())


def picked(function: str, kind: str, by: pa.Array, values: list[Any]) -> Any:
    """Of cells that are one window."""
    cells = lifted(function, kind, by, values)
    whole = merge(cells, np.arange(len(values)), np.array([0, len(values)]))
    return lowered(function, kind, whole)[0]


VALUES: dict[str, list[Any]] = {
    "bigint": [-(2**63), 2**63 - 1, None],
    "float": [0.5, -math.inf, None],
    "decimal(12,2)": [None, 7, -7],
    "string": ["", "ä", None],
    "binary": [b"\xff", None, b""],
    "boolean": [True, False, None],
    "date": [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)],
    "timestamp": [datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC), None, None],
    "timestamp_ntz": [None, datetime.datetime(2026, 1, 5), None],
}


@pytest.mark.parametrize("function", ["min_by", "max_by"])
@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_type_come_back_as_they_were(function: str, kind: str) -> None:
    by = pa.array([3.0, 1.0, 2.0])
    assert lowered(function, kind, lifted(function, kind, by, VALUES[kind])) == VALUES[kind]
    assert picked(function, kind, by, VALUES[kind]) == VALUES[kind][1 if function == "min_by" else 0]


@pytest.mark.parametrize(
    ("by", "lowest", "highest"),
    [
        (pa.array([1.0, math.nan, math.inf]), 0, 1),
        (pa.array([-1.0, -math.inf, 5e-324]), 1, 2),
        (pa.array(["b", "a", "ab"]), 1, 0),
        (pa.array([b"\x7f", b"\x80", b""]), 2, 1),
        (pa.array([True, False, None]), 1, 0),
        (pa.array([2**63 - 1, -(2**63), 0]), 1, 0),
        (pa.array([None, 5, None], pa.int32()), 1, 1),
        (pa.array([datetime.date(2026, 1, 1), datetime.date(1969, 1, 1), None]), 1, 0),
        (pa.array([1.25, -3.5, 9.0]).cast(pa.decimal128(12, 2)), 1, 2),
    ],
)
def test_what_is_looked_at_has_the_order_of_spark(by: pa.Array, lowest: int, highest: int) -> None:
    assert picked("min_by", "int", by, [0, 1, 2]) == lowest
    assert picked("max_by", "int", by, [0, 1, 2]) == highest


@pytest.mark.parametrize("by", [pa.array([0.0, -0.0, 0.0]), pa.array(["a", "a", "a"]), pa.array([4, 4, 4])])
def test_ties_are_decided_by_the_value_and_null_is_the_lowest(by: pa.Array) -> None:
    for function, highest in (("min_by", False), ("max_by", True)):
        assert picked(function, "int", by, [2, -1, 3]) == (3 if highest else -1)
        assert picked(function, "int", by, [2, None, -5]) == (2 if highest else None)
        assert picked(function, "double", by.slice(0, 2), [math.nan, 1.0]) != 1.0 or not highest


def test_nothing_to_look_at_is_null_and_a_null_that_is_looked_up_is_too() -> None:
    by = pa.array([None, 1, None], pa.int64())
    assert lowered("max_by", "string", lifted("max_by", "string", by, ["a", None, None])) == [None, None, None]
    assert picked("max_by", "string", by.slice(0, 1), ["a"]) is None


@pytest.mark.parametrize("function", ["min_by", "max_by"])
def test_ranks_of_two_rounds_become_ranks_of_their_union(function: str) -> None:
    early = lifted(function, "string", pa.array([5, None, 1]), ["m", "?", "b"])
    late = lifted(function, "string", pa.array([4, 2, 1]), ["z", "a", None])
    both = concat(early, late)
    assert both.dictionary is not None
    assert both.dictionary.to_pylist() == [
        {"by": 1, "value": None},
        {"by": 1, "value": "b"},
        {"by": 2, "value": "a"},
        {"by": 4, "value": "z"},
        {"by": 5, "value": "m"},
    ]
    one_cell = merge(both, np.array([0, 3, 1, 4, 2, 5]), np.array([0, 2, 4, 6]))
    assert lowered(function, "string", one_cell) == (["z", "a", None] if function == "min_by" else ["m", "a", "b"])


@pytest.mark.parametrize("widest", [3, 2**62])
def test_pairs_with_many_equal_first_values_are_in_the_order_of_their_second_ones(widest: int) -> None:
    draw = np.random.default_rng(3)
    by, values = draw.integers(-2, 3, 200), draw.choice([-widest, -1, 0, 1, widest], 200)
    known = draw.random(200) < 0.8
    pairs = pa.StructArray.from_arrays([pa.array(by), pa.array(values, mask=~known)], names=["by", "value"])
    ranks, ordered = ranks_of(pairs)
    lowest = (-np.inf,)
    every = [(int(b), *((int(v),) if k else lowest)) for b, v, k in zip(by, values, known, strict=True)]
    distinct = sorted(set(every))
    assert [
        (pair["by"], -np.inf if pair["value"] is None else pair["value"]) for pair in ordered.to_pylist()
    ] == distinct
    assert [distinct[rank] for rank in ranks] == every


def test_cells_from_before_it_was_kept_add_nothing() -> None:
    component = planned("max_by", "decimal(12,2)")
    before = neutral(component, 2)
    assert lowered("max_by", "decimal(12,2)", before) == [None, None]
    both = concat(before, lifted("max_by", "decimal(12,2)", pa.array([1]), [7]))
    assert lowered("max_by", "decimal(12,2)", merge(both, np.arange(3), np.array([0, 3]))) == [7]


def test_values_that_no_cell_holds_any_more_are_forgotten() -> None:
    count = 4 * SMALL_DICTIONARY
    cells = lifted("min_by", "bigint", pa.array(range(count)), [-tick for tick in range(count)])
    rest = cells.map_limbs(lambda limb: type(limb)(*(column[-3:] for column in limb)))
    small = without_unused(rest)
    assert small.dictionary is not None
    assert len(small.dictionary) == 3
    assert lowered("min_by", "bigint", small) == lowered("min_by", "bigint", rest)


def test_a_state_with_picks_is_read_back_as_it_was() -> None:
    cells = lifted("max_by", "timestamp", pa.array([0.5, None]), VALUES["timestamp"][:2])
    bounds = np.array([0, 2])
    state = State({0: Cells([], bounds, np.array([0, 10]), (cells,))}, {"s": 7})
    again = decode(encode(state)).cells[0].lifted[0]
    assert lowered("max_by", "timestamp", again) == VALUES["timestamp"][:2]
    assert again.dictionary is not None
    assert cells.dictionary is not None
    assert again.dictionary.equals(cells.dictionary)


def test_the_zone_of_a_session_does_not_matter() -> None:
    moment = VALUES["timestamp"][0]
    zones = [
        lift(planned("max_by", "timestamp"), [pa.array([i]), pa.array([moment], pa.timestamp("us", tz=zone))])
        for i, zone in enumerate(("Europe/Berlin", "UTC"))
    ]
    assert lowered("max_by", "timestamp", concat(*zones)) == [moment, moment]
