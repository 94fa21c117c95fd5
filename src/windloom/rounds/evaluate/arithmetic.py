"""Arithmetic on integers and floating-point numbers that detects every overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.model.types import TypeKind
from windloom.plan.expressions import Node
from windloom.rounds.evaluate import decimals
from windloom.rounds.evaluate.values import Active, Value, masked, refuse, with_numpy

_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_FLOATING = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def combine(node: Node, operands: list[Value], active: Active) -> Value:
    """Sums, differences and products."""
    if node.kind.kind is TypeKind.FLOAT:
        return _FLOATING[node.op](*operands)
    left, right = masked(operands, active)
    if node.kind.kind is TypeKind.DECIMAL:
        return decimals.combine(node.op, left, right, node.kind)
    return _CHECKED[node.op](left, right)


def divide(node: Node, operands: list[Value], active: Active) -> Value:
    left, right = masked(operands, active)
    _refuse_zero(left, right)
    if node.kind.kind is TypeKind.DECIMAL:
        return decimals.divide(left, right, node.kind)
    return pc.divide(left, right)


def try_divide(node: Node, operands: list[Value], active: Active) -> Value:
    left, right = operands
    return pc.divide(left, pc.if_else(_is_zero(right), pa.scalar(None, right.type), right))


def whole_divide(node: Node, operands: list[Value], active: Active) -> Value:
    left, right = masked(operands, active)
    _refuse_zero(left, right)
    # A zero divisor of NULL is not refused, but no processor divides by it.
    return pc.divide_checked(left, pc.if_else(_is_zero(right), pa.scalar(None, right.type), right))


def remainder(node: Node, operands: list[Value], active: Active) -> Value:
    """The remainder with the sign of the dividend, as in Java."""
    left, right = masked(operands, active)
    _refuse_zero(left, right)
    return with_numpy(_remainder, left, right)


def _remainder(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    if left.dtype.kind == "f":
        return np.asarray(np.fmod(left, right))
    # Some processors cannot divide the smallest number by -1, or anything by 0; NULL stands for such rows later.
    return np.asarray(np.fmod(left, np.where((right == -1) | (right == 0), 1, right).astype(right.dtype)))


def negate(node: Node, operands: list[Value], active: Active) -> Value:
    return _unary(node, operands, active, pc.negate, pc.negate_checked)


def absolute(node: Node, operands: list[Value], active: Active) -> Value:
    return _unary(node, operands, active, pc.abs, pc.abs_checked)


def _unary(node: Node, operands: list[Value], active: Active, free: Any, checked: Any) -> Value:
    if node.kind.kind is not TypeKind.INTEGER:
        return free(operands[0])
    return checked(masked(operands, active)[0])


def square_root(node: Node, operands: list[Value], active: Active) -> Value:
    return pc.sqrt(operands[0])


def _is_zero(value: Value) -> Value:
    return pc.equal(value, pa.scalar(0, value.type))


def _refuse_zero(left: Value, right: Value) -> None:
    refuse(pc.and_(_is_zero(right), pc.is_valid(left)), "a division by zero")
