"""Comparisons as in Spark: NaN equals NaN and is greater than any other number, -0.0 equals 0.0."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windloom.plan.expressions import Node
from windloom.rounds.evaluate.values import Active, Value, any_of, is_scalar

_NEGATED = {"<>": "=", "<=": ">", ">=": "<"}
_PLAIN = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
#: Longer lists of constants are looked up in a hash table.
_CHAINED = 10


def compare(node: Node, operands: list[Value], active: Active) -> Value:
    return compared(node.op, *operands)


def compared(op: str, left: Value, right: Value) -> Value:
    if op == "<=>":
        both = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(pc.fill_null(compared("=", left, right), False), both)
    if not pa.types.is_floating(left.type):
        return _PLAIN[op](left, right)
    nans = [pc.is_nan(operand) for operand in (left, right)]
    if not any(any_of(nan) for nan in nans):
        return _PLAIN[op](left, right)
    if op in _NEGATED:
        return pc.invert(compared(_NEGATED[op], left, right))
    if op == "=":
        return pc.or_(pc.equal(left, right), pc.and_(*nans))
    greater, smaller = (nans[0], nans[1]) if op == ">" else (nans[1], nans[0])
    return pc.or_(_PLAIN[op](left, right), pc.and_(greater, pc.invert(smaller)))


def in_list(node: Node, operands: list[Value], active: Active) -> Value:
    """TRUE if a value is found; otherwise NULL if one of the two sides is unknown."""
    value, *listed = operands
    if is_scalar(value) or len(listed) <= _CHAINED or not all(map(is_scalar, listed)):
        found: Value = pa.scalar(False)
        for member in listed:
            found = pc.or_kleene(found, compared("=", value, member))
        return found
    known = [member for member in listed if member.is_valid]
    values = pa.array([member.as_py() for member in known], value.type)
    found = pc.is_in(value, value_set=values)
    unknown = pc.is_null(value)
    if len(known) < len(listed):
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def extreme(node: Node, operands: list[Value], active: Active) -> Value:
    """greatest and least: NULLs are skipped, and the first of equals wins."""
    op = ">" if node.op == "greatest" else "<"
    best, *others = operands
    for other in others:
        wins = pc.fill_null(compared(op, other, best), False)
        wins = pc.or_(wins, pc.and_(pc.is_null(best), pc.is_valid(other)))
        best = pc.if_else(wins, other, best)
    return best


def is_nan(node: Node, operands: list[Value], active: Active) -> Value:
    return pc.fill_null(pc.is_nan(operands[0]), False)
