"""Spark's types of results: how it widens and converts operands, and the digits of its decimals.

A type is certain if Spark gives it in every session: with ANSI mode on or off, and whether decimal operations may lose
digits or not. Types that are not certain are those of ANSI mode with Spark's defaults, in which we evaluate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from windloom.model.types import BIGINT, DOUBLE, DataType, TypeKind

BOOLEAN, STRING, VOID = (DataType.parse(name) for name in ("boolean", "string", "void"))

NUMBERS = frozenset({TypeKind.INTEGER, TypeKind.FLOAT, TypeKind.DECIMAL})
TIMES = frozenset({TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ})
#: Types without nested parts.
PLAIN = NUMBERS | TIMES | {TypeKind.STRING, TypeKind.BOOLEAN, TypeKind.BINARY}

MOST_DIGITS = 38
#: Digits after the point that quotients have at least, and that Spark keeps when a result would have more than 38.
_KEPT_SCALE = 6
#: The digits that Spark gives an integer type combined with a decimal.
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}

_INSTANTS = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ, TypeKind.DATE)  # the wider before the narrower

#: The kinds that a value of each kind can be cast to.
_CASTS: dict[TypeKind, frozenset[TypeKind]] = {
    **dict.fromkeys(NUMBERS, NUMBERS | {TypeKind.STRING, TypeKind.BOOLEAN, TypeKind.TIMESTAMP}),
    TypeKind.BOOLEAN: NUMBERS | {TypeKind.STRING, TypeKind.BOOLEAN},
    TypeKind.STRING: PLAIN,
    TypeKind.BINARY: frozenset({TypeKind.STRING, TypeKind.BINARY}),
    TypeKind.DATE: TIMES | {TypeKind.STRING},
    TypeKind.TIMESTAMP: TIMES | NUMBERS | {TypeKind.STRING},
    TypeKind.TIMESTAMP_NTZ: TIMES | {TypeKind.STRING},
    TypeKind.NULL: PLAIN,
}


class NotKnownError(Exception):
    """Only Spark knows the result of an expression, or its type; the text describes the part concerned."""


@dataclass(frozen=True, slots=True)
class ResultType:
    """The type of a result; `why_spark` describes what our evaluator cannot compute."""

    kind: DataType
    is_certain: bool = True
    why_spark: str | None = None


# Conversions ----------------------------------------------------------------------------------------------------------


def can_cast(source: DataType, target: DataType) -> bool:
    return target.kind in _CASTS.get(source.kind, ())


def is_cast_target(kind: DataType) -> bool:
    """Whether Spark has the type, and casts to it."""
    return kind.kind in PLAIN and (kind.kind is not TypeKind.DECIMAL or kind.scale <= kind.precision <= MOST_DIGITS)


def are_comparable(left: DataType, right: DataType) -> bool:
    """Whether Spark compares the two, whatever it converts them to."""
    kinds = {left.kind, right.kind}
    if not kinds <= PLAIN | {TypeKind.NULL}:
        return False
    if TypeKind.NULL in kinds or len(kinds) == 1 or kinds <= NUMBERS or kinds <= TIMES:
        return True
    # A value and a string are compared as strings or by the value's type; both work for everything except binaries.
    return TypeKind.STRING in kinds and TypeKind.BINARY not in kinds


def are_alike(kinds: Iterable[DataType]) -> bool:
    """Whether all are of one sort (numbers, times or one type), so that many of them can be compared at once."""
    sorts = {kind.kind for kind in kinds} - {TypeKind.NULL}
    return sorts <= NUMBERS or sorts <= TIMES or (len(sorts) == 1 and sorts <= PLAIN)


def common_type(kinds: Sequence[DataType]) -> ResultType:
    """Return the type of a value that is one of several, as in CASE; like Spark, pair by pair from the left.

    Raises NotKnownError if there is none.
    """
    widest = ResultType(kinds[0], is_certain=kinds[0].kind in PLAIN | {TypeKind.NULL})
    for kind in kinds[1:]:
        both = _wider(widest.kind, kind)
        widest = ResultType(both.kind, widest.is_certain and both.is_certain, widest.why_spark or both.why_spark)
    return widest


def _wider(left: DataType, right: DataType) -> ResultType:
    kinds = {left.kind, right.kind}
    if left == right or TypeKind.NULL in kinds:
        kind = right if left.kind is TypeKind.NULL else left
        return ResultType(kind, is_certain=kind.kind in PLAIN | {TypeKind.NULL})
    if kinds <= TIMES:
        wider = min(left, right, key=lambda each: _INSTANTS.index(each.kind))
        return ResultType(wider, why_spark=f"{left} beside {right}")
    if not kinds <= NUMBERS:
        raise NotKnownError(f"{left} beside {right}")
    if kinds == {TypeKind.INTEGER}:
        return ResultType(max(left, right, key=lambda each: each.bits))
    if TypeKind.FLOAT in kinds:  # a FLOAT combined with an integer is a double in ANSI mode only
        return ResultType(DOUBLE, is_certain=DOUBLE in (left, right) or TypeKind.DECIMAL in kinds)
    left_digits, right_digits = as_decimal(left), as_decimal(right)
    scale = max(left_digits.scale, right_digits.scale)
    precision = max(_whole_digits(left_digits), _whole_digits(right_digits)) + scale
    if precision > MOST_DIGITS:
        raise NotKnownError(f"{left} beside {right}: more than {MOST_DIGITS} digits")
    return ResultType(decimal(precision, scale))


# Numbers --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1_024)
def decimal(precision: int, scale: int) -> DataType:
    return DataType.parse(f"decimal({precision},{scale})")


def as_decimal(kind: DataType) -> DataType:
    """Return the decimal that holds all values of an integer type."""
    return decimal(_INTEGER_DIGITS[kind.bits], 0) if kind.kind is TypeKind.INTEGER else kind


def bounded(precision: int, scale: int) -> ResultType:
    """Return a decimal type of at most 38 digits; like Spark by default, it gives up digits after the point."""
    if precision <= MOST_DIGITS:
        return ResultType(decimal(precision, scale))
    whole = precision - scale
    return ResultType(decimal(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _KEPT_SCALE))), is_certain=False)


def arithmetic_type(op: str, left: DataType, right: DataType) -> ResultType:
    """Return the type of `left op right`, where op is one of + - * / % div, and both are numbers.

    >>> str(arithmetic_type("*", DataType.parse("decimal(10,2)"), DataType.parse("int")).kind)
    'decimal(21,2)'
    """
    kinds = {left.kind, right.kind}
    if op == "div" and TypeKind.FLOAT in kinds:
        raise NotKnownError("DIV of floating-point numbers")
    if TypeKind.DECIMAL in kinds and TypeKind.FLOAT not in kinds:
        return _decimal_type(op, as_decimal(left), as_decimal(right))
    if op == "div":
        return ResultType(BIGINT)
    return ResultType(DOUBLE) if op == "/" else _wider(left, right)


def _decimal_type(op: str, left: DataType, right: DataType) -> ResultType:
    whole, scale = (_whole_digits(left), _whole_digits(right)), max(left.scale, right.scale)
    match op:
        case "+" | "-":
            return bounded(max(whole) + scale + 1, scale)
        case "*":
            return bounded(left.precision + right.precision + 1, left.scale + right.scale)
        case "/":
            scale = max(_KEPT_SCALE, left.scale + right.precision + 1)
            return bounded(whole[0] + right.scale + scale, scale)
        case "div":
            return ResultType(BIGINT, why_spark="div of decimals")
    return ResultType(decimal(min(whole) + scale, scale), why_spark=f"{op} of decimals")


def rounded_type(kind: DataType, places: int) -> ResultType:
    """Return the type of round(x, places): a decimal may get one more digit before the point."""
    if kind.kind is not TypeKind.DECIMAL:
        return ResultType(kind)
    whole, scale = _whole_digits(kind) + 1, max(0, min(kind.scale, places))
    precision = max(whole, 1 - places) if places < 0 else whole + scale
    return ResultType(decimal(min(precision, MOST_DIGITS), scale), is_certain=precision <= MOST_DIGITS)


def _whole_digits(kind: DataType) -> int:
    return kind.precision - kind.scale
