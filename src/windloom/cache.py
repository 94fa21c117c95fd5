"""Where Windloom keeps what set-up prepares: compiled code that can be made again, never data."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """`WINDLOOM_CACHE` if it is set, else a folder of the virtual environment, else one in the user's cache.

    The cache belongs to the installed packages, so it is deleted along with their environment.
    """
    if given := os.environ.get("WINDLOOM_CACHE"):
        return Path(given)
    own = Path(sys.prefix, "windloom-cache")
    if sys.prefix != sys.base_prefix and (own.is_dir() or os.access(sys.prefix, os.W_OK)):
        return own
    return user_cache_path("windloom", appauthor=False)
