"""The types of arithmetic on numbers: how Spark widens integers, and the digits of its decimals."""

from __future__ import annotations

from windloom.model import DataType, TypeKind

BIGINT, DOUBLE = (DataType.parse(name) for name in ("bigint", "double"))

#: The digits that Spark gives an integer type combined with a decimal.
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_MOST_DIGITS = 38
#: The least number of digits after the point of a quotient of decimals.
_LEAST_QUOTIENT_SCALE = 6


def decimal_type(precision: int, scale: int) -> DataType | None:
    """A decimal type; None if it would have too many digits, because then the session decides what is cut off."""
    if not 0 < precision <= _MOST_DIGITS:
        return None
    return DataType.parse(f"decimal({precision},{scale})")


def arithmetic_type(operator: str, left: DataType, right: DataType) -> DataType | None:
    """The type of `left operator right`, where operator is one of + - * / % and both are numbers.

    >>> str(arithmetic_type("*", DataType.parse("decimal(10,2)"), DataType.parse("int")))
    'decimal(21,2)'
    """
    kinds = {left.kind, right.kind}
    if kinds == {TypeKind.INTEGER}:
        return DOUBLE if operator == "/" else wider_integer(left, right)
    if TypeKind.FLOAT in kinds:
        if operator == "/" or DOUBLE in (left, right) or TypeKind.DECIMAL in kinds:
            return DOUBLE
        return left if left == right else None  # a FLOAT combined with an integer is a double in ANSI mode only
    return _decimal_arithmetic(operator, as_decimal(left), as_decimal(right))


def integer_quotient_type(left: DataType, right: DataType) -> DataType | None:
    """The type of `left DIV right`."""
    return BIGINT if {left.kind, right.kind} <= {TypeKind.INTEGER, TypeKind.DECIMAL} else None


def wider_integer(left: DataType, right: DataType) -> DataType:
    return max(left, right, key=lambda each: each.bits)


def wider_number(left: DataType, right: DataType) -> DataType | None:
    """The type to which both are converted if one of them is chosen, as in CASE and COALESCE."""
    kinds = {left.kind, right.kind}
    if left == right:
        return left
    if kinds == {TypeKind.INTEGER}:
        return wider_integer(left, right)
    if TypeKind.FLOAT in kinds:
        return DOUBLE if DOUBLE in (left, right) or TypeKind.DECIMAL in kinds else None
    left_digits, right_digits = as_decimal(left), as_decimal(right)
    scale = max(left_digits.scale, right_digits.scale)
    return decimal_type(max(_whole_digits(left_digits), _whole_digits(right_digits)) + scale, scale)


def rounded_type(kind: DataType, places: int) -> DataType | None:
    """The type of round(x, places): a decimal may get one more digit before the point."""
    if kind.kind is not TypeKind.DECIMAL:
        return kind
    whole = _whole_digits(kind) + 1
    if places < 0:
        return decimal_type(max(whole, 1 - places), 0)
    scale = min(kind.scale, places)
    return decimal_type(whole + scale, scale)


def whole_type(kind: DataType) -> DataType | None:
    """The type of floor(x) and ceil(x)."""
    if kind.kind is not TypeKind.DECIMAL:
        return BIGINT
    return kind if kind.scale == 0 else decimal_type(_whole_digits(kind) + 1, 0)


def as_decimal(kind: DataType) -> DataType:
    """The decimal that holds all values of an integer type."""
    if kind.kind is TypeKind.DECIMAL:
        return kind
    return DataType.parse(f"decimal({_INTEGER_DIGITS[kind.bits]},0)")


def _decimal_arithmetic(operator: str, left: DataType, right: DataType) -> DataType | None:
    whole = [_whole_digits(left), _whole_digits(right)]
    scale = max(left.scale, right.scale)
    match operator:
        case "+" | "-":
            return decimal_type(max(whole) + scale + 1, scale)
        case "*":
            return decimal_type(left.precision + right.precision + 1, left.scale + right.scale)
        case "/":
            scale = max(_LEAST_QUOTIENT_SCALE, left.scale + right.precision + 1)
            return decimal_type(whole[0] + right.scale + scale, scale)
        case _:
            return decimal_type(min(whole) + scale, scale)


def _whole_digits(kind: DataType) -> int:
    return kind.precision - kind.scale
