"""Doubles as 64-bit integers of the same order, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The one key that does not differ from its neighbour's in Spark's order: that of 0.0 is the next.
KEY_OF_MINUS_ZERO = -1


def float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Doubles as integers of the same order.

    >>> float_keys(np.array([-1.5, -0.0, 0.0, 2.0, np.inf, np.nan])).argsort().tolist()
    [0, 1, 2, 3, 4, 5]
    """
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def float_values(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """The inverse of `float_keys` (the mapping is its own inverse on bits)."""
    return (keys ^ ((keys >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)
