"""Literals as Spark reads them: their values and types, and the values of a column with which they are compared."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from windloom.expressions.types import BOOLEAN, MOST_DIGITS, STRING, VOID, as_decimal, decimal
from windloom.model.expression import ConstantValue, Opaque, Scalar, apply
from windloom.model.types import BIGINT, DOUBLE, TIMESTAMP, DataType, TypeKind
from windloom.model.value_sets import EXACT_IN_FLOAT, TRUTH, Domain, SubjectKind

_NUMBER = re.compile(
    r"(?P<sign>-?)(?P<whole>\d*)(?P<point>\.(?P<fraction>\d*))?(?P<exponent>E[+-]?\d+)?(?P<suffix>BD|[LSYDF])?"
)
_PLAIN_STRING = re.compile(r"'([^'\\]*)'")
#: A string whose value is not read; its meaning in double quotes, or with escapes, depends on the session.
_STRING = re.compile(r"'[^\\]*")
_DATE = re.compile(r"(DATE )?'(\d{4}-\d{2}-\d{2})'")
_TIMESTAMP = re.compile(r"TIMESTAMP '(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)'")
_SUFFIXES = {"Y": "tinyint", "S": "smallint", "L": "bigint", "F": "float"}
_INTEGERS = [DataType.parse(name) for name in ("int", "bigint")]
_FLOAT, _DATES = DataType.parse("float"), DataType.parse("date")
#: The types in which two literals may be compared.
_PLAIN_TYPES = (BIGINT, STRING, BOOLEAN)
#: Whole numbers below this are exact as doubles, and no other integer is rounded to them.
_EXACT_IN_DOUBLE = 2**53
_EPOCH = date(1970, 1, 1)

NULL = ConstantValue(None, VOID)


def literal(text: str) -> Scalar:
    """Return a literal as Spark reads it; literals that depend on the session, or are rare, have no tree.

    >>> literal("0.05").kind.name, literal("-3000000000").kind.name, literal("X'1F'")
    ('decimal(2,2)', 'bigint', Opaque(what="X'1F'", depth=1))
    """
    if (number := _number(text)) is not None:
        value, kind = number
        if kind.kind is TypeKind.DECIMAL:
            return ConstantValue(Decimal(text.removesuffix("BD")), kind)
        if kind == _FLOAT:
            return Opaque(text, typed_as=ConstantValue(None, kind))
        return ConstantValue(float(text.removesuffix("D")) if kind == DOUBLE else int(value), kind)
    if (string := _PLAIN_STRING.fullmatch(text)) is not None:
        return ConstantValue(string[1], STRING)
    if text.startswith("DATE") and (day := _parsed(date.fromisoformat, _DATE.fullmatch(text))) is not None:
        return ConstantValue((day - _EPOCH).days, _DATES)
    if (instant := _TIMESTAMP.fullmatch(text)) is not None:
        is_instant = _parsed(datetime.fromisoformat, instant) is not None
        return Opaque(text, typed_as=ConstantValue(None, TIMESTAMP) if is_instant else None)
    return Opaque(text, typed_as=ConstantValue(None, STRING) if _STRING.fullmatch(text) else None)


def negative(operand: Scalar, sql: str) -> Scalar:
    """Return the negated operand; to Spark, a minus sign before a number is part of the literal."""
    is_literal = isinstance(operand, ConstantValue | Opaque) and not sql.startswith("-")
    negated = literal(f"-{sql}") if is_literal else operand
    return negated if is_literal and isinstance(negated, ConstantValue) else apply("negative", operand)


def is_narrower(negated: Scalar, operand: Scalar) -> bool:
    """Whether a literal has another type with its sign: -2147483648 is an INT, and -(2147483648) is a BIGINT."""
    return isinstance(negated, ConstantValue) and isinstance(operand, ConstantValue) and negated.kind != operand.kind


def domain_of(kind: DataType) -> Domain | None:
    """Return the values of a column in their order; None for types whose comparison only Spark knows."""
    if kind.kind is TypeKind.INTEGER:
        return Domain(SubjectKind.WHOLE, 0, -(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)
    if kind.kind is TypeKind.DECIMAL and 0 <= kind.scale <= kind.precision:
        return Domain(SubjectKind.WHOLE, kind.scale, 1 - 10**kind.precision, 10**kind.precision - 1)
    simple = {
        TypeKind.FLOAT: Domain(SubjectKind.FLOAT),
        TypeKind.STRING: Domain(SubjectKind.STRING),
        TypeKind.BOOLEAN: TRUTH,
        TypeKind.DATE: Domain(SubjectKind.DATE),
    }
    return simple.get(kind.kind)


def column_values(texts: Sequence[str], kind: DataType) -> list[Any] | None:
    """Return the values of literals with which a column is compared at once; None if one may mean something else."""
    if kind.is_numeric:
        numbers = [number for text in texts if (number := _number(text)) is not None]
        return None if len(numbers) < len(texts) else _beside(numbers, kind)
    read = _READERS.get(kind.kind)
    values = [None] if read is None else [read(text) for text in texts]
    return None if any(value is None for value in values) else values


def literal_order(left: str, right: str) -> int | None:
    """Return how two literals compare (-1, 0, 1), if that is certain."""
    for kind in _PLAIN_TYPES:
        values = column_values((left, right), kind)
        if values is not None:
            return int(values[0] > values[1]) - int(values[0] < values[1])
    return None


def number_type(text: str) -> DataType | None:
    """Return the type of a numeric literal, unless it is a decimal."""
    number = _number(text)
    return None if number is None or number[1].kind is TypeKind.DECIMAL else number[1]


def _number(text: str) -> tuple[Fraction, DataType] | None:
    """Return the value and type of a numeric literal; a decimal has the digits from the first that is not zero."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match["whole"] or match["fraction"]):
        return None
    whole, fraction, suffix = match["whole"].lstrip("0"), match["fraction"] or "", match["suffix"]
    if suffix in ("D", "F") or (match["exponent"] and suffix is None):
        plain = text.removesuffix(suffix or "")
        if suffix == "F":  # its exact value, which must be that of a float to be understood
            return (Fraction(plain), _FLOAT) if abs(float(plain)) <= EXACT_IN_FLOAT else None
        return (Fraction(float(plain)), DOUBLE) if isfinite(float(plain)) else None
    digits, scale = len(whole), len(fraction)
    if match["exponent"] or digits + scale > MOST_DIGITS:
        return None
    value = Fraction(int(match["sign"] + (whole + fraction or "0")), 10**scale)
    if match["point"] or suffix == "BD":
        return None if suffix not in (None, "BD") else (value, decimal(max(1, digits + scale), scale))
    for kind in [DataType.parse(_SUFFIXES[suffix])] if suffix else _INTEGERS:
        if -(2 ** (kind.bits - 1)) <= value < 2 ** (kind.bits - 1):
            return value, kind
    return None if suffix else (value, decimal(digits, 0))


