"""CAST among numbers in ANSI mode: a value that does not fit is declined, never truncated."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windloom.aggregates.arrow import arrow_type
from windloom.model.types import DataType, TypeKind
from windloom.plan.expressions import Node
from windloom.rounds.evaluate.decimals import fitted, to_double, truncated
from windloom.rounds.evaluate.values import Active, DeclinedError, Value, masked, refuse

#: Digits of the decimals that hold any bigint.
_BIGINT_DIGITS = 19


def cast(node: Node, operands: list[Value], active: Active) -> Value:
    own, kind = node.operands[0].kind, node.kind
    if own == kind:
        return operands[0]
    if kind.kind is TypeKind.FLOAT:
        return to_double(operands[0]) if own.kind is TypeKind.DECIMAL else _unchecked(operands[0], kind)
    (value,) = masked(operands, active)
    if kind.kind is TypeKind.DECIMAL:
        if own.kind is TypeKind.INTEGER:
            value = pc.cast(pc.cast(value, pa.int64()), pa.decimal128(_BIGINT_DIGITS, 0))
        return fitted(value, kind)
    if kind.kind is not TypeKind.INTEGER:
        raise DeclinedError(f"a cast of {own} to {kind}")
    if own.kind is TypeKind.FLOAT:
        return whole(pc.trunc(pc.cast(value, pa.float64())), kind)
    if own.kind is TypeKind.DECIMAL:
        value = truncated(value, 0)
    return pc.cast(value, arrow_type(kind))


def whole(value: Value, kind: DataType) -> Value:
    """Doubles without a fraction as integers."""
    limit = 2.0 ** (kind.bits - 1)
    fits = pc.and_(pc.less(value, limit), pc.greater_equal(value, -limit))  # FALSE for NaN
    refuse(pc.invert(fits), f"a number that does not fit {kind}")
    return _unchecked(value, kind)


def _unchecked(value: Value, kind: DataType) -> Value:
    return pc.cast(value, arrow_type(kind), safe=False)
