"""Windloom weaves hundreds of sliding-window queries over a few streams into one shared plan, and runs it on Spark."""

from typing import TYPE_CHECKING, Any

from windloom.errors import QueryError, WindloomError

if TYPE_CHECKING:
    from windloom.engine.loom import Loom

__version__ = "0.1.0"
__all__ = ["Loom", "QueryError", "WindloomError", "__version__"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line answers --help and user errors without paying for Spark and Numba.
    if name == "Loom":
        from windloom.engine.loom import Loom

        return Loom
    raise AttributeError(f"module 'windloom' has no attribute '{name}'")
