"""Window kinds: which intervals, of time or of tuple positions, a query reports on; one file per kind.

The kinds that other modules name most are exported here; any other is imported from its own module.
"""

from windloom.model.windows.landmark import LandmarkWindow
from windloom.model.windows.registry import KINDS, WINDOW_FUNCTIONS
from windloom.model.windows.rows import RowsWindow
from windloom.model.windows.session import SessionWindow
from windloom.model.windows.time import TimeWindow
from windloom.model.windows.version import VersionWindow
from windloom.model.windows.window import MAX_TICKS, Window

__all__ = [
    "KINDS",
    "MAX_TICKS",
    "WINDOW_FUNCTIONS",
    "LandmarkWindow",
    "RowsWindow",
    "SessionWindow",
    "TimeWindow",
    "VersionWindow",
    "Window",
]
