"""Random predicates as text, tuples on which they differ, and a three-valued evaluator that knows no Windloom."""

from __future__ import annotations

import math
import operator as compare
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from windloom.language.select import parse_query
from windloom.language.sql.predicates import analyse
from windloom.model import DataType, Predicate, Stream

Row = dict[str, Any]
#: Picks one of several, so that both Hypothesis and a seeded generator can drive what is random here.
Choose = Callable[[Sequence[Any]], Any]

COLUMNS = {
    "ts": "timestamp",
    "a": "int",
    "b": "bigint",
    "x": "double",
    "f": "float",
    "d": "decimal(5,1)",
    "s": "string",
    "p": "boolean",
    "q": "boolean",
    "day": "date",
}
STREAM = Stream("events", {name: DataType.parse(kind) for name, kind in COLUMNS.items()}, time="ts")

#: Values that tuples have; few, so that most predicates are met and missed.
VALUES: dict[str, list[Any]] = {
    "a": [None, -(2**31), -1, 0, 1, 2, 3, 4, 5, 2**31 - 1],
    "b": [None, 0, 2, 3, 2**53, 2**53 + 1],
    "x": [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1.0, 1.5, 2.0, 3.0],
    "f": [None, math.nan, 0.0, -0.0, 0.5, 0.10000000149011612, 2.0],
    "d": [None, Decimal("-0.1"), Decimal("0.0"), Decimal("1.5"), Decimal("1.6"), Decimal("2.0")],
    "s": [None, "", "a", "ab", "b", "é", "z"],
    "p": [None, True, False],
    "q": [None, True, False],
    "day": [None, date(2024, 1, 31), date(2024, 2, 1), date(2024, 2, 2)],
}

#: What columns are compared with.
LITERALS = {
    "a": ["0", "1", "2L", "3", "-1", "2.5", "2.0", "3E0", "5000000000"],
    "b": ["2", "3.0", "9007199254740992", "9007199254740993L", "1.5D"],
    "x": ["0", "-0.0", "0.1", "1.5D", "2", "3L", "1E3"],
    "f": ["0", "0.1", "0.5F", "2", "0.5"],
    "d": ["0", "1.5", "1.55", "2L", "2.00"],
    "s": ["''", "'a'", "'b'", "'ab'", "'é'"],
    "p": ["TRUE", "FALSE"],
    "q": ["TRUE", "FALSE"],
    "day": ["DATE '2024-02-01'", "'2024-01-31'"],
    "upper(s)": ["'A'", "'AB'", "'É'"],
    "length(s)": ["0", "1", "1.5"],
    "x * 2": ["0", "3", "2.0D"],
    "b - a / 2": ["0.5", "2", "2D"],
}
_PAIRS = [("a", "b"), ("b", "a"), ("p", "q"), ("x", "x"), ("s", "s")]
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_LEAVES = (
    "{column} {comparison} {literal}",
    "{literal} {comparison} {column}",
    "{column} {comparison} {literal}",
    "{column} {no}BETWEEN {literal} AND {other}",
    "{column} {no}IN ({literal}, {other}, {literal})",
    "{column} {no}IN ({other})",
    "{column} IS {no}NULL",
    "{column} {no}IN ({literal}, {other})",
    "{column} {comparison} {literal} OR {column} {comparison} {other}",
    "{column} {comparison} {literal} AND p",
    "{pair[0]} {comparison} {pair[1]}",
    "NOT q",
    "{constant}",
    "s {no}LIKE 'a%'",
    "{guarded}",
)
#: In ANSI mode, Spark fails on the second part without the first.
GUARDED = "a <> 0 AND b / a > 1"
_CONSTANTS = ("TRUE", "FALSE", "NULL", "1 = 1", "2 < 1", "'a' = 'b'")


def read(sql: str) -> Predicate:
    """The predicate of a WHERE over `STREAM`."""
    query = parse_query("q", f"SELECT count(*) FROM events [TUMBLE 1 hour] WHERE {sql}", {"events": STREAM})
    assert query.where is not None
    return analyse(query.where, STREAM)


def random_row(choose: Choose) -> Row:
    return {name: choose(values) for name, values in VALUES.items()}


@dataclass(frozen=True)
class Grammar:
    """Predicates over some of the columns: over few, so that their parts have to do with each other."""

    choose: Choose
    columns: Sequence[str] = tuple(LITERALS)
    guarded: str = "s LIKE 'a%'"

    def predicate(self, depth: int = 3) -> str:
        choose = self.choose
        shapes = ["leaf", "leaf", "{} AND {}", "{} OR {}", "NOT {}", "{} IS {no}{what}"] if depth > 0 else ["leaf"]
        shape = choose(shapes)
        if shape == "leaf":
            return self._leaf()
        inner = [f"({self.predicate(depth - 1)})" for _ in range(shape.count("{}"))]
        return str(shape.format(*inner, no=choose(["", "NOT "]), what=choose(["NULL", "TRUE", "FALSE"])))

    def _leaf(self) -> str:
        choose = self.choose
        column, shape = choose(self.columns), choose(_LEAVES)
        literals = [each for each in LITERALS[column] if "IN (" not in shape or not each.endswith(("E0", "D"))]
        return str(
            shape.format(
                column=column,
                literal=choose(literals),
                other=choose([*literals, "NULL"]),
                comparison=choose(_COMPARISONS),
                no=choose(["", "NOT "]),
                pair=choose(_PAIRS),
                constant=choose(_CONSTANTS),
                guarded=self.guarded,
            )
        )


