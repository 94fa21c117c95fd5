"""Evaluates typed expressions on Arrow columns: the operands that are needed in each row, and every operator.

Comparisons are Spark's: NaN equals NaN and is greater than any other number, and -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from windloom.expressions import arithmetic
from windloom.expressions.arithmetic import Active, Value, any_of, is_scalar
from windloom.expressions.node import Node
from windloom.model.types import TypeKind, arrow_type, as_array

_Operation = Callable[[Node, list[Value], Active], Value]
_DECIDING = {"and": pc.and_kleene, "or": pc.or_kleene, "coalesce": pc.coalesce}
_NEGATED = {"<>": "=", "<=": ">", ">=": "<"}
_PLAIN = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
#: Longer lists of constants are looked up in a hash table.
_CHAINED = 10


class DecodedColumns:
    """The columns of a table by name, decoded when they are first read."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._columns: dict[str, pa.Array] = {}

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._columns:
            column = as_array(self.table[name])
            is_coded = pa.types.is_dictionary(column.type)
            self._columns[name] = column.dictionary_decode() if is_coded else column
        return self._columns[name]


def evaluate(node: Node, rows: DecodedColumns, active: Active = None) -> Value:
    """Return the value of an expression; in rows that are not active it may be anything."""
    if node.op == "read":
        return rows[node.value]
    if node.op == "constant":
        return pa.scalar(node.value, arrow_type(node.kind))
    if node.op in _IN_TURN:
        return _IN_TURN[node.op](node, rows, active)
    return _AT_ONCE[node.op](node, [evaluate(operand, rows, active) for operand in node.operands], active)


def _until_decided(node: Node, rows: DecodedColumns, active: Active) -> Value:
    """Evaluate every operand of AND, OR and coalesce() only where those before it do not decide."""
    result = evaluate(node.operands[0], rows, active)
    for operand in node.operands[1:]:
        needed = active
        if may_refuse(operand):
            match node.op:
                case "and":
                    undecided = pc.fill_null(result, True)
                case "or":
                    undecided = pc.invert(pc.fill_null(result, False))
                case _:
                    undecided = pc.is_null(result)
            needed = _narrowed(active, undecided, rows)
        result = _DECIDING[node.op](result, evaluate(operand, rows, needed))
    return result


def _case(node: Node, rows: DecodedColumns, active: Active) -> Value:
    """Evaluate every value only where its condition is the first that holds."""
    *branches, otherwise = node.operands
    values: list[tuple[Value, Value]] = []
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        holds = pc.fill_null(evaluate(condition, rows, active), False)
        chosen = _narrowed(active, holds, rows) if may_refuse(value) else active
        values.append((holds, evaluate(value, rows, chosen)))
        active = _narrowed(active, pc.invert(holds), rows)
    result = evaluate(otherwise, rows, active)
    for holds, value in reversed(values):
        result = pc.if_else(holds, value, result)
    return result


def _narrowed(active: Active, needed: Value, rows: DecodedColumns) -> pa.Array:
    if is_scalar(needed):
        needed = pa.repeat(needed, rows.table.num_rows)
    return needed if active is None else pc.and_(active, needed)


def may_refuse(node: Node) -> bool:
    """Whether the node can fail in Spark for some values of its operands."""
    is_exact = node.kind.kind in (TypeKind.INTEGER, TypeKind.DECIMAL)
    return node.op in ("/", "%") or (node.op in _REFUSING and is_exact) or any(map(may_refuse, node.operands))


# Comparisons ----------------------------------------------------------------------------------------------------------


def compare(op: str, left: Value, right: Value) -> Value:
    if op == "<=>":
        both = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(pc.fill_null(compare("=", left, right), False), both)
    if not pa.types.is_floating(left.type):
        return _PLAIN[op](left, right)
    nans = [pc.is_nan(operand) for operand in (left, right)]
    if not any(any_of(nan) for nan in nans):
        return _PLAIN[op](left, right)
    if op in _NEGATED:
        return pc.invert(compare(_NEGATED[op], left, right))
    if op == "=":
        return pc.or_(pc.equal(left, right), pc.and_(*nans))
    greater, smaller = (nans[0], nans[1]) if op == ">" else (nans[1], nans[0])
    return pc.or_(_PLAIN[op](left, right), pc.and_(greater, pc.invert(smaller)))


def _in_list(node: Node, operands: list[Value], active: Active) -> Value:
    """Return TRUE if a value is found; otherwise NULL if one of the two sides is unknown."""
    value, *listed = operands
    if is_scalar(value) or len(listed) <= _CHAINED or not all(map(is_scalar, listed)):
        return reduce(pc.or_kleene, (compare("=", value, member) for member in listed), pa.scalar(False))
    known = [member.as_py() for member in listed if member.is_valid]
    is_in = pc.is_in(value, value_set=pa.array(known, value.type))
    unknown = pc.is_null(value)
    if len(known) < len(listed):
        unknown = pc.or_(unknown, pc.invert(is_in))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), is_in)


def _extreme(node: Node, operands: list[Value], active: Active) -> Value:
    """Compute greatest and least, which skip NULLs; the first of equals wins."""
    op = ">" if node.op == "greatest" else "<"
    best, *others = operands
    for other in others:
        wins = pc.fill_null(compare(op, other, best), False)
        wins = pc.or_(wins, pc.and_(pc.is_null(best), pc.is_valid(other)))
        best = pc.if_else(wins, other, best)
    return best


_REFUSING = {"+", "-", "*", "div", "negative", "abs", "cast", "floor", "ceil", "round"}

_IN_TURN: dict[str, Callable[[Node, DecodedColumns, Active], Value]] = {
    **dict.fromkeys(("and", "or", "coalesce"), _until_decided),
    "case": _case,
}

_AT_ONCE: dict[str, _Operation] = {
    **dict.fromkeys(("+", "-", "*", "negative", "abs"), arithmetic.combine),
    **dict.fromkeys(("/", "try_divide", "div", "%"), arithmetic.divide),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), lambda node, each, active: compare(node.op, *each)),
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("floor", "ceil", "round"), arithmetic.round_off),
    "cast": arithmetic.cast,
    "in": _in_list,
    "sqrt": lambda node, operands, active: pc.sqrt(*operands),
    "isnan": lambda node, operands, active: pc.fill_null(pc.is_nan(*operands), False),
    "not": lambda node, operands, active: pc.invert(*operands),
    "isnull": lambda node, operands, active: pc.is_null(*operands),
}
