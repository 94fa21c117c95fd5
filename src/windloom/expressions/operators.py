"""Operators: converts their operands to the types with which Spark computes, and gives the type of their result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windloom.expressions.node import Node, NotKnownError, converted
from windloom.expressions.types import arithmetic_decimal, as_decimal, common, comparable
from windloom.model.types import BIGINT, DOUBLE, DataType, TypeKind

BOOLEAN = DataType.parse("boolean")
#: Spark compares up to this many listed values one by one, and looks up longer lists in a hash table.
_LISTED = 10


def numeric(op: str, operands: Sequence[Node]) -> None:
    for node in operands:
        if not node.kind.is_numeric:
            raise NotKnownError(f"{op} of {node.kind}")


def takes(op: str, operands: Sequence[Node], *counts: int) -> None:
    if len(operands) not in counts:
        raise NotKnownError(f"{op} of {len(operands)} values")


def arithmetic(op: str, operands: Sequence[Node]) -> Node:
    takes(op, operands, 2)
    numeric(op, operands)
    kinds = [node.kind.kind for node in operands]
    if TypeKind.DECIMAL in kinds and TypeKind.FLOAT not in kinds:
        return _of_decimals(op, operands)
    if op == "div":
        if TypeKind.FLOAT in kinds:
            raise NotKnownError("DIV of floating-point numbers")
        kind = BIGINT
    else:
        kind = DOUBLE if op in ("/", "try_divide") else common([node.kind for node in operands])
    return Node(op, kind, tuple(converted(node, kind) for node in operands))


def _of_decimals(op: str, operands: Sequence[Node]) -> Node:
    if op not in ("+", "-", "*", "/"):
        raise NotKnownError(f"{op} of decimals")
    left, right = (converted(node, as_decimal(node)) for node in operands)
    return Node(op, arithmetic_decimal(op, left.kind, right.kind), (left, right))


def comparison(op: str, operands: Sequence[Node]) -> Node:
    takes(op, operands, 2)
    kind = comparable([node.kind for node in operands])
    return Node(op, BOOLEAN, tuple(converted(node, kind) for node in operands))


def logic(op: str, operands: Sequence[Node]) -> Node:
    return Node(op, BOOLEAN, tuple(truth(op, node) for node in operands))


def truth(op: str, node: Node) -> Node:
    """A condition, which may be NULL."""
    if node.kind.kind is TypeKind.NULL:
        return converted(node, BOOLEAN)
    if node.kind != BOOLEAN:
        raise NotKnownError(f"{op} of {node.kind}")
    return node


def in_list(op: str, operands: Sequence[Node]) -> Node:
    kind = comparable([node.kind for node in operands])
    value, *listed = (converted(node, kind) for node in operands)
    if kind.kind is TypeKind.FLOAT and not all(node.is_constant and node.value for node in listed):
        # Spark's hash table distinguishes 0.0 from -0.0, its comparison does not, and the length of the list determines
        # which of the two it uses.
        raise NotKnownError("IN of floating-point numbers that may be zero or NaN")
    if len(listed) > _LISTED and not all(node.is_constant for node in listed):
        raise NotKnownError(f"IN a list of more than {_LISTED} expressions")
    return Node("in", BOOLEAN, (value, *listed))


def is_null(op: str, operands: Sequence[Node]) -> Node:
    takes(op, operands, 1)
    found = Node("isnull", BOOLEAN, tuple(operands))
    return found if op == "isnull" else Node("not", BOOLEAN, (found,))


def case(op: str, operands: Sequence[Node]) -> Node:
    """Conditions and values in turn, and the value if no condition holds."""
    conditions, values = operands[:-1:2], [*operands[1::2], operands[-1]]
    kind = common([node.kind for node in values])
    parts: list[Node] = []
    for condition, value in zip(conditions, values, strict=False):
        if condition.kind != BOOLEAN:  # in Spark, not even NULL is allowed
            raise NotKnownError(f"CASE WHEN {condition.kind}")
        parts += [condition, converted(value, kind)]
    return Node("case", kind, (*parts, converted(values[-1], kind)))


OPERATORS: dict[str, Callable[[str, Sequence[Node]], Node]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "div"), arithmetic),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), comparison),
    **dict.fromkeys(("and", "or", "not"), logic),
    **dict.fromkeys(("isnull", "isnotnull"), is_null),
    "in": in_list,
    "case": case,
}
