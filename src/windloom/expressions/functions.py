"""Functions that are evaluated without Spark: those whose results are the same to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windloom.expressions.node import Node, NotKnownError, constant, converted, unchanged
from windloom.expressions.operators import BOOLEAN, arithmetic, case, comparison, is_null, numeric, takes, truth
from windloom.expressions.types import MOST_DIGITS, common, comparable, decimal
from windloom.model.types import BIGINT, DOUBLE, DataType, TypeKind

#: Higher powers of 10 are not exact as floating-point numbers, and the result would be rounded twice.
_MOST_ROUNDED = 22
#: Spark rounds a decimal with more digits than this when it changes the sign.
_MOST_NEGATED = 34


def _same(name: str, operands: Sequence[Node]) -> Node:
    """A function of one number whose result has the type of that number."""
    takes(f"{name}()", operands, 1)
    numeric(f"{name}()", operands)
    if name != "positive" and operands[0].kind.precision > _MOST_NEGATED:
        raise NotKnownError(f"{name}() of {operands[0].kind}")
    return unchanged(operands[0]) if name == "positive" else Node(name, operands[0].kind, tuple(operands))


def _coalesce(name: str, operands: Sequence[Node]) -> Node:
    if name != "coalesce":
        takes(f"{name}()", operands, 2)
    if not operands:
        raise NotKnownError("coalesce() of nothing")
    kind = common([node.kind for node in operands])
    return Node("coalesce", kind, tuple(converted(node, kind) for node in operands))


def _null_if(name: str, operands: Sequence[Node]) -> Node:
    takes("nullif()", operands, 2)
    value = operands[0]
    return Node("case", value.kind, (comparison("=", operands), constant(None, value.kind), value))


def _if(name: str, operands: Sequence[Node]) -> Node:
    takes(f"{name}()", operands, 3)
    condition, *values = operands
    if name == "nvl2":
        condition = is_null("isnotnull", [condition])
    return case("case", [truth("if()", condition), *values])


def _extreme(name: str, operands: Sequence[Node]) -> Node:
    if len(operands) < 2:
        raise NotKnownError(f"{name}() of {len(operands)} values")
    kind = comparable([node.kind for node in operands])
    return Node(name, kind, tuple(converted(node, kind) for node in operands))


def _whole(name: str, operands: Sequence[Node]) -> Node:
    """floor and ceil."""
    takes(f"{name}()", operands, 1)
    numeric(f"{name}()", operands)
    name, kind = "ceil" if name == "ceiling" else name, operands[0].kind
    if kind.kind is TypeKind.FLOAT:
        return Node(name, BIGINT, (converted(operands[0], DOUBLE),))
    if kind.kind is TypeKind.INTEGER:
        return converted(unchanged(operands[0]), BIGINT)
    if kind.scale == 0:
        return unchanged(operands[0])
    return Node(name, decimal(min(kind.precision - kind.scale + 1, MOST_DIGITS), 0), tuple(operands))


def _sqrt(name: str, operands: Sequence[Node]) -> Node:
    takes("sqrt()", operands, 1)
    numeric("sqrt()", operands)
    return Node("sqrt", DOUBLE, (converted(operands[0], DOUBLE),))


def _is_nan(name: str, operands: Sequence[Node]) -> Node:
    takes("isnan()", operands, 1)
    if operands[0].kind.kind is not TypeKind.FLOAT:
        raise NotKnownError(f"isnan() of {operands[0].kind}")
    return Node("isnan", BOOLEAN, tuple(operands))


def _round(name: str, operands: Sequence[Node]) -> Node:
    takes("round()", operands, 1, 2)
    numeric("round()", operands)
    value, kind = operands[0], operands[0].kind
    digits = operands[1].value if len(operands) == 2 else 0
    if len(operands) == 2 and not (operands[1].is_constant and operands[1].kind.kind is TypeKind.INTEGER):
        raise NotKnownError("round() to a number of digits that is no literal")
    if not 0 <= digits <= _MOST_ROUNDED:
        raise NotKnownError(f"round() to {digits} digits")
    if kind.kind is TypeKind.INTEGER:
        return unchanged(value)
    return Node("round", _rounded_kind(kind, digits), (value,), digits)


def _rounded_kind(kind: DataType, digits: int) -> DataType:
    if kind.kind is TypeKind.DECIMAL:
        scale = min(kind.scale, digits)
        return decimal(min(kind.precision - kind.scale + 1 + scale, MOST_DIGITS), scale)
    if kind != DOUBLE:
        raise NotKnownError(f"round() of {kind}")
    return kind


def _try_divide(name: str, operands: Sequence[Node]) -> Node:
    found = arithmetic("try_divide", operands)
    if found.kind != DOUBLE:
        raise NotKnownError(f"try_divide() of {found.kind}")
    return found


FUNCTIONS: dict[str, Callable[[str, Sequence[Node]], Node]] = {
    **dict.fromkeys(("abs", "negative", "positive"), _same),
    **dict.fromkeys(("coalesce", "nvl", "ifnull"), _coalesce),
    **dict.fromkeys(("if", "nvl2"), _if),
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("floor", "ceil", "ceiling"), _whole),
    "nullif": _null_if,
    "round": _round,
    "sqrt": _sqrt,
    "isnan": _is_nan,
    "mod": lambda name, operands: arithmetic("%", operands),
    "try_divide": _try_divide,
}
