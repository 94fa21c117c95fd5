"""Turns trees of expressions into typed nodes: what can be evaluated without Spark, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Mapping

from windloom.expressions.functions import FUNCTIONS
from windloom.expressions.node import Node, NotKnownError, constant, converted, unchanged
from windloom.expressions.operators import OPERATORS
from windloom.model.scalar import Apply, Cast, Constant, Read, Scalar
from windloom.model.types import DataType, TypeKind

#: Decimals whose integers fit 64 bits.
_SMALL_DIGITS = 18


def resolve(tree: Scalar | None, columns: Mapping[str, DataType]) -> Node:
    """The expression with types; raises NotKnownError if only Spark knows its result."""
    match tree:
        case Read(column=column):
            return Node("read", columns[column], value=column)
        case Constant(value=value, kind=kind):
            return constant(value, kind)
        case Cast(operand=operand, kind=kind):
            return _cast(resolve(operand, columns), kind)
        case Apply(name=name, operands=operands):
            rule = OPERATORS.get(name) or FUNCTIONS.get(name)
            if rule is None:
                raise NotKnownError(f"{name}()" if name.isidentifier() else name.upper())
            return rule(name, [resolve(operand, columns) for operand in operands])
    raise NotKnownError("an expression without a tree" if tree is None else tree.what)


def _cast(node: Node, kind: DataType) -> Node:
    """Casts between numbers only; for decimals, only if Spark does not convert through a floating-point number."""
    own = node.kind
    if own == kind:
        return unchanged(node)
    if own.kind is TypeKind.NULL:
        return Node("cast", kind, (converted(node, kind),))
    if not (own.is_numeric and kind.is_numeric and _is_known_cast(own, kind)):
        raise NotKnownError(f"CAST of {own} to {kind}")
    return Node("cast", kind, (node,))


def _is_known_cast(own: DataType, kind: DataType) -> bool:
    if own.kind is TypeKind.FLOAT:
        return kind.kind is not TypeKind.DECIMAL
    if kind.name == "float":
        return False  # Spark leaves it out if the result becomes a double
    if own.kind is TypeKind.DECIMAL and kind.kind is TypeKind.INTEGER:
        return kind.name == "bigint" or own.precision <= _SMALL_DIGITS
    return True
