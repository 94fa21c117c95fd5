"""Windloom weaves hundreds of sliding-window queries over a few streams into one shared plan, and runs it on Spark."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from windloom.errors import QueryError, SinkDownError, WindloomError, WindloomWarning

if TYPE_CHECKING:
    from windloom.engine.answer_folder import read
    from windloom.engine.loom import Loom
    from windloom.sinks.registry import sink

#: How many milliseconds Arrow's allocator keeps freed memory, unless the user says otherwise: long enough for the next
#: round or run. Its own 10 ms give pages back that are obtained again at once. It reads this when pyarrow is imported.
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "60000")

__version__ = "0.1.0"
__all__ = ["Loom", "QueryError", "SinkDownError", "WindloomError", "WindloomWarning", "__version__", "read", "sink"]

#: Loaded on first use: the command line answers --help and user errors without paying for Spark and Numba.
_LATER = {"Loom": "windloom.engine.loom", "read": "windloom.engine.answer_folder", "sink": "windloom.sinks.registry"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'windloom' has no attribute '{name}'")
