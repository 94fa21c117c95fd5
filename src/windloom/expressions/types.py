"""The types of results: Spark's rules in ANSI mode, for the types that can be evaluated without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from windloom.expressions.node import Node, NotKnownError
from windloom.model.types import DOUBLE, DataType, TypeKind

MOST_DIGITS = 38
#: Digits after the point that Spark keeps when a result would have more than 38 digits.
_KEPT_SCALE = 6
#: The digits that Spark gives an integer type combined with a decimal.
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}

#: Types whose values are compared alike here and in Spark.
_COMPARABLE = (TypeKind.BOOLEAN, TypeKind.STRING, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ)


def decimal(precision: int, scale: int) -> DataType:
    return DataType.parse(f"decimal({precision},{scale})")


def as_decimal(node: Node) -> DataType:
    """The decimal type of an operand combined with a decimal; a literal has only its own digits."""
    if node.kind.kind is TypeKind.INTEGER and node.is_constant:
        return decimal(len(str(abs(node.value))), 0)
    return _decimal_for(node.kind)


def _decimal_for(kind: DataType) -> DataType:
    return decimal(_INTEGER_DIGITS[kind.bits], 0) if kind.kind is TypeKind.INTEGER else kind


def bounded(precision: int, scale: int) -> DataType:
    """A decimal type with at most 38 digits; like Spark, it gives up digits after the point."""
    if precision <= MOST_DIGITS:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _KEPT_SCALE)))


def arithmetic_decimal(op: str, left: DataType, right: DataType) -> DataType:
    """The type of an operation on two decimals."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if op == "*":
        return bounded(p1 + p2 + 1, s1 + s2)
    if op == "/":
        scale = max(_KEPT_SCALE, s1 + p2 + 1)
        return bounded(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return bounded(max(p1 - s1, p2 - s2) + scale + 1, scale)


def common(kinds: Sequence[DataType]) -> DataType:
    """The type to which Spark converts values that must have one type."""
    return reduce(_wider, kinds)


def comparable(kinds: Sequence[DataType]) -> DataType:
    found = common(kinds)
    if not found.is_numeric and found.kind not in _COMPARABLE:
        raise NotKnownError(f"a comparison of {found}")
    return found


def _wider(left: DataType, right: DataType) -> DataType:
    if left == right or right.kind is TypeKind.NULL:
        return left
    if left.kind is TypeKind.NULL:
        return right
    if not (left.is_numeric and right.is_numeric):
        raise NotKnownError(f"{left} beside {right}")
    if TypeKind.FLOAT in (left.kind, right.kind):
        return DOUBLE
    if left.kind is right.kind is TypeKind.INTEGER:
        return max(left, right, key=lambda each: each.bits)
    left_decimal, right_decimal = _decimal_for(left), _decimal_for(right)
    scale = max(left_decimal.scale, right_decimal.scale)
    precision = max(left_decimal.precision - left_decimal.scale, right_decimal.precision - right_decimal.scale) + scale
    if precision > MOST_DIGITS:
        raise NotKnownError(f"{left} beside {right}: more than {MOST_DIGITS} digits")
    return decimal(precision, scale)
