"""Windloom weaves hundreds of sliding-window queries over a few streams into one shared plan, and runs it on Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windloom.errors import QueryError, SinkDownError, WindloomError, WindloomWarning

if TYPE_CHECKING:
    from windloom.engine.loom import Loom
    from windloom.engine.sinks.registry import sink

__version__ = "0.1.0"
__all__ = ["Loom", "QueryError", "SinkDownError", "WindloomError", "WindloomWarning", "__version__", "sink"]

#: Loaded on first use: the command line answers --help and user errors without paying for Spark and Numba.
_LATER = {"Loom": "windloom.engine.loom", "sink": "windloom.engine.sinks.registry"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'windloom' has no attribute '{name}'")
