"""The decorator that compiles kernels, and the cache that keeps their code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache

from windloom.kernels.compiling.operations import COUNTING

#: Classes of columns whose kernels are not kept beyond the process: their names do not identify what they compute.
_PASSING: set[type[Any]] = set()


def never_keep(columns: type[Any]) -> None:
    """Neither keep code for these columns on disk nor look for it there.

    The cache identifies a kernel by its file and the types of its arguments. An operation that a user
    defines is part of neither, so the cache would return code for another definition with the same name.
    """
    _PASSING.add(columns)


class _Cache(FunctionCache):
    """Numba's own cache, except for signatures with columns that are never kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return None if _passes(sig) else super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        if not _passes(sig):
            with suppress(OSError):  # a full disk: the next process compiles it again
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _passes(signature: Any) -> bool:
    arguments = getattr(signature, "args", signature)
    return bool(_PASSING) and any(getattr(argument, "instance_class", None) in _PASSING for argument in arguments)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function to machine code, which is kept on disk if possible and runs without the interpreter lock.

    `error_model="numpy"` and no `fastmath`: divisions do not raise, and compensated sums keep their meaning.
    """
    kernel: Any = numba.njit(nogil=True, error_model="numpy")(function)
    if not COUNTING:
        with suppress(RuntimeError):  # no folder is writable: every process compiles for itself
            kernel._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return kernel  # type: ignore[no-any-return]
