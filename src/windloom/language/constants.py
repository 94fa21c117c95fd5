"""The value of a literal that is compared with a column, if Spark certainly compares both as values of one order."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import isfinite
from typing import Any

from sqlglot import exp

from windloom.model import DataType, TypeKind
from windloom.model.subject import EXACT_IN_FLOAT, TRUTH, Domain, Kind

_NUMBER = re.compile(r"(?P<whole>\d*)(?P<point>\.(?P<fraction>\d*))?(?P<exponent>E[+-]?\d+)?(?P<suffix>BD|[LSYDF])?")
_PLAIN_STRING = re.compile(r"'([^'\\]*)'")
_DATE = re.compile(r"(?:DATE )?'(\d{4}-\d{2}-\d{2})'")
_SUFFIX_BITS = {"Y": 8, "S": 16, "L": 64}
#: The digits that Spark gives an integer type when it compares it with decimals.
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
#: Wider decimals are rounded before they are compared.
_MOST_DIGITS = 38
#: Whole numbers below this are exact as doubles, and no other integer is rounded to them.
_EXACT_IN_DOUBLE = 2**53


#: The types in which two literals may be compared.
_INTEGERS = [DataType.parse(name) for name in ("tinyint", "smallint", "int", "bigint")]
_PLAIN_TYPES = [DataType.parse(name) for name in ("bigint", "string", "boolean")]


@dataclass(frozen=True, slots=True)
class _Number:
    """A numeric literal: its type in Spark, its value, and the digits of that type before and after the point."""

    kind: str
    value: Fraction
    digits: int = 0
    scale: int = 0


def domain_of(kind: DataType) -> Domain | None:
    """The values of a column in their order; None for types whose comparison only Spark knows."""
    if kind.kind is TypeKind.INTEGER:
        return Domain(Kind.WHOLE, 0, -(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)
    if kind.kind is TypeKind.DECIMAL and 0 <= kind.scale <= kind.precision:
        return Domain(Kind.WHOLE, kind.scale, 1 - 10**kind.precision, 10**kind.precision - 1)
    simple = {TypeKind.FLOAT: Domain(Kind.FLOAT), TypeKind.STRING: Domain(Kind.STRING), TypeKind.BOOLEAN: TRUTH}
    simple[TypeKind.DATE] = Domain(Kind.DATE)
    return simple.get(kind.kind)


def constants(nodes: Sequence[exp.Expr], kind: DataType) -> list[Any] | None:
    """The values of literals that a column is compared with at once; None if one of them may mean something else."""
    if kind.is_numeric:
        numbers = [_number(node) for node in nodes]
        known = [number for number in numbers if number is not None]
        return None if len(known) < len(numbers) else _beside(known, kind)
    read = {TypeKind.STRING: _string, TypeKind.DATE: _date, TypeKind.BOOLEAN: _boolean}.get(kind.kind)
    values = [read(node) for node in nodes] if read is not None else [None]
    return None if any(value is None for value in values) else values


def is_literal(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Boolean) or (
        isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    )


def number_type(node: exp.Expr) -> DataType | None:
    """The type of a numeric literal, unless it is a decimal."""
    found = literal_number_type(node)
    return None if found is None or found.kind is TypeKind.DECIMAL else found


def literal_number_type(node: exp.Expr) -> DataType | None:
    """The type of a numeric literal: a decimal has the digits that are written, from the first nonzero one on."""
    number = _number(node)
    if number is None:
        return None
    if number.kind == "decimal":
        return DataType.parse(f"decimal({max(1, number.digits + number.scale)},{number.scale})")
    if number.kind != "whole":
        return DataType.parse(number.kind)
    return next(kind for kind in _INTEGERS if _INTEGER_DIGITS[kind.bits] == number.digits)


def whole_value(node: exp.Expr) -> int | None:
    """The value of an integer literal."""
    number = _number(node)
    return int(number.value) if number is not None and number.kind == "whole" else None


def literal_order(left: exp.Expr, right: exp.Expr) -> int | None:
    """How two literals compare (-1, 0, 1), if that is certain."""
    for kind in _PLAIN_TYPES:
        values = constants((left, right), kind)
        if values is not None:
            return int(values[0] > values[1]) - int(values[0] < values[1])
    return None


def _beside(numbers: list[_Number], kind: DataType) -> list[Any] | None:
    kinds = {number.kind for number in numbers}
    if kind.kind is TypeKind.FLOAT:
        return _as_floats(numbers, kind)
    if kind.kind is TypeKind.INTEGER and kinds == {"double"}:
        # Spark compares as doubles, to which integers of 64 bits are rounded.
        exact = kind.bits <= 32 or all(abs(number.value) < _EXACT_IN_DOUBLE for number in numbers)
        return [number.value for number in numbers] if exact else None
    if not kinds <= {"whole", "decimal"}:
        return None
    own = _INTEGER_DIGITS[kind.bits] if kind.kind is TypeKind.INTEGER else kind.precision - kind.scale
    digits = max(own, *(number.digits for number in numbers))
    scale = max(kind.scale, *(number.scale for number in numbers))
    return [number.value for number in numbers] if digits + scale <= _MOST_DIGITS else None


def _as_floats(numbers: list[_Number], kind: DataType) -> list[Any] | None:
    for number in numbers:
        # Compared with FLOAT, an integer becomes a float or a double, depending on the session.
        if kind.name == "float" and number.kind == "whole" and abs(number.value) > EXACT_IN_FLOAT:
            return None
        if number.kind == "float" and number.value != Fraction(struct.unpack("f", struct.pack("f", number.value))[0]):
            return None
    return [float(number.value) for number in numbers]  # to the nearest double, as Spark does


def _number(node: exp.Expr) -> _Number | None:
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    match = _NUMBER.fullmatch(str(node.this))
    if match is None or not (match["whole"] or match["fraction"]):
        return None
    whole, fraction, suffix = match["whole"].lstrip("0"), match["fraction"] or "", match["suffix"]
    if suffix in ("D", "F") or (match["exponent"] and suffix is None):
        return _floating(str(node.this).removesuffix(suffix or ""), sign, suffix)
    value = sign * Fraction(int(whole + fraction or "0"), 10 ** len(fraction))
    if match["exponent"] or len(whole) + len(fraction) > _MOST_DIGITS:
        return None
    if match["point"] or suffix == "BD":
        return None if suffix not in (None, "BD") else _Number("decimal", value, len(whole), len(fraction))
    bits = _SUFFIX_BITS.get(suffix or "") or (32 if -(2**31) <= value < 2**31 else 64)
    if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        return _Number("whole", value, _INTEGER_DIGITS[bits])
    return None if suffix else _Number("decimal", value, len(whole))


def _floating(text: str, sign: int, suffix: str | None) -> _Number | None:
    value = float(text)
    if not isfinite(value):
        return None
    if suffix == "F":  # its exact value, which must be that of a float to be understood
        return _Number("float", sign * Fraction(text)) if abs(value) <= EXACT_IN_FLOAT else None
    return _Number("double", sign * Fraction(value))


def _string(node: exp.Expr) -> bytes | None:
    match = _PLAIN_STRING.fullmatch(str(node.this)) if isinstance(node, exp.Literal) else None
    try:
        return match[1].encode() if match is not None else None
    except UnicodeEncodeError:
        return None


def _date(node: exp.Expr) -> int | None:
    match = _DATE.fullmatch(str(node.this)) if isinstance(node, exp.Literal) else None
    try:
        day = date.fromisoformat(match[1]) if match is not None else None
    except ValueError:
        return None
    # The days before and after must also be dates that can be written.
    return day.toordinal() if day is not None and date.min < day < date.max else None


def _boolean(node: exp.Expr) -> int | None:
    return int(bool(node.this)) if isinstance(node, exp.Boolean) else None
