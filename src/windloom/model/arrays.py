"""Arrays by the type of their entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: Numbers below 2^31: codes of values, positions of rows and cells.
Codes = NDArray[np.int32]
Positions = NDArray[np.int32]
