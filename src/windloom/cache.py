"""Where Windloom keeps what set-up prepares once: machine code that can be made again, never data."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """WINDLOOM_CACHE where it is set, else a folder of the virtual environment, else one of the user's cache.

    What is prepared belongs to the packages that are installed, so it goes when the environment goes.
    """
    if given := os.environ.get("WINDLOOM_CACHE"):
        return Path(given)
    own = Path(sys.prefix, "windloom-cache")
    if sys.prefix != sys.base_prefix and (own.is_dir() or os.access(sys.prefix, os.W_OK)):
        return own
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windloom"
