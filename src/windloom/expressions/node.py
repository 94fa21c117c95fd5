"""A scalar expression whose types are known: every operand has the type with which its operator computes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from windloom.model.types import DataType, TypeKind


@dataclass(frozen=True, slots=True)
class Node:
    """A typed expression: `kind` is the type of its result, and `op` its operator after all implicit casts.

    That is `read` (value: the column), `constant` (value: as in `model.scalar`), `cast`, or an operator or function.
    The type is that of ANSI mode, and of every other session as well if it `is_certain`. If only Spark can evaluate
    the expression, `why_spark` describes the part that our evaluator does not know, and there are no operands.
    """

    op: str
    kind: DataType
    operands: tuple[Node, ...] = ()
    value: Any = None
    is_certain: bool = True
    why_spark: str | None = None

    @property
    def is_constant(self) -> bool:
        return self.op == "constant"


def constant(value: Any, kind: DataType) -> Node:
    return Node("constant", kind, value=value)


def converted(node: Node, kind: DataType) -> Node:
    """Return the value in another type; constants are converted here if that is exact, or rounded like Spark."""
    if node.kind == kind:
        return node
    if node.is_constant and node.value is None:
        return constant(None, kind)
    if node.is_constant and node.kind.kind in (TypeKind.INTEGER, TypeKind.DECIMAL):
        if kind.name == "double":
            return constant(float(node.value), kind)
        if kind.kind is TypeKind.INTEGER and node.kind.kind is TypeKind.INTEGER and kind.bits >= node.kind.bits:
            return constant(node.value, kind)
        if kind.kind is TypeKind.DECIMAL:
            scaled = Fraction(node.value) * Fraction(10) ** kind.scale
            if scaled.denominator == 1 and len(str(abs(scaled.numerator))) <= kind.precision:
                return constant(Decimal(node.value), kind)
    return Node("cast", kind, (node,))


def unchanged(node: Node) -> Node:
    """Return the value as no literal, because Spark gives literals special types."""
    return Node("cast", node.kind, (node,)) if node.is_constant else node


def columns_of(node: Node) -> set[str]:
    """Return the columns that an expression reads."""
    if node.op == "read":
        return {node.value}
    return set().union(*map(columns_of, node.operands))
