"""What Spark hands over for one slice, lifted and lowered again, is what Spark's own aggregate of that slice gives."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windloom.aggregates.columns import ComponentColumns, WindowValues, concat, merge
from windloom.aggregates.registry import PlannedComponent, lift, lower
from windloom.kernels.families import AddInt
from windloom.kernels.hashing import float_keys, float_values
from windloom.model import Aggregate, DataType, Expression
from windloom.model.types import arrow_type

X = Expression.of_column("x")


class RefusedError(Exception):
    """Raised where an error would name query, window and group."""


def refuse(row: int, value: str) -> None:
    raise RefusedError(row, value)


def planned(aggregate: Aggregate, kind: str) -> list[PlannedComponent]:
    return [PlannedComponent(component, DataType.parse(kind)) for component in aggregate.components]


def lowered(function: str, kind: str, *native: list[pa.Array]) -> pa.Array:
    """Each component's native fields, as cells that are windows of one slice."""
    aggregate = Aggregate(function, X)
    lifted = [lift(component, fields) for component, fields in zip(planned(aggregate, kind), native, strict=True)]
    return lower(aggregate, DataType.parse(kind), [as_combined(cells) for cells in lifted], refuse)


def as_combined(lifted: ComponentColumns) -> WindowValues:
    valid = None if lifted.valid is None else lifted.valid.value > 0
    return WindowValues(lifted.limbs, valid, lifted.dictionary)


def halves(values: list[int | None]) -> list[pa.Array]:
    high = [None if value is None else value >> 32 for value in values]
    low = [None if value is None else value & 0xFFFFFFFF for value in values]
    return [pa.array(high, pa.int64()), pa.array(low, pa.int64())]


EXTREMES: dict[str, list[Any]] = {
    "tinyint": [-128, 127, None],
    "bigint": [-(2**63), 2**63 - 1, 0, None],
    "float": [-math.inf, -0.0, 0.5, math.nan],
    "double": [-1.5, math.inf, math.nan, None, 5e-324],
    "decimal(38,10)": [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0E-10"), None],
    "string": ["", "ä", "z", "Z", None],
    "binary": [b"", b"\xff", b"\x00a", None],
    "boolean": [True, False, None],
    "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
    "timestamp": [datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, datetime.UTC), None],
    "timestamp_ntz": [datetime.datetime(2026, 1, 5), None],
}


@pytest.mark.parametrize("function", ["min", "max"])
@pytest.mark.parametrize("kind", EXTREMES)
def test_extremes_of_every_type_come_back_as_they_were(function: str, kind: str) -> None:
    native = pa.array(EXTREMES[kind], arrow_type(DataType.parse(kind)))
    found = lowered(function, kind, [native])
    assert found.type == native.type
    assert repr(found.to_pylist()) == repr(native.to_pylist())


def test_keys_of_doubles_keep_their_order_with_nan_above_all() -> None:
    values = np.array([-np.inf, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, np.inf, np.nan])
    keys = float_keys(values)
    assert (np.diff(keys) > 0).all()
    assert repr(float_values(keys)) == repr(values)
    assert float_keys(np.array([-np.nan])) == keys[-1], "every NaN is the same"


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32) - 1, None])
def test_sums_of_64_bits_are_put_together_from_halves(value: int | None) -> None:
    assert lowered("sum", "bigint", halves([value])).to_pylist() == [value]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**70])
def test_sums_that_do_not_fit_are_refused_with_their_value(value: int) -> None:
    with pytest.raises(RefusedError) as caught:
        lowered("sum", "bigint", halves([7, value]))
    assert caught.value.args == (1, str(value))


def test_sums_of_32_bits_need_no_halves() -> None:
    assert lowered("sum", "int", [pa.array([-(2**40), None], pa.int64())]).to_pylist() == [-(2**40), None]


def test_an_average_carries_before_it_divides() -> None:
    high, low = pa.array([-1], pa.int64()), pa.array([2**32 - 3], pa.int64())  # -3 in halves
    assert lowered("avg", "bigint", [high, low], [pa.array([2])]).to_pylist() == [-1.5]