# The evaluator ------------------------------------------------------------------------------------------------------

_ORDERED: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: compare.eq,
    exp.NEQ: compare.ne,
    exp.LT: compare.lt,
    exp.LTE: compare.le,
    exp.GT: compare.gt,
    exp.GTE: compare.ge,
}


@cache
def _tree(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, dialect="spark")


def evaluate(sql: str, row: Row) -> Any:
    """The value of an expression on a tuple; None is NULL."""
    return _value(_tree(sql), row)


def _value(node: exp.Expr, row: Row) -> Any:
    kind = type(node)
    if kind is exp.And or kind is exp.Or:
        return _joined(_value(node.this, row), _value(node.expression, row), kind is exp.Or)
    if kind is exp.Not:
        value = _value(node.this, row)
        return None if value is None else not value
    if kind is exp.Is:
        value, what = _value(node.this, row), _value(node.expression, row)
        return value is what
    if kind is exp.In:
        value = _value(node.this, row)
        found: bool | None = False
        for item in node.expressions:
            found = _joined(found, _compared(compare.eq, value, _value(item, row)), True)
        return found
    if kind is exp.Between:
        value, low, high = (_value(node.args[key], row) for key in ("this", "low", "high"))
        return _joined(_compared(compare.ge, value, low), _compared(compare.le, value, high), False)
    if isinstance(node, exp.Binary):
        return _binary(node, _value(node.this, row), _value(node.expression, row))
    return _leaf(node, row)


def _joined(a: bool | None, b: bool | None, decisive: bool) -> bool | None:
    """AND and OR: one value decides alone, NULL beside anything else is NULL."""
    if decisive in (a, b):
        return decisive
    return None if a is None or b is None else not decisive


def _binary(node: exp.Expr, left: Any, right: Any) -> Any:
    if type(node) in _ORDERED:
        return _compared(_ORDERED[type(node)], left, right)
    if isinstance(node, exp.NullSafeEQ):
        return left is right if left is None or right is None else _compared(compare.eq, left, right)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Like):
        return str(left).startswith(str(right).removesuffix("%")) != bool(node.args.get("negate"))
    if isinstance(node, exp.Div):
        return math.nan if right == 0 else float(left) / float(right)  # Spark fails there, if it comes there
    numbers = (float(left), float(right)) if float in (type(left), type(right)) else (left, right)
    return numbers[0] * numbers[1] if isinstance(node, exp.Mul) else numbers[0] - numbers[1]


def _leaf(node: exp.Expr, row: Row) -> Any:
    if isinstance(node, exp.Paren):
        return _value(node.this, row)
    if isinstance(node, exp.Column):
        return row[node.name]
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Neg):
        return -_value(node.this, row)
    if isinstance(node, exp.Cast):  # 10L, 1.5D, DATE '…'
        value, to = _value(node.this, row), node.to.sql("spark")
        return {"DOUBLE": float, "FLOAT": float, "BIGINT": int, "DATE": date.fromisoformat}[to](value)
    if isinstance(node, exp.Upper | exp.Length):
        value = _value(node.this, row)
        return None if value is None else value.upper() if isinstance(node, exp.Upper) else len(value)
    if isinstance(node, exp.Case):
        branches = (branch.args["true"] for branch in node.args["ifs"] if _value(branch.this, row) is True)
        found = next(branches, node.args.get("default"))
        return None if found is None else _value(found, row)
    assert isinstance(node, exp.Literal), node
    if node.is_string:
        return node.name
    return float(node.name) if "e" in node.name.lower() else Fraction(node.name)


def _compared(order: Callable[[Any, Any], bool], left: Any, right: Any) -> bool | None:
    """Values are compared in Spark's order: NaN is the greatest number, strings are compared as bytes."""
    if left is None or right is None:
        return None
    if isinstance(left, date) or isinstance(right, date):
        return order(*(each if isinstance(each, date) else date.fromisoformat(each) for each in (left, right)))
    if isinstance(left, str):
        return order(left.encode(), right.encode())
    if isinstance(left, float) or isinstance(right, float):
        numbers = float(left), float(right)
        return order(*((1, 0.0) if math.isnan(each) else (0, each) for each in numbers))
    return order(Fraction(left), Fraction(right))
