"""Values of expressions: an Arrow array with one value per row, or an Arrow scalar if all rows have the same."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Value: TypeAlias = "pa.Array | pa.Scalar"
#: The rows whose values are needed (never NULL); None: all of them.
Active: TypeAlias = "pa.Array | None"


class DeclinedError(Exception):
    """The result is left to Spark, which may refuse one of the rows."""


def is_scalar(value: Value) -> bool:
    return isinstance(value, pa.Scalar)


def masked(operands: list[Value], active: Active) -> list[Value]:
    """The operands, with NULL where no result is needed, so that no such row is refused.

    An operation on NULL gives NULL, so one operand is enough; one on constants alone is the same for all rows.
    """
    if active is None:
        return operands
    for index, operand in enumerate(operands):
        if not is_scalar(operand):
            return [
                *operands[:index],
                pc.if_else(active, operand, pa.scalar(None, operand.type)),
                *operands[index + 1 :],
            ]
    return operands


def any_of(flags: Value) -> bool:
    """Whether one of the flags is true; NULL is not."""
    return bool(flags.as_py()) if is_scalar(flags) else bool(pc.any(flags).as_py())


def refuse(flags: Value, reason: str) -> None:
    if any_of(flags):
        raise DeclinedError(reason)


def with_numpy(function: Any, *operands: Value) -> Value:
    """Applies a NumPy function to plain numbers; a row with a NULL gives NULL."""
    lengths = [len(operand) for operand in operands if not is_scalar(operand)]
    arrays = [
        pa.repeat(operand, lengths[0] if lengths else 1) if is_scalar(operand) else operand for operand in operands
    ]
    valid = np.ones(len(arrays[0]), np.bool_)
    for array in arrays:
        if array.null_count:
            valid &= array.is_valid().to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        result = function(*(numbers(array) for array in arrays))
    found = pa.array(result, mask=None if valid.all() else ~valid)
    return found if lengths else found[0]


def numbers(array: pa.Array) -> NDArray[Any]:
    """The values, with any number for NULL."""
    filled: NDArray[Any] = (pc.fill_null(array, 1) if array.null_count else array).to_numpy(zero_copy_only=False)
    return filled
