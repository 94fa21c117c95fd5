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
from windloom.rounds.windows.cumulate import CumulateLife
from windloom.rounds.windows.landmark import LandmarkLife
from windloom.rounds.windows.life import Life
from windloom.rounds.windows.rows import RowsLife
from windloom.rounds.windows.session import SessionLife
from windloom.rounds.windows.time import TimeLife
from windloom.rounds.windows.version import VersionLife

LIVES: dict[str, Life] = {
    TimeWindow.kind: TimeLife(),
    LandmarkWindow.kind: LandmarkLife(),
    CumulateWindow.kind: CumulateLife(),
    RowsWindow.kind: RowsLife(),
    SessionWindow.kind: SessionLife(),
    VersionWindow.kind: VersionLife(),
}


def life_of(window: Window) -> Life:
    """Return the life of a query's windows; all windows of a set have the same."""
    return LIVES[window.kind]
