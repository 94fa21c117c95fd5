"""Decimals as unscaled integers of 128 bits, and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.arrow import as_array
from windloom.kernels.folds.wide import Wide
from windloom.model.types import DataType


def wide_of(dictionary: pa.Array, keys: NDArray[np.int64]) -> Wide:
    """Return the unscaled values of decimals by their ranks."""
    values = as_array(dictionary).cast(pa.decimal128(38, dictionary.type.scale))
    words = np.frombuffer(values.buffers()[1] or b"", "<u8")[2 * values.offset : 2 * (values.offset + len(values))]
    if not len(words):
        return Wide(np.zeros(len(keys), np.int64), np.zeros(len(keys), np.uint64))
    pairs = words.reshape(-1, 2)[keys]
    return Wide(pairs[:, 1].copy().view(np.int64), pairs[:, 0].copy())


def decimals_of(numbers: Wide, kind: DataType, wanted: NDArray[np.bool_]) -> pa.Array:
    """Return decimals from their unscaled values; 0 where no value is wanted."""
    words = np.stack([numbers.low, numbers.high.view(np.uint64)], axis=1)
    words[~wanted] = 0
    buffers = [None, pa.py_buffer(words.tobytes())]
    return pa.Array.from_buffers(pa.decimal128(kind.precision, kind.scale), len(words), buffers)
