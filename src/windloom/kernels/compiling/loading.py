"""Notes which compiled kernels were used, so that a later process can load them before it needs them.

Numba keeps machine code on disk, and loads a kernel when it is first called. That takes tens of milliseconds per
kernel, and a process has the time while it waits for Spark's JVM to start.
"""

from __future__ import annotations

import pickle
import platform
import sys
import threading
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core.dispatcher import Dispatcher

from windloom.cache import cache_folder

#: A kernel by module and name, and the types it was compiled for.
Compiled = tuple[str, str, Any]


def compiled_kernels() -> set[Compiled]:
    """Every kernel of the imported modules, once per signature that this process has compiled or loaded."""
    return {
        (function.__module__, function.__name__, signature)
        for function, kernel in _kernels()
        for signature in kernel.signatures
    }


def compilations() -> int:
    """The number of kernels that this process had to compile because they were not on disk."""
    return sum(sum(kernel.stats.cache_misses.values()) for _, kernel in _kernels())


def kept_in() -> list[str]:
    """The folders in which Numba keeps code: those of the sources, NUMBA_CACHE_DIR, or the user's cache.

    There are none if no folder is writable.
    """
    return sorted({str(path) for _, kernel in _kernels() if (path := kernel.stats.cache_path) is not None})


def note_path() -> Path:
    """The note for these sources, this Numba, this Python and this processor, whether it exists or not."""
    return cache_folder() / f"kernels-{_fingerprint()}.pickle"


def write_note(kernels: Iterable[Compiled]) -> None:
    path = note_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{threading.get_native_id()}")
    draft.write_bytes(pickle.dumps([kernel for kernel in sorted(kernels, key=str) if _outlives_process(kernel)]))
    draft.replace(path)


def _outlives_process(kernel: Compiled) -> bool:
    """Whether another process can know its types: those of a user-defined aggregate differ between processes."""
    try:
        pickle.dumps(kernel)
    except (pickle.PicklingError, AttributeError):
        return False
    return True


def load_noted() -> int:
    """Loads the noted kernels whose modules are imported; returns their number."""
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
    """Starts to load the noted kernels. A failure does no harm: a kernel is loaded at the latest when it is called."""

    def load() -> None:
        try:
            load_noted()
        except Exception:
            return

    # The thread imports nothing: two threads that import modules of one package can deadlock.
    thread = threading.Thread(target=load, name="windloom-kernels", daemon=True)
    thread.start()
    return thread


def _kernels() -> list[tuple[Any, Any]]:
    """The kernels, with the Python functions they were made from."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("windloom.")]
    kernels = {
        id(dispatcher): dispatcher
        for module in modules
        for dispatcher in list(vars(module).values())
        if isinstance(dispatcher, Dispatcher)
    }
    return [(kernel.py_func, kernel) for kernel in kernels.values()]


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    digest = sha256(f"{numba.__version__} {sys.version} {platform.machine()} {binding.get_host_cpu_name()}".encode())
    root = Path(__file__).parents[2]
    for source in sorted(root.rglob("*.py")):
        facts = source.stat()
        digest.update(f"\n{source} {facts.st_size} {facts.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]
