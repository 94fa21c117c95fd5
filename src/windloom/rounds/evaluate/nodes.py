"""Evaluates nodes of expressions: which operands are needed in which rows, and what computes each operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windloom.aggregates.arrow import arrow_type, as_array
from windloom.model.types import TypeKind
from windloom.plan.expressions import Node
from windloom.rounds.evaluate import arithmetic, comparison
from windloom.rounds.evaluate.casts import cast
from windloom.rounds.evaluate.rounding import floor_or_ceil, round_half_up
from windloom.rounds.evaluate.values import Active, Value

_Operation = Callable[[Node, list[Value], Active], Value]


class Rows:
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


def evaluate(node: Node, rows: Rows, active: Active = None) -> Value:
    """The value of an expression; in rows that are not active it may be anything."""
    if node.op == "read":
        return rows[node.value]
    if node.op == "constant":
        return pa.scalar(node.value, arrow_type(node.kind))
    if node.op in _IN_TURN:
        return _IN_TURN[node.op](node, rows, active)
    return _AT_ONCE[node.op](node, [evaluate(operand, rows, active) for operand in node.operands], active)


def _and(node: Node, rows: Rows, active: Active) -> Value:
    """Does not evaluate the right side where the left one decides."""
    left = evaluate(node.operands[0], rows, active)
    return pc.and_kleene(left, _behind(node, rows, active, lambda: pc.fill_null(left, True)))


def _or(node: Node, rows: Rows, active: Active) -> Value:
    left = evaluate(node.operands[0], rows, active)
    return pc.or_kleene(left, _behind(node, rows, active, lambda: pc.invert(pc.fill_null(left, False))))


def _behind(node: Node, rows: Rows, active: Active, asked: Callable[[], Value]) -> Value:
    right = node.operands[1]
    return evaluate(right, rows, _narrowed(active, asked(), rows) if may_refuse(right) else active)


def _case(node: Node, rows: Rows, active: Active) -> Value:
    """Evaluates every value only where its condition is the first that holds."""
    *branches, otherwise = node.operands
    found: list[tuple[Value, Value]] = []
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        holds = pc.fill_null(evaluate(condition, rows, active), False)
        inside = _narrowed(active, holds, rows) if may_refuse(value) else active
        found.append((holds, evaluate(value, rows, inside)))
        active = _narrowed(active, pc.invert(holds), rows)
    result = evaluate(otherwise, rows, active)
    for holds, chosen in reversed(found):
        result = pc.if_else(holds, chosen, result)
    return result


def _coalesce(node: Node, rows: Rows, active: Active) -> Value:
    """Evaluates every value only where those before it are NULL."""
    result = evaluate(node.operands[0], rows, active)
    for operand in node.operands[1:]:
        missing = _narrowed(active, pc.is_null(result), rows) if may_refuse(operand) else active
        result = pc.coalesce(result, evaluate(operand, rows, missing))
    return result


def _narrowed(active: Active, asked: Value, rows: Rows) -> pa.Array:
    if isinstance(asked, pa.Scalar):
        asked = pa.repeat(asked, rows.table.num_rows)
    return asked if active is None else pc.and_(active, asked)


def may_refuse(node: Node) -> bool:
    """Whether the node can fail in Spark for some values of its operands."""
    is_exact = node.kind.kind in (TypeKind.INTEGER, TypeKind.DECIMAL)
    return node.op in ("/", "%") or (node.op in _REFUSING and is_exact) or any(map(may_refuse, node.operands))


def _ignoring(function: Any) -> _Operation:
    """An operation that never fails, and needs only its operands."""
    return lambda node, operands, active: function(*operands)


_REFUSING = {"+", "-", "*", "div", "negative", "abs", "cast", "floor", "ceil", "round"}

_IN_TURN: dict[str, Callable[[Node, Rows, Active], Value]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
}

_AT_ONCE: dict[str, _Operation] = {
    **dict.fromkeys(("+", "-", "*"), arithmetic.combine),
    "/": arithmetic.divide,
    "try_divide": arithmetic.try_divide,
    "div": arithmetic.whole_divide,
    "%": arithmetic.remainder,
    "negative": arithmetic.negate,
    "abs": arithmetic.absolute,
    "sqrt": arithmetic.square_root,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), comparison.compare),
    "in": comparison.in_list,
    **dict.fromkeys(("greatest", "least"), comparison.extreme),
    "isnan": comparison.is_nan,
    "not": _ignoring(pc.invert),
    "isnull": _ignoring(pc.is_null),
    "cast": cast,
    **dict.fromkeys(("floor", "ceil"), floor_or_ceil),
    "round": round_half_up,
}
