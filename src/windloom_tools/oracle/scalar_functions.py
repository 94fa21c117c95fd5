"""The operators and functions of scalar expressions, with NULL, NaN and numbers of all classes as in Spark."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Row = Mapping[str, Any]
#: The value of an expression on a tuple; columns are read by their name, qualified ones as `o.price`.
Scalar = Callable[[Row], Any]


def order_of(value: Any) -> Any:
    """Spark's order as a key: NULL below everything, NaN above every other number."""
    if value is None:
        return (-1, 0.0)
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def is_equal(left: Any, right: Any) -> bool:
    """Whether two values, neither of them NULL, are equal: NaN equals NaN, and 0.0 equals -0.0."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right):
        return True
    return bool(left == right)


def strict(function: Callable[..., Any], *operands: Scalar) -> Scalar:
    """The function of the operands, or NULL if an operand is NULL."""

    def apply(row: Row) -> Any:
        values = [operand(row) for operand in operands]
        return None if any(value is None for value in values) else function(*values)

    return apply


def either(left: Scalar, right: Scalar, *, decides: bool) -> Scalar:
    """OR, for which TRUE decides, and AND, for which FALSE does."""

    def both(row: Row) -> Any:
        left_truth = left(row)
        if left_truth is decides:
            return decides
        right_truth = right(row)
        if right_truth is decides:
            return decides
        return None if left_truth is None or right_truth is None else not decides

    return both


def negated(value: Scalar) -> Scalar:
    return strict(lambda truth: not truth, value)


def compared(sign: str, left: Scalar, right: Scalar) -> Scalar:
    return strict(_COMPARISONS[sign], left, right)


def safe_equal(left: Scalar, right: Scalar) -> Scalar:
    def equal(row: Row) -> bool:
        left_value, right_value = left(row), right(row)
        return (
            left_value is right_value
            if left_value is None or right_value is None
            else _alike(is_equal)(left_value, right_value)
        )

    return equal


def _alike(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The function with both operands as one class of number: a decimal next to a float becomes a float."""

    def apply(left: Any, right: Any) -> Any:
        if isinstance(left, float) or isinstance(right, float):
            left = float(left) if isinstance(left, Decimal | int) else left
            right = float(right) if isinstance(right, Decimal | int) else right
        return function(left, right)

    return apply


def _divide(left: Any, right: Any) -> Any:
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        raise ValueError("the oracle does not divide decimals, which Spark rounds")
    return float(left) / float(right)


def _whole_divide(left: int, right: int) -> int:
    return left // right if (left < 0) == (right < 0) or left % right == 0 else left // right + 1


def _remainder(left: Any, right: Any) -> Any:
    """The remainder, which has the sign of the dividend."""
    return left - _whole_divide(left, right) * right if isinstance(left, int) else math.fmod(left, right)


def is_like(text: str, pattern: str) -> bool:
    parts = ["." if character == "_" else ".*" if character == "%" else re.escape(character) for character in pattern]
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _alike(lambda left, right: left + right),
    "-": _alike(lambda left, right: left - right),
    "*": _alike(lambda left, right: left * right),
    "/": _alike(_divide),
    "%": _alike(_remainder),
    "div": _whole_divide,
    "||": lambda left, right: left + right,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": _alike(is_equal),
    "<>": _alike(lambda left, right: not is_equal(left, right)),
    "<": _alike(lambda left, right: bool(order_of(left) < order_of(right))),
    "<=": _alike(lambda left, right: bool(order_of(left) <= order_of(right))),
    ">": _alike(lambda left, right: bool(order_of(left) > order_of(right))),
    ">=": _alike(lambda left, right: bool(order_of(left) >= order_of(right))),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "concat": lambda *texts: "".join(texts),
    "mod": _alike(_remainder),
}


def _coalesce(arguments: list[Scalar]) -> Scalar:
    return lambda row: next((value for argument in arguments if (value := argument(row)) is not None), None)


def _if(arguments: list[Scalar]) -> Scalar:
    condition, yes, no = arguments
    return lambda row: yes(row) if condition(row) is True else no(row)


def _nullif(arguments: list[Scalar]) -> Scalar:
    same = compared("=", *arguments)
    return lambda row: None if same(row) is True else arguments[0](row)


def _extreme(sign: int) -> Callable[[list[Scalar]], Scalar]:
    """GREATEST and LEAST, which skip NULL."""

    def chosen(arguments: list[Scalar]) -> Scalar:
        def apply(row: Row) -> Any:
            values = [value for argument in arguments if (value := argument(row)) is not None]
            return (max if sign > 0 else min)(values, key=order_of) if values else None

        return apply

    return chosen


#: Functions that are not NULL if an argument is.
CHOOSING: dict[str, Callable[[list[Scalar]], Scalar]] = {
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "if": _if,
    "nullif": _nullif,
    "greatest": _extreme(1),
    "least": _extreme(-1),
    "isnan": lambda arguments: lambda row: order_of(arguments[0](row))[0] == 1,
    "isnull": lambda arguments: lambda row: arguments[0](row) is None,
    "isnotnull": lambda arguments: lambda row: arguments[0](row) is not None,
}


def cast(value: Scalar, kind: str) -> Scalar:
    """A cast to numbers and booleans; a bare NULL is NULL of any type."""
    if kind.startswith("decimal"):
        scale = int(kind.removesuffix(")").split(",")[1]) if "," in kind else 0
        unit = Decimal(1).scaleb(-scale)
        return strict(lambda number: Decimal(str(number)).quantize(unit, rounding=ROUND_HALF_UP), value)
    kinds: dict[str, Callable[[Any], Any]] = {
        **dict.fromkeys(["double"], float),
        **dict.fromkeys(["tinyint", "smallint", "int", "bigint"], int),
        "boolean": bool,
    }
    if kind not in kinds:
        raise ValueError(f"the oracle does not cast to {kind}")
    return strict(kinds[kind], value)
