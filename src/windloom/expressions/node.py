"""A scalar expression whose types are known: every operand has the type that its operator computes with."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from windloom.model.types import DataType, TypeKind


class NotKnownError(Exception):
    """Only Spark knows the result of an expression; the text describes the part concerned."""


@dataclass(frozen=True, slots=True)
class Node:
    """`op` is an operator after all implicit casts: `read` (value: the column), `constant` (value: as in
    `model.scalar`), `cast`, or the name of an operator or function; `kind` is the type of its result.
    """

    op: str
    kind: DataType
    operands: tuple[Node, ...] = ()
    value: Any = None

    @property
    def is_constant(self) -> bool:
        return self.op == "constant"


def constant(value: Any, kind: DataType) -> Node:
    return Node("constant", kind, value=value)


def converted(node: Node, kind: DataType) -> Node:
    """The same value in another type; constants are converted here if that is exact, or rounded like Spark."""
    if node.kind == kind:
        return node
    if node.is_constant and node.value is None:
        return constant(None, kind)
    if node.is_constant and node.kind.kind in (TypeKind.INTEGER, TypeKind.DECIMAL):
        if kind.name == "double":
            return constant(float(node.value), kind)
        if kind.kind is TypeKind.INTEGER and node.kind.kind is TypeKind.INTEGER and kind.bits >= node.kind.bits:
            return constant(node.value, kind)
        if kind.kind is TypeKind.DECIMAL and _fits(Decimal(node.value), kind):
            return constant(Decimal(node.value), kind)
    return Node("cast", kind, (node,))


def unchanged(node: Node) -> Node:
    """The same value, but no longer a literal, because Spark gives literals special types."""
    return Node("cast", node.kind, (node,)) if node.is_constant else node


def _fits(value: Decimal, kind: DataType) -> bool:
    scaled = Fraction(value) * Fraction(10) ** kind.scale
    return scaled.denominator == 1 and len(str(abs(scaled.numerator))) <= kind.precision


def read_by(node: Node) -> set[str]:
    """The columns that an expression reads."""
    if node.op == "read":
        return {node.value}
    return set().union(*map(read_by, node.operands))