def _beside(numbers: list[tuple[Fraction, DataType]], kind: DataType) -> list[Any] | None:
    """Return the numbers as values of a column, if Spark compares them as such."""
    values, kinds = [value for value, _ in numbers], [each for _, each in numbers]
    if kind.kind is TypeKind.FLOAT:
        for value, own in numbers:
            # Compared with FLOAT, an integer becomes a float or a double, depending on the session.
            if kind == _FLOAT and own.kind is TypeKind.INTEGER and abs(value) > EXACT_IN_FLOAT:
                return None
            if own == _FLOAT and value != Fraction(struct.unpack("f", struct.pack("f", value))[0]):
                return None
        return [float(value) for value in values]  # to the nearest double, as Spark does
    if kind.kind is TypeKind.INTEGER and set(kinds) == {DOUBLE}:
        # Spark compares as doubles, to which integers of 64 bits are rounded.
        exact = kind.bits <= 32 or all(abs(value) < _EXACT_IN_DOUBLE for value in values)
        return values if exact else None
    if any(each.kind is TypeKind.FLOAT for each in kinds):
        return None
    decimals = [as_decimal(each) for each in (kind, *kinds)]
    digits = max(each.precision - each.scale for each in decimals)
    return values if digits + max(each.scale for each in decimals) <= MOST_DIGITS else None


def _parsed(parse: Callable[[str], Any], match: re.Match[str] | None) -> Any:
    """Return what is read from the last group of a match; None if there is no match, or the text means nothing."""
    try:
        return None if match is None else parse(match[match.lastindex or 0])
    except ValueError:
        return None


def _ordinal(text: str) -> int | None:
    day: date | None = _parsed(date.fromisoformat, _DATE.fullmatch(text))
    # The days before and after must also be dates that can be written.
    return day.toordinal() if day is not None and date.min < day < date.max else None


_READERS: dict[TypeKind, Callable[[str], Any]] = {
    TypeKind.STRING: lambda text: _parsed(str.encode, _PLAIN_STRING.fullmatch(text)),
    TypeKind.DATE: _ordinal,
    TypeKind.BOOLEAN: {"FALSE": 0, "TRUE": 1}.get,
}
