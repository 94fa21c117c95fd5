"""The evaluator of expressions over aggregates: one operator after another, and what it declines."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from golden.plans import plan_of
from support.expressions import KINDS, evaluated, read, same
from windloom.answers.finish import answer_rows, output_kinds
from windloom.expressions.arithmetic import DeclinedError
from windloom.model.types import arrow_type
from windloom.plan.plan import Plan

NAN, INF = math.nan, math.inf


def values(text: str, **columns: list[Any]) -> list[Any]:
    table = pa.table({name: pa.array(column, arrow_type(KINDS[name])) for name, column in columns.items()})
    found: list[Any] = evaluated(read(text).node, table).to_pylist()
    return found


def declined(text: str, **columns: list[Any]) -> bool:
    try:
        values(text, **columns)
    except (DeclinedError, pa.ArrowInvalid):
        return True
    return False


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("max(l) + max(i)", {"l": [1, None, 3], "i": [2, 2, None]}, [3, None, None]),
        ("max(l) / max(n)", {"l": [1, None], "n": [2, 0]}, [0.5, None]),
        ("max(l) DIV max(n)", {"l": [-7, None], "n": [2, 0]}, [-3, None]),
        ("max(l) % max(m)", {"l": [-7, 7, -(2**63)], "m": [2, -2, -1]}, [-1, 1, 0]),
        ("max(f) % max(h)", {"f": [-7.5, INF], "h": [2.0, 2.0]}, [-1.5, NAN]),
        ("-max(f)", {"f": [0.0, NAN]}, [-0.0, NAN]),
        ("abs(max(l))", {"l": [-1, None]}, [1, None]),
        ("sqrt(max(f))", {"f": [4.0, -1.0]}, [2.0, NAN]),
        ("max(f) / nullif(max(h), 0)", {"f": [1.0, 1.0], "h": [0.0, 4.0]}, [None, 0.25]),
        ("try_divide(max(l), max(n))", {"l": [1, 1], "n": [0, 4]}, [None, 0.25]),
    ],
)
def test_arithmetic(text: str, columns: dict[str, list[Any]], expected: list[Any]) -> None:
    found = values(text, **columns)
    assert all(same(value, wanted) for value, wanted in zip(found, expected, strict=True)), found


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("=", [True, False, True, False, None]),
        ("<>", [False, True, False, True, None]),
        ("<", [False, False, False, True, None]),
        ("<=", [True, False, True, True, None]),
        (">", [False, True, False, False, None]),
        (">=", [True, True, True, False, None]),
        ("<=>", [True, False, True, False, False]),
    ],
)
def test_nan_equals_nan_and_is_greater_than_any_number(op: str, expected: list[bool | None]) -> None:
    assert values(f"max(f) {op} max(h)", f=[NAN, NAN, -0.0, 1.0, None], h=[NAN, INF, 0.0, NAN, 1.0]) == expected


def test_logic_has_three_values() -> None:
    columns = {"b": [True, True, None, None, False], "q": [None, False, None, False, None]}
    assert values("max(b) AND max(q)", **columns) == [None, False, None, False, False]
    assert values("max(b) OR max(q)", **columns) == [True, True, None, None, None]
    assert values("NOT max(b)", **columns) == [False, False, None, None, True]
    assert values("max(b) IS TRUE", **columns) == [True, True, False, False, False]
    assert values("max(b) IS NULL", **columns) == [False, False, True, True, False]


@pytest.mark.parametrize("listed", ["1, 2, NULL", "1, 2, NULL, 4, 5, 6, 7, 8, 9, 10, 11, 12"])
def test_in_is_unknown_where_a_value_may_be_among_unknown_ones(listed: str) -> None:
    assert values(f"max(l) IN ({listed})", l=[1, 3, None]) == [True, None, None]


def test_a_branch_that_is_not_taken_refuses_nothing() -> None:
    columns = {"l": [1, 4], "n": [0, 2]}
    assert values("CASE WHEN max(n) <> 0 THEN max(l) / max(n) END", **columns) == [None, 2.0]
    assert values("CASE WHEN max(n) = 0 THEN -1 ELSE max(l) DIV max(n) END", **columns) == [-1, 2]
    assert values("max(n) <> 0 AND max(l) / max(n) > 1", **columns) == [False, True]
    assert values("max(n) = 0 OR max(l) / max(n) > 3", **columns) == [True, False]
    assert values("coalesce(max(n), max(l) / max(i))", l=[1], n=[3], i=[0]) == [3.0]
    assert values("CASE WHEN max(n) > 0 THEN CASE WHEN max(l) > 3 THEN max(l) / max(n) END END", **columns) == [None, 2]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("max(l) / max(n)", {"l": [1, 1], "n": [1, 0]}),
        ("max(k) / 0", {"k": [1.0]}),
        ("max(l) % max(n)", {"l": [1], "n": [0]}),
        ("max(l) + 1", {"l": [2**63 - 1]}),
        ("max(i) * 2", {"i": [2**30]}),
        ("-max(l)", {"l": [-(2**63)]}),
        ("CAST(max(f) AS int)", {"f": [2.0**31]}),
        ("CAST(max(f) AS bigint)", {"f": [NAN]}),
        ("CAST(max(l) AS decimal(10,2))", {"l": [10**8]}),
        ("floor(max(f))", {"f": [1e300]}),
        ("max(n) > 1 / 0", {"n": []}),
    ],
)
def test_a_row_that_spark_refuses_is_declined(text: str, columns: dict[str, list[Any]]) -> None:
    assert declined(text, **columns)


def test_doubles_are_rounded_by_the_digits_they_are_printed_with() -> None:
    found = values("round(max(f), 2)", f=[2.675, 1.005, -0.285, -0.001, 99.995, NAN, -INF, None, 1 / 3])
    expected = [2.68, 1.01, -0.29, 0.0, 100.0, NAN, -INF, None, 0.33]
    assert all(same(value, wanted) for value, wanted in zip(found, expected, strict=True)), found
    assert values("round(max(f))", f=[2.5, -2.5, 0.49999999999999994]) == [3.0, -3.0, 0.0]
    assert declined("round(max(f), 2)", f=[1e15])


def test_decimals_are_exact_and_rounded_half_up() -> None:
    money = {"c": [Decimal("10.05"), Decimal("-0.05"), None], "n": [3, 3, 3]}
    assert values("max(c) * 3", **money) == [Decimal("30.15"), Decimal("-0.15"), None]
    assert values("round(max(c), 1)", **money) == [Decimal("10.1"), Decimal("-0.1"), None]
    assert values("max(c) / max(n)", **money)[0] == Decimal("3.35")
    assert values("max(c) / 7", c=[Decimal(1)]) == [Decimal("0.142857")]
    assert values("max(d) / max(l)", d=[Decimal(2)], l=[3]) == [Decimal("0.66666666666666666667")]
    assert values("floor(max(c))", c=[Decimal("-0.05")]) == [Decimal(-1)]
    assert values("CAST(max(c) AS double)", c=[Decimal("0.05")]) == [0.05]
    assert values("CAST(max(w) AS double)", w=[Decimal("9007199254740993.1234567891")]) == [9007199254740993.1234567891]


def test_the_greatest_passes_over_null_and_takes_the_first_of_equals() -> None:
    found = values("greatest(max(f), max(h))", f=[None, -0.0, NAN], h=[1.0, 0.0, INF])
    assert all(same(value, wanted) for value, wanted in zip(found, [1.0, -0.0, NAN], strict=True)), found
    assert values("least(max(s), max(u))", s=["b", None, None], u=["a", "b", None]) == ["a", "b", None]


CATALOG = """
CREATE QUERY spread AS
  SELECT symbol, max(price) - min(price) AS spread FROM trades [TUMBLE 1 minute] GROUP BY symbol HAVING count(*) > 5;
