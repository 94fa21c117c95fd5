"""One place that says how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from windloom.kernels.operations import COUNTING


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile to machine code, keep the code on disk, release the interpreter lock while it runs.

    `error_model="numpy"` and no `fastmath`: divisions do not raise, and compensated sums keep their meaning.
    """
    made: Callable[..., Any] = numba.njit(cache=not COUNTING, nogil=True, error_model="numpy")(function)
    return made
