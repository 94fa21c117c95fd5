"""Trees of checked expressions: the values of literals, and how operators combine their operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from math import isfinite

from windloom.errors import WindloomError
from windloom.model import DataType
from windloom.model.scalar import Constant, Opaque, Scalar, apply, cast

_NUMBER = re.compile(r"(-?)(\d*)(?:(\.)(\d*))?(E[+-]?\d+)?(BD|[LSYDF])?")
_STRING = re.compile(r"'([^'\\]*)'")
_DATE = re.compile(r"DATE '(\d{4}-\d{2}-\d{2})'")
_WHOLE = {"Y": "tinyint", "S": "smallint", "L": "bigint"}
_MOST_DIGITS = 38
_INT, _BIGINT, _DOUBLE = (DataType.parse(name) for name in ("int", "bigint", "double"))
_STRINGS, _DATES, _BOOLEAN, _VOID = (DataType.parse(name) for name in ("string", "date", "boolean", "void"))
_EPOCH = date(1970, 1, 1)

NULL = Constant(None, _VOID)


def truth(value: bool) -> Constant:
    return Constant(value, _BOOLEAN)


def literal(text: str) -> Scalar:
    """A literal as Spark reads it; literals that depend on the session, or are rare, have no tree.

    >>> literal("0.05").kind.name, literal("-3000000000").kind.name, literal("X'1F'")
    ('decimal(2,2)', 'bigint', Opaque(what="X'1F'", depth=1))
    """
    number = _NUMBER.fullmatch(text)
    if number is not None and (number[2] or number[4]):
        return _number(text, number) or Opaque(text)
    if (string := _STRING.fullmatch(text)) is not None:
        return Constant(string[1], _STRINGS)
    if (day := _DATE.fullmatch(text)) is not None:
        try:
            return Constant((date.fromisoformat(day[1]) - _EPOCH).days, _DATES)
        except ValueError:
            return Opaque(text)
    return Opaque(text)


def _number(text: str, match: re.Match[str]) -> Constant | None:
    sign, whole, point, fraction, exponent, suffix = match.groups()
    if suffix == "F" or (exponent and suffix not in (None, "D")):
        return None
    if suffix == "D" or exponent:
        value = float(text.removesuffix("D"))
        return Constant(value, _DOUBLE) if isfinite(value) else None
    if not point and suffix != "BD":
        return _integer(int(sign + whole), suffix)
    digits, scale = len(whole.lstrip("0")), len(fraction or "")
    if suffix not in (None, "BD") or digits + scale > _MOST_DIGITS:
        return None
    kind = DataType.parse(f"decimal({max(1, digits + scale)},{scale})")
    return Constant(Decimal(text.removesuffix("BD")), kind)


def _integer(value: int, suffix: str | None) -> Constant | None:
    kinds = [DataType.parse(_WHOLE[suffix])] if suffix else [_INT, _BIGINT]
    for kind in kinds:
        if -(2 ** (kind.bits - 1)) <= value < 2 ** (kind.bits - 1):
            return Constant(value, kind)
    digits = len(str(abs(value)))
    if suffix or digits > _MOST_DIGITS:
        return None
    return Constant(Decimal(value), DataType.parse(f"decimal({digits},0)"))


def negative(operand: Scalar, sql: str) -> Scalar:
    """The negated operand; to Spark, a minus sign before a number is part of the literal."""
    is_number = isinstance(operand, Constant) and operand.kind.is_numeric and not sql.startswith("-")
    return literal(f"-{sql}") if is_number else apply("negative", operand)


def negated(tree: Scalar, is_negated: bool) -> Scalar:
    return apply("not", tree) if is_negated else tree


def is_tree(operand: Scalar, what: Scalar) -> Scalar:
    """`operand IS what`, where `what` is NULL, TRUE or FALSE."""
    return apply("isnull", operand) if what == NULL else apply("<=>", operand, what)


def between(value: Scalar, low: Scalar, high: Scalar) -> Scalar:
    return apply("and", apply(">=", value, low), apply("<=", value, high))


def case(subject: Scalar | None, branches: Sequence[tuple[Scalar, Scalar]], otherwise: Scalar | None) -> Scalar:
    parts: list[Scalar] = []
    for condition, value in branches:
        parts += [condition if subject is None else apply("=", subject, condition), value]
    return apply("case", *parts, NULL if otherwise is None else otherwise)


def cast_tree(operand: Scalar, type_name: str) -> Scalar:
    try:
        return cast(operand, DataType.parse(type_name))
    except WindloomError:
        return Opaque(f"CAST(… AS {type_name})")
