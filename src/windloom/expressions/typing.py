"""Gives trees of expressions their types: once for what Spark would return, and for what is evaluated without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windloom.expressions.functions import FUNCTIONS, OPERATORS, label
from windloom.expressions.node import Node, constant, converted, unchanged
from windloom.expressions.types import NotKnownError, can_cast, is_cast_target
from windloom.model.expression import Apply, Cast, ColumnRef, ConstantValue, Opaque, Scalar
from windloom.model.types import DataType, TypeKind

#: Decimals whose integers fit 64 bits.
_SMALL_DIGITS = 18


def resolve(tree: Scalar | None, columns: Mapping[str, DataType]) -> Node:
    """Return the expression with the types of our evaluator; raises NotKnownError if only Spark knows its result."""
    node = typed(tree, columns)
    if node.why_spark is not None:
        raise NotKnownError(node.why_spark)
    return node


def certain_type(tree: Scalar | None, columns: Mapping[str, DataType]) -> DataType | None:
    """Return the type that Spark gives an expression in every session; None if only Spark knows, or may refuse it."""
    try:
        node = typed(tree, columns)
    except NotKnownError:
        return None
    return node.kind if node.is_certain else None


def operand_type(tree: Scalar | None, columns: Mapping[str, DataType]) -> DataType | None:
    """Return the certain type, or that of a cast, whatever is cast: if Spark accepts it, it has this type."""
    written = tree.typed_as if isinstance(tree, Opaque) else tree
    target = written.kind if isinstance(written, Cast) and is_cast_target(written.kind) else None
    return certain_type(tree, columns) or target


def typed(tree: Scalar | None, columns: Mapping[str, DataType]) -> Node:
    """Return the expression with types; raises NotKnownError if the type is not known."""
    match tree:
        case ColumnRef(column=column):
            return Node("read", columns[column], value=column)
        case ConstantValue(value=value, kind=kind):
            return constant(value, kind)
        case Cast(operand=operand, kind=kind):
            return _cast(typed(operand, columns), kind)
        case Apply(name=name, operands=operands):
            return _apply(name, operands, columns)
        case Opaque(what=what, typed_as=same) if same is not None:
            try:
                node = typed(same, columns)
            except NotKnownError:
                raise NotKnownError(what) from None
            return Node("opaque", node.kind, is_certain=node.is_certain, why_spark=what)
    raise NotKnownError("an expression without a tree" if tree is None else tree.what)


def _apply(name: str, trees: Sequence[Scalar], columns: Mapping[str, DataType]) -> Node:
    """Type the operands, then the whole, which only Spark knows if it alone knows an operand."""
    operands: list[Node] = []
    reasons = (operand.why_spark for operand in operands if operand.why_spark is not None)
    try:
        operands.extend(typed(tree, columns) for tree in trees)
        rule = OPERATORS.get(name) or FUNCTIONS.get(name)
        if rule is None:
            raise NotKnownError(label(name))
        node = rule(name, operands)
    except NotKnownError as unknown:
        raise NotKnownError(next(reasons, str(unknown))) from None
    is_certain = node.is_certain and all(operand.is_certain for operand in operands)
    why = next(reasons, node.why_spark)
    if why is not None:
        return Node(node.op, node.kind, is_certain=is_certain, why_spark=why)
    return node if node.is_certain == is_certain else Node(node.op, node.kind, node.operands, node.value, is_certain)


def _cast(node: Node, kind: DataType) -> Node:
    """Type a cast; we evaluate those between numbers, unless Spark would convert through a floating-point number."""
    source, why = node.kind, node.why_spark
    if source == kind and why is None:
        return unchanged(node)
    is_certain = is_cast_target(kind) and can_cast(source, kind)
    is_known = source.kind is TypeKind.NULL or (source.is_numeric and kind.is_numeric and _is_known_cast(source, kind))
    if why is None and not is_known:
        why = f"CAST of {source} to {kind}"
        if not is_certain:
            raise NotKnownError(why)
    parts = () if why else (converted(node, kind) if source.kind is TypeKind.NULL else node,)
    return Node("cast", kind, parts, None, is_certain and node.is_certain, why)


def _is_known_cast(source: DataType, kind: DataType) -> bool:
    if source.kind is TypeKind.FLOAT:
        return kind.kind is not TypeKind.DECIMAL
    if kind.name == "float":
        return False  # Spark leaves it out if the result becomes a double
    if source.kind is TypeKind.DECIMAL and kind.kind is TypeKind.INTEGER:
        return kind.name == "bigint" or source.precision <= _SMALL_DIGITS
    return True
