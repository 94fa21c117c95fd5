"""Arrays for results, in memory that is reused.

NumPy returns freed memory to the system, and the next large array obtains it again page by page, which takes several
times as long as filling it. Arrow's pool keeps freed memory for a while.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Kind = TypeVar("Kind", bound=np.generic)


def new_array(length: int, kind: type[Kind]) -> NDArray[Kind]:
    """An array whose contents are undefined."""
    if not length:
        return np.empty(0, kind)
    return np.frombuffer(pa.allocate_buffer(length * np.dtype(kind).itemsize), kind)
