"""A small evaluator of SQL expressions on rows in Python, with NULL as None, for tests of what expressions mean."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

#: The columns of a row; qualified ones as `alias.column`.
Row = Mapping[str, Any]

_STRICT: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}


@lru_cache(maxsize=4_096)
def _tree(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="spark")


def evaluate(sql: str, row: Row) -> Any:
    """
    >>> evaluate("a.x + 1 > 2 AND a.y IS NULL", {"a.x": 5, "a.y": None}), evaluate("x * y", {"x": 1, "y": None})
    (True, None)
    """
    return _value(_tree(sql), row)


def _value(node: exp.Expr, row: Row) -> Any:
    match node:
        case exp.Paren() | exp.Cast() | exp.TryCast():
            return _value(node.this, row)
        case exp.Column():
            return row[".".join(part.name for part in node.parts)]
        case exp.Literal():
            return str(node.this) if node.is_string else int(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Neg():
            value = _value(node.this, row)
            return None if value is None else -value
        case exp.Not():
            value = _value(node.this, row)
            return None if value is None else not value
        case exp.And() | exp.Or():
            return _logic(isinstance(node, exp.And), _value(node.this, row), _value(node.expression, row))
        case exp.Is():
            value = _value(node.this, row)
            return value is None if isinstance(node.expression, exp.Null) else value is bool(node.expression.this)
        case exp.NullSafeEQ():
            return _value(node.this, row) == _value(node.expression, row)
        case exp.Coalesce():
            values = [_value(operand, row) for operand in (node.this, *node.expressions)]
            return next((value for value in values if value is not None), None)
        case exp.Case():
            branches = ((_value(branch.this, row), branch.args["true"]) for branch in node.args["ifs"])
            found = next((value for condition, value in branches if condition), node.args.get("default"))
            return None if found is None else _value(found, row)
    left, right = _value(node.this, row), _value(node.expression, row)
    return None if left is None or right is None else _STRICT[type(node)](left, right)


def _logic(is_and: bool, left: bool | None, right: bool | None) -> bool | None:
    decisive = not is_and
    if decisive in (left, right):
        return decisive
    return None if None in (left, right) else is_and
