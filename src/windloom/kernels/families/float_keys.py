"""Doubles as 64-bit integers in the same order, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled

#: The key of -0.0, which equals 0.0 in Spark's order; the key of 0.0 is the next one.
KEY_OF_MINUS_ZERO = -1


def float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Doubles as integers in the same order.

    >>> float_keys(np.array([-1.5, -0.0, 0.0, 2.0, np.inf, np.nan])).argsort().tolist()
    [0, 1, 2, 3, 4, 5]
    """
    keys = np.empty(len(values), np.int64)
    _write_keys(np.ascontiguousarray(values).view(np.int64), keys)
    return keys


def float_values(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """The inverse of `float_keys` (the mapping is its own inverse on bits)."""
    return (keys ^ ((keys >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)


@compiled
def _write_keys(bits, keys):  # type: ignore[no-untyped-def]
    for i in range(len(bits)):
        magnitude = bits[i] & np.int64(0x7FFFFFFFFFFFFFFF)
        own = bits[i] if magnitude <= np.int64(0x7FF0000000000000) else np.int64(0x7FF8000000000000)  # NaN
        keys[i] = own ^ ((own >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))
