"""The life of every kind of window in rounds, by the name of the kind."""

from __future__ import annotations

from windloom.model.windows import (
    CumulateWindow,
    LandmarkWindow,
    RowsWindow,
    SessionWindow,
    TimeWindow,
    VersionWindow,
    Window,
)
from windloom.state.windows.cumulate import CumulateLife
from windloom.state.windows.landmark import LandmarkLife
from windloom.state.windows.lifecycle import WindowLifecycle
from windloom.state.windows.rows import RowsLife
from windloom.state.windows.session import SessionLife
from windloom.state.windows.time import TimeLife
from windloom.state.windows.version import VersionLife

LIVES: dict[str, WindowLifecycle] = {
    TimeWindow.kind: TimeLife(),
    LandmarkWindow.kind: LandmarkLife(),
    CumulateWindow.kind: CumulateLife(),
    RowsWindow.kind: RowsLife(),
    SessionWindow.kind: SessionLife(),
    VersionWindow.kind: VersionLife(),
}


def life_of(window: Window) -> WindowLifecycle:
    """Return the life of a query's windows; all windows of a set have the same."""
    return LIVES[window.kind]
