"""round, floor and ceil."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.model.types import TypeKind
from windloom.plan.expressions import Node
from windloom.rounds.evaluate.casts import whole
from windloom.rounds.evaluate.decimals import fitted, to_whole
from windloom.rounds.evaluate.values import Active, DeclinedError, Value, masked, with_numpy

#: Rounded numbers have fewer digits than this, so that all of them, and the halves between them, are distinct doubles.
_MOST_UNITS = 1e14


def floor_or_ceil(node: Node, operands: list[Value], active: Active) -> Value:
    (value,) = masked(operands, active)
    if node.kind.kind is TypeKind.DECIMAL:
        return fitted(to_whole(value, node.op), node.kind)
    return whole(pc.floor(value) if node.op == "floor" else pc.ceil(value), node.kind)


def round_half_up(node: Node, operands: list[Value], active: Active) -> Value:
    (value,) = masked(operands, active)
    if node.kind.kind is TypeKind.DECIMAL:
        return fitted(value, node.kind)
    digits: int = node.value
    return with_numpy(lambda numbers: _rounded(numbers, digits), value)


def _rounded(values: NDArray[Any], digits: int) -> NDArray[Any]:
    """Spark rounds the decimal digits of a printed double: 2.675 becomes 2.68, although the double is a little less.

    A double is printed as a number halfway between two results if and only if it is the double nearest to that number,
    and otherwise lies on the same side of it as what is printed.
    """
    power = 10.0**digits
    size = np.abs(values)
    units = np.floor(size * power)
    finite = np.isfinite(values)
    if np.any(finite & (units >= _MOST_UNITS)):
        raise DeclinedError("round() of a number with many digits")
    halfway = (2.0 * units + 1.0) / (2.0 * power)
    units += size >= halfway
    rounded = np.where(units == 0, 0.0, np.copysign(units / power, values))  # no -0.0: decimals do not have it
    return np.where(finite, rounded, values)
