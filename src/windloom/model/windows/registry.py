"""The window kinds that queries name; a new one is one file and one line here.

`VersionWindow` is not among them: it is what a relation has instead of a window.
"""

from __future__ import annotations

from windloom.model.windows.cumulate import CumulateWindow
from windloom.model.windows.landmark import LandmarkWindow
from windloom.model.windows.rows import RowsWindow
from windloom.model.windows.session import SessionWindow
from windloom.model.windows.time import TimeWindow
from windloom.model.windows.window import Window

KINDS: dict[str, type[Window]] = {
    window_class.kind: window_class
    for window_class in (TimeWindow, LandmarkWindow, CumulateWindow, RowsWindow, SessionWindow)
}

#: Spark's functions that make windows.
WINDOW_FUNCTIONS: tuple[str, ...] = tuple(
    window_class.function for window_class in KINDS.values() if window_class.function is not None
)