CREATE QUERY never AS SELECT max(price) AS p FROM trades [TUMBLE 1 minute] HAVING NULL;
CREATE QUERY power AS SELECT power(max(price), 2) AS p FROM trades [TUMBLE 1 minute];
"""


def _table(plan: Plan, name: str, **columns: list[Any]) -> pa.Table:
    shape = plan.shapes[plan.find(name)[2].shape]
    kinds = dict(shape.groups + shape.columns)
    window = pa.array([0] * len(next(iter(columns.values()))), arrow_type(shape.time))
    own = {key: pa.array(column, arrow_type(kinds[key])) for key, column in columns.items()}
    coded = {
        key: column.dictionary_encode() if pa.types.is_string(column.type) else column for key, column in own.items()
    }
    return pa.table({"window_start": window, "window_end": window, **coded})


def test_rows_of_a_shape_are_filtered_before_its_columns_are_evaluated() -> None:
    plan = plan_of(CATALOG)
    shape = plan.shapes[plan.find("spread")[2].shape]
    columns = {"__g0": ["a", "b", None], "__a0": [3.0, 4.0, None], "__a1": [1.0, 4.0, None], "__a2": [6, 5, 7]}
    found = answer_rows(shape, _table(plan, "spread", **columns)).drop_columns(["window_start", "window_end"])
    assert found.to_pydict() == {"symbol": ["a", None], "spread": [2.0, None]}
    assert found.schema.field("symbol").type == pa.string()
    kinds = output_kinds(shape)
    assert kinds is not None
    assert {name: str(kind) for name, kind in kinds.items()} == {
        "window_start": "timestamp",
        "window_end": "timestamp",
        "symbol": "string",
        "spread": "double",
    }


def test_a_condition_that_is_never_true_leaves_no_row() -> None:
    plan = plan_of(CATALOG)
    table = _table(plan, "never", __a0=[1.0, 2.0])
    assert answer_rows(plan.shapes[plan.find("never")[2].shape], table).num_rows == 0


def test_a_shape_with_an_unknown_function_is_declined_with_the_reason() -> None:
    plan = plan_of(CATALOG)
    shape = plan.shapes[plan.find("power")[2].shape]
    assert output_kinds(shape) is None
    with pytest.raises(DeclinedError, match=r"power\(\) in 'p'"):
        answer_rows(shape, _table(plan, "power", __a0=[1.0]))