def test_the_average_of_nothing_is_null() -> None:
    nothing = [pa.array([None], pa.int64())] * 2
    assert lowered("avg", "bigint", nothing, [pa.array([0])]).to_pylist() == [None]


DIGITS = "decimal(12,2)"


@pytest.mark.parametrize("text", ["0.00", "1.25", "-1.25", "9999999999999999999.99", "-9999999999999999999.99", None])
def test_sums_of_decimals_are_exact(text: str | None) -> None:
    value = None if text is None else Decimal(text)
    found = lowered("sum", DIGITS, [pa.array([value], pa.decimal128(22, 2))])
    assert found.type == pa.decimal128(22, 2)
    assert found.to_pylist() == [value]


@pytest.mark.parametrize(
    ("total", "count", "average"),
    [
        ("1.00", 3, "0.333333"),
        ("-2.00", 3, "-0.666667"),
        ("0.01", 20_000, "0.000001"),
        ("-0.01", 20_000, "-0.000001"),
    ],
)
def test_averages_of_decimals_are_rounded_half_up(total: str, count: int, average: str) -> None:
    found = lowered("avg", DIGITS, [pa.array([Decimal(total)], pa.decimal128(22, 2))], [pa.array([count])])
    assert found.type == pa.decimal128(16, 6)
    assert found.to_pylist() == [Decimal(average)]


def test_moments_are_null_where_there_are_too_few_values() -> None:
    native = [pa.array([0, 1, 2], pa.int64()), pa.array([None, 5.0, 5.0]), pa.array([None, 0.0, 4.0])]
    assert lowered("var_pop", "double", native).to_pylist() == [None, 0.0, 4.0]
    assert lowered("var_samp", "double", native).to_pylist() == [None, None, 8.0]
    assert lowered("stddev_pop", "double", native).to_pylist() == [None, 0.0, 2.0]
    assert lowered("stddev_samp", "double", native).to_pylist() == [None, None, math.sqrt(8.0)]


def test_rounding_never_makes_a_variance_negative() -> None:
    native = [pa.array([3], pa.int64()), pa.array([0.1]), pa.array([-1e-20])]
    assert lowered("stddev_pop", "double", native).to_pylist() == [0.0]


@pytest.mark.parametrize("function", ["min", "max"])
def test_ranks_of_two_rounds_become_ranks_of_their_union(function: str) -> None:
    aggregate = Aggregate(function, X)
    (component,) = planned(aggregate, "string")
    rounds = [pa.array(["m", None, "b"]), pa.array(["z", "a", None])]
    both = concat(*(lift(component, [fields]) for fields in rounds))
    one_cell = merge(both, np.array([0, 3, 1, 4, 2, 5]), np.array([0, 2, 4, 6]))
    found = lower(aggregate, DataType.parse("string"), [as_combined(one_cell)], refuse)
    expected = [["m", "z"], ["a"], ["b"]]
    assert found.to_pylist() == [min(pair) if function == "min" else max(pair) for pair in expected]


def test_what_had_no_null_before_a_round_with_nulls_counts_as_values() -> None:
    (component,) = planned(Aggregate("sum", X), "int")
    left, right = lift(component, [pa.array([1, 2])]), lift(component, [pa.array([None, 4], pa.int64())])
    assert left.valid is None
    joined = concat(left, right)
    assert isinstance(joined.valid, AddInt)
    assert joined.valid.value.tolist() == [1, 1, 0, 1]


def test_lifting_takes_columns_in_chunks() -> None:
    column = pa.chunked_array([[Decimal("1.00")], [None, Decimal("3.00")]], pa.decimal128(22, 2))
    assert lowered("sum", DIGITS, [column]).to_pylist() == [Decimal("1.00"), None, Decimal("3.00")]
    assert lowered("max", "string", [pa.chunked_array([["b"], ["a", None]])]).to_pylist() == ["b", "a", None]
