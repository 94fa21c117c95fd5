"""The decorator that compiles kernels, the cache that keeps their code, and the memory for their results.

Counting builds count operations inside compiled loops: `WINDLOOM_COUNT_OPERATIONS=1`, read when it is imported,
makes every `combine` and `remove` add one to a counter. Without it no kernel counts anything. Counting code contains
the address of this process's counter, so it is never kept on disk, and the caches of the two builds cannot mix.

Numba keeps machine code on disk, and loads a kernel when it is first called, which takes tens of milliseconds. So a
process notes which kernels it used, and a later one loads them while it waits for Spark's JVM to start.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import platform
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import pyarrow as pa
from llvmlite import binding, ir
from numba import types
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from windloom.cache import cache_folder

Kind = TypeVar("Kind", bound=np.generic)


def new_array(length: int, kind: type[Kind]) -> NDArray[Kind]:
    """Return an array whose contents are undefined, in memory of Arrow's pool, which keeps freed memory for a while.

    NumPy returns it to the system, and the next large array obtains it again page by page, which takes several times as
    long as filling it.
    """
    if not length:
        return np.empty(0, kind)
    return np.frombuffer(pa.allocate_buffer(length * np.dtype(kind).itemsize), kind)


#: Options of glibc's `mallopt`, by number: up to 32 MiB, which all versions take, an array comes from the heap; that
#: grows by 64 MiB, the size of a thread's piece of it, and returns memory to the system once 1 GiB at its end is free.
_KEPT_MEMORY = {-3: 32 << 20, -2: 64 << 20, -1: 1 << 30}


@cache
def keep_freed_memory() -> bool:
    """Let the process keep memory that arrays free, as Arrow's pool does; return whether the C library can do that.

    Whoever sets options of malloc in the environment keeps them.
    """
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # not glibc
        return False
    return all(set_option(option, size) == 1 for option, size in _KEPT_MEMORY.items())


#: The build-time switch.
COUNTING = os.environ.get("WINDLOOM_COUNT_OPERATIONS", "0") not in ("", "0")

_COUNTER = np.zeros(1, np.int64)
_ADDRESS = int(_COUNTER.ctypes.data)


def reset_operations() -> None:
    _COUNTER[0] = 0


def counted_operations() -> int:
    """Return operations since the last reset; always 0 unless this is a counting build."""
    return int(_COUNTER[0])


#: Makes an instruction for compiled code from a function that builds it; Numba passes its typing context.
compiled_in: Callable[..., Any] = intrinsic


def compiled_by_type(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation for compiled code only; `choose` returns its body for the types of the arguments."""
    overload(choose, strict=False)(choose)
    return choose


def _counter_pointer() -> Any:
    word = ir.IntType(64)
    return ir.Constant(word, _ADDRESS).inttoptr(word.as_pointer())


