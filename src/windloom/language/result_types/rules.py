"""The rule for each node of a syntax tree: its type, given the types of its parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlglot import exp

from windloom.errors import WindloomError
from windloom.language.constants import literal_number_type, whole_value
from windloom.language.result_types.conversions import PLAIN, TIMES, are_alike, are_comparable, can_cast, common_type
from windloom.language.result_types.functions import FUNCTIONS
from windloom.language.result_types.numbers import (
    arithmetic_type,
    decimal_type,
    integer_quotient_type,
    rounded_type,
    wider_integer,
)
from windloom.language.scopes import Names
from windloom.model import DataType, TypeKind

_BOOLEAN, _INT, _STRING, _NULL = (DataType.parse(name) for name in ("boolean", "int", "string", "void"))
_TINYINT = DataType.parse("tinyint")

_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_CONDITION_KINDS = (TypeKind.BOOLEAN, TypeKind.NULL)
_EXTRACTED = {"year", "quarter", "month", "week", "day", "hour", "minute", "dayofweek", "dow", "doy"}
_LITERAL_TIMES = {
    "DATE": (re.compile(r"DATE '(\d{4}-\d\d-\d\d)'"), DataType.parse("date")),
    "TIMESTAMP": (re.compile(r"TIMESTAMP '(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)'"), DataType.parse("timestamp")),
}
#: Types that Spark writes and reads unchanged; whether a cast to CHAR or VARCHAR is a string depends on the session.
_CAST_TARGET = re.compile(
    r"tinyint|smallint|int|bigint|float|double|string|boolean|binary|date|timestamp|timestamp_ntz"
    r"|decimal(\(\d+(, ?\d+)?\))?",
    re.IGNORECASE,
)


def type_of(node: exp.Expr, names: Names) -> DataType | None:
    """The type of an expression on the tuples of a stream; None if it is unknown, or if Spark may refuse it."""
    rule = _RULES.get(type(node))
    return None if rule is None else rule(node, names)


def cast_target(node: exp.Expr) -> DataType | None:
    """The type of a cast, if Spark accepts it; None for anything else."""
    if not isinstance(node, exp.Cast):
        return None
    text = node.args["to"].sql("spark")
    if _CAST_TARGET.fullmatch(text) is None:
        return None
    try:
        found = DataType.parse(text)
    except WindloomError:
        return None
    if found.kind is TypeKind.DECIMAL and (found.scale > found.precision or decimal_type(found.precision, 0) is None):
        return None
    return found


# Leaves ---------------------------------------------------------------------------------------------------------


def _column(node: exp.Expr, names: Names) -> DataType | None:
    found = names.find_node(node)
    return names.stream.columns[found[0]] if found is not None and not found[1] else None


def _literal(node: exp.Expr, names: Names) -> DataType | None:
    text = str(node.this)
    if isinstance(node, exp.Literal) and node.is_string:
        # The meaning of a string in double quotes, or with escapes, depends on the session.
        return _STRING if text.startswith("'") and "\\" not in text else None
    pattern, kind = _LITERAL_TIMES.get(text.split(" ")[0], (None, None))
    if pattern is None or kind is None:
        return literal_number_type(node)
    found = pattern.fullmatch(text)
    return kind if found is not None and _is_instant(found[1]) else None


def _is_instant(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


# Operators ------------------------------------------------------------------------------------------------------


def _paren(node: exp.Expr, names: Names) -> DataType | None:
    return type_of(node.this, names)


def _negative(node: exp.Expr, names: Names) -> DataType | None:
    if isinstance(node.this, exp.Literal):
        return None if node.this.is_string else literal_number_type(node)
    found = type_of(node.this, names)
    return found if found is not None and found.is_numeric else None


def _arithmetic(node: exp.Expr, names: Names) -> DataType | None:
    return _of_operator(_ARITHMETIC[type(node)], node.this, node.expression, names)


def _of_operator(operator: str, left: exp.Expr, right: exp.Expr, names: Names) -> DataType | None:
    kinds = [type_of(left, names), type_of(right, names)]
    if any(kind is None or not kind.is_numeric for kind in kinds):
        return None
    if any(kind is not None and kind.kind is TypeKind.DECIMAL for kind in kinds):
        kinds = [digits_written(node) or kind for node, kind in zip((left, right), kinds, strict=True)]
    left_kind, right_kind = kinds
    return None if left_kind is None or right_kind is None else arithmetic_type(operator, left_kind, right_kind)


def digits_written(node: exp.Expr) -> DataType | None:
    """The type of an integer literal combined with a decimal: it has the digits as written, not those of its type.

    Spark does not do this for TINYINT literals.
    """
    while isinstance(node, exp.Paren):
        node = node.this
    is_literal = isinstance(node, exp.Literal) or (isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal))
    value = whole_value(node) if is_literal else None
    if value is None or literal_number_type(node) == _TINYINT:
        return None
    return decimal_type(len(str(abs(value))), 0)


def _integer_quotient(node: exp.Expr, names: Names) -> DataType | None:
    left, right = type_of(node.this, names), type_of(node.expression, names)
    return None if left is None or right is None else integer_quotient_type(left, right)


def _bitwise(node: exp.Expr, names: Names) -> DataType | None:
    left, right = type_of(node.this, names), type_of(node.expression, names)
    if left is None or right is None or {left.kind, right.kind} != {TypeKind.INTEGER}:
        return None
    return wider_integer(left, right)


def _bitwise_not(node: exp.Expr, names: Names) -> DataType | None:
    found = type_of(node.this, names)
    return found if found is not None and found.kind is TypeKind.INTEGER else None


def _concatenated(node: exp.Expr, names: Names) -> DataType | None:
    kinds = [type_of(side, names) for side in (node.this, node.expression)]
    return _STRING if all(kind == _STRING for kind in kinds) else None


# Conditions -----------------------------------------------------------------------------------------------------


def _compared(node: exp.Expr, names: Names) -> DataType | None:
    return _BOOLEAN if _can_compare(node.this, node.expression, names) else None


def _can_compare(left: exp.Expr, right: exp.Expr, names: Names) -> bool:
    left_kind, right_kind = type_of(left, names), type_of(right, names)
    return left_kind is not None and right_kind is not None and are_comparable(left_kind, right_kind)


def _logical(node: exp.Expr, names: Names) -> DataType | None:
    """The type of a chain. Chains lean to the left and can be long, so this is a loop, not a recursion."""
    left: exp.Expr = node
    while isinstance(left, exp.And | exp.Or):
        if not _is_condition(left.expression, names):
            return None
        left = left.this
    return _BOOLEAN if _is_condition(left, names) else None


def _not(node: exp.Expr, names: Names) -> DataType | None:
    return _BOOLEAN if _is_condition(node.this, names) else None


def _is_condition(node: exp.Expr, names: Names) -> bool:
    found = type_of(node, names)
    return found is not None and found.kind in _CONDITION_KINDS


def _is(node: exp.Expr, names: Names) -> DataType | None:
    if isinstance(node.expression, exp.Null):
        return _BOOLEAN if type_of(node.this, names) is not None else None
    return _not(node, names)


def _in(node: exp.Expr, names: Names) -> DataType | None:
    kinds = _types([node.this, *node.expressions], names)
    return _BOOLEAN if kinds is not None and are_alike(kinds) else None


def _between(node: exp.Expr, names: Names) -> DataType | None:
    sides = (node.args["low"], node.args["high"])
    return _BOOLEAN if all(_can_compare(node.this, side, names) for side in sides) else None


def _like(node: exp.Expr, names: Names) -> DataType | None:
    pattern = node.expression
    patterns = [pattern]
    if isinstance(pattern, exp.Any | exp.All):
        listed = pattern.this
        patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
    strings = all(type_of(operand, names) == _STRING for operand in (node.this, *patterns))
    return _BOOLEAN if strings else None


# Conditional values, casts, functions ---------------------------------------------------------------------------


def _case(node: exp.Expr, names: Names) -> DataType | None:
    branches, chosen = node.args["ifs"], node.this
    for branch in branches:
        if chosen is not None and not _can_compare(chosen, branch.this, names):
            return None
        # Unlike WHERE and if(), WHEN does not accept NULL as a condition.
        if chosen is None and type_of(branch.this, names) != _BOOLEAN:
            return None
    values = [branch.args["true"] for branch in branches]
    default = node.args.get("default")
    kinds = _types(values if default is None else [*values, default], names)
    return None if kinds is None else common_type(kinds)


def _if(node: exp.Expr, names: Names) -> DataType | None:
    parts = [node.this, node.args["true"], node.args.get("false")]
    return None if parts[2] is None else _call("if", parts, names)


def _cast(node: exp.Expr, names: Names) -> DataType | None:
    source, target = type_of(node.this, names), cast_target(node)
    return target if source is not None and target is not None and can_cast(source, target) else None


def _extract(node: exp.Expr, names: Names) -> DataType | None:
    source = type_of(node.expression, names)
    known = source is not None and source.kind in TIMES and node.name.lower() in _EXTRACTED
    return _INT if known else None


def _trim(node: exp.Expr, names: Names) -> DataType | None:
    parts = [part for part in (node.this, node.args.get("expression")) if part is not None]
    return _STRING if all(type_of(piece, names) == _STRING for piece in parts) else None


def _function(node: exp.Expr, names: Names) -> DataType | None:
    name, arguments = node.name.lower(), node.expressions
    if name in ("mod", "pmod") and len(arguments) == 2:
        return _of_operator("%", arguments[0], arguments[1], names)
    if name in ("round", "bround"):
        return _round(arguments, names)
    return _call(name, arguments, names)


def _round(arguments: Sequence[exp.Expr], names: Names) -> DataType | None:
    places = 0 if len(arguments) == 1 else whole_value(arguments[1]) if len(arguments) == 2 else None
    found = type_of(arguments[0], names) if arguments else None
    if places is None or found is None or not found.is_numeric:
        return None
    return rounded_type(found, places)


def _call(name: str, arguments: Sequence[exp.Expr], names: Names) -> DataType | None:
    rule = FUNCTIONS.get(name)
    kinds = None if rule is None else _types(arguments, names)
    return None if rule is None or not kinds else rule(kinds)


def _types(nodes: Sequence[exp.Expr], names: Names) -> list[DataType] | None:
    """All types, if all are known and have no nested parts."""
    kinds = []
    for node in nodes:
        kind = type_of(node, names)
        if kind is None or kind.kind not in PLAIN | {TypeKind.NULL}:
            return None
        kinds.append(kind)
    return kinds


_RULES: dict[type[exp.Expr], Callable[[Any, Names], DataType | None]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, names: _BOOLEAN,
    exp.Null: lambda node, names: _NULL,
    exp.Paren: _paren,
    exp.Neg: _negative,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    exp.IntDiv: _integer_quotient,
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _bitwise),
    exp.BitwiseNot: _bitwise_not,
    exp.DPipe: _concatenated,
    **dict.fromkeys(_COMPARED, _compared),
    **dict.fromkeys((exp.And, exp.Or), _logical),
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike), _like),
    exp.Case: _case,
    exp.If: _if,
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    exp.Extract: _extract,
    exp.Trim: _trim,
    exp.Anonymous: _function,
    exp.Substring: lambda node, names: _by_position("substring", node, names, "this", "start", "length"),
    exp.StrPosition: lambda node, names: _by_position("position", node, names, "substr", "this", "position"),
}


def _by_position(name: str, node: exp.Expr, names: Names, *keys: str) -> DataType | None:
    return _call(name, [node.args[key] for key in keys if node.args.get(key) is not None], names)
