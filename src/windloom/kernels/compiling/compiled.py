"""One place that says how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache

from windloom.kernels.compiling.operations import COUNTING

#: Classes of columns whose kernels live as long as the process: what they compute is not told by their names.
_PASSING: set[type[Any]] = set()


def never_keep(columns: type[Any]) -> None:
    """Code that is compiled for these columns is not kept on disk, nor looked for there.

    The cache knows a kernel by the file it stands in and by the types of its arguments. An operation that a user
    defines is part of neither, so code for another definition of the same name would be taken for this one's.
    """
    _PASSING.add(columns)


class _Cache(FunctionCache):
    """Numba's own, but for signatures with columns that pass."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return None if _passes(sig) else super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        if not _passes(sig):
            with suppress(OSError):  # a full disk: the next process compiles it again
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _passes(signature: Any) -> bool:
    arguments = getattr(signature, "args", signature)
    return bool(_PASSING) and any(getattr(one, "instance_class", None) in _PASSING for one in arguments)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile to machine code, keep the code on disk if that is possible, release the interpreter lock while it runs.

    `error_model="numpy"` and no `fastmath`: divisions do not raise, and compensated sums keep their meaning.
    """
    made: Any = numba.njit(nogil=True, error_model="numpy")(function)
    if not COUNTING:
        with suppress(RuntimeError):  # no folder can be written to: every process compiles for itself
            made._cache = _Cache(function)  # type: ignore[no-untyped-call]
    found: Callable[..., Any] = made
    return found