@compiled_in
def count_one(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _counter_pointer()
        builder.store(builder.add(builder.load(pointer), ir.Constant(ir.IntType(64), 1)), pointer)
        return context.get_dummy_value()

    return types.void(), generate


@compiled_in
def _operations_so_far(typing_context: Any) -> Any:
    return types.int64(), lambda context, builder, signature, arguments: builder.load(_counter_pointer())


@compiled_in
def read_clock(typing_context: Any) -> Any:
    """Return the processor's time-stamp counter: a constant rate on current x86, about 8 ns to read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        clock = builder.module.declare_intrinsic("llvm.readcyclecounter", (), ir.FunctionType(ir.IntType(64), []))
        return builder.call(clock, [])

    return types.int64(), generate


@compiled_by_type
def mark(stamps: Any, row: Any) -> Callable[..., Any]:
    """Stamp a row that was answered: with the operations so far in a counting build, otherwise the processor's clock.

    Kernels that answer window after window call it. `stamps` is None except in measurements, and Numba then compiles
    nothing for the call.
    """
    if isinstance(stamps, types.NoneType):
        return lambda stamps, row: None
    if COUNTING:

        def mark_count(stamps: Any, row: Any) -> None:
            stamps[row] = _operations_so_far()

        return mark_count

    def mark_clock(stamps: Any, row: Any) -> None:
        stamps[row] = read_clock()

    return mark_clock


#: Classes of columns whose kernels are neither kept on disk nor looked for there. The cache identifies a kernel by its
#: file and the types of its arguments. An operation that a user defines is part of neither, so the cache would return
#: code for another definition with the same name.
NEVER_KEPT: set[type[Any]] = set()


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
    return bool(NEVER_KEPT) and any(getattr(argument, "instance_class", None) in NEVER_KEPT for argument in arguments)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function to machine code, which is kept on disk if possible and runs without the interpreter lock.

    `error_model="numpy"` and no `fastmath`: divisions do not raise, and compensated sums keep their meaning.
    """
    kernel: Any = numba.njit(nogil=True, error_model="numpy")(function)
    if not COUNTING:
        with suppress(RuntimeError):  # no folder is writable: every process compiles for itself
            kernel._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return kernel  # type: ignore[no-any-return]


#: A kernel by module and name, and the types it was compiled for.
Compiled = tuple[str, str, Any]


def compiled_kernels() -> set[Compiled]:
    """Return every kernel of the imported modules, once per signature that this process has compiled or loaded."""
    return {
        (kernel.py_func.__module__, kernel.py_func.__name__, signature)
        for kernel in _kernels()
        for signature in kernel.signatures
    }


def compilations() -> int:
    """Return the number of kernels that this process had to compile because they were not on disk."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in _kernels())


def kept_in() -> list[str]:
    """Return the folders in which Numba keeps code: those of the sources, NUMBA_CACHE_DIR, or the user's cache.

    There are none if no folder is writable.
    """
    return sorted({str(path) for kernel in _kernels() if (path := kernel.stats.cache_path) is not None})


def note_path() -> Path:
    """Return the note for these sources, this Numba, this Python and this processor, whether it exists or not."""
    return cache_folder() / f"kernels-{_fingerprint()}.pickle"


def write_note(kernels: Iterable[Compiled]) -> None:
    noted = []
    for kernel in sorted(kernels, key=str):
        # No other process knows the types of a user-defined aggregate, and they cannot be pickled.
        with suppress(pickle.PicklingError, AttributeError):
            pickle.dumps(kernel)
            noted.append(kernel)
    path = note_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{threading.get_native_id()}")
    draft.write_bytes(pickle.dumps(noted))
    draft.replace(path)


def load_noted() -> int:
    """Load the noted kernels whose modules are imported; return their number."""
    path = note_path()
    if not path.is_file():
        return 0
    # Written by `write_note`, next to machine code that Numba loads in the same way.
    noted: list[Compiled] = pickle.loads(path.read_bytes())
    loaded = 0
    for module, name, signature in noted:
        kernel = getattr(sys.modules.get(module), name, None)
        if isinstance(kernel, Dispatcher):
            kernel.compile(signature)
            loaded += 1
    return loaded


def load_in_background() -> threading.Thread:
    """Start to load the noted kernels. A failure does no harm: a kernel is loaded at the latest when it is called."""

    def load() -> None:
        try:
            load_noted()
        except Exception:
            return

    # The thread imports nothing: two threads that import modules of one package can deadlock.
    thread = threading.Thread(target=load, name="windloom-kernels", daemon=True)
    thread.start()
    return thread


def _kernels() -> list[Any]:
    """Return the kernels of all imported modules, each once."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("windloom.")]
    values = (value for module in modules for value in list(vars(module).values()))
    return list({id(value): value for value in values if isinstance(value, Dispatcher)}.values())


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    digest = sha256(f"{numba.__version__} {sys.version} {platform.machine()} {binding.get_host_cpu_name()}".encode())
    root = Path(__file__).parents[1]
    for source in sorted(root.rglob("*.py")):
        facts = source.stat()
        digest.update(f"\n{source} {facts.st_size} {facts.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]
