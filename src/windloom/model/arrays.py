"""Names for the types of NumPy arrays that most loops and columns have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]  # numbers of distinct values
Mask = NDArray[np.bool_]
