"""Turns trees of expressions into typed nodes: what can be evaluated without Spark, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from windloom.model.expression import Expression
from windloom.model.query import Query
from windloom.model.scalar import Apply, Cast, Constant, Read, Scalar
from windloom.model.types import DataType, TypeKind
from windloom.plan.expressions.functions import FUNCTIONS
from windloom.plan.expressions.node import Node, NotKnownError, constant, converted, unchanged
from windloom.plan.expressions.operators import OPERATORS, truth
from windloom.plan.physical import Shape

#: Decimals whose integers fit 64 bits.
_SMALL_DIGITS = 18


@dataclass(frozen=True, slots=True)
class ResolvedShape:
    """The output columns after the window, and the condition for rows to be reported."""

    select: tuple[tuple[str, Node], ...]
    having: Node | None


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


@lru_cache(maxsize=4_096)
def resolve_shape(shape: Shape) -> ResolvedShape | str:
    """Everything that is evaluated over the columns of the step, or the part of it that needs Spark."""
    columns = dict(shape.groups + shape.columns)
    selected = shape.select or tuple((name, Expression.of_placeholder(name)) for name in columns)
    select, place = [], ""
    try:
        for name, expression in selected:
            place = f"'{name}'"
            select.append((name, resolve(expression.tree, columns)))
        place = "HAVING"
        having = None if shape.having is None else truth("HAVING", resolve(shape.having.tree, columns))
    except NotKnownError as unknown:
        return f"{unknown} in {place}"
    return ResolvedShape(tuple(select), having)


def knows_outputs(query: Query, groups: Sequence[DataType], aggregates: Sequence[DataType]) -> bool:
    """Whether all expressions over groupings and aggregates of these types are known, so that Spark accepts them."""
    columns = {f"__g{i}": kind for i, kind in enumerate(groups)}
    columns |= {f"__a{i}": kind for i, kind in enumerate(aggregates)}
    try:
        for output in query.outputs:
            if output.expression is not None:
                resolve(output.expression.tree, columns)
        if query.having is not None:
            truth("HAVING", resolve(query.having.tree, columns))
    except NotKnownError:
        return False
    return True


def why_spark(shape: Shape) -> str | None:
    """The part of a shape's expressions that only Spark can evaluate; None if there is none."""
    found = resolve_shape(shape)
    return found if isinstance(found, str) else None
