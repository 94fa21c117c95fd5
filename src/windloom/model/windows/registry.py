"""The window kinds by name; a new one is one file and one line here."""

from __future__ import annotations

from windloom.model.windows.landmark import LandmarkWindow
from windloom.model.windows.rows import RowsWindow
from windloom.model.windows.session import SessionWindow
from windloom.model.windows.time import TimeWindow
from windloom.model.windows.window import Window

KINDS: dict[str, type[Window]] = {one.kind: one for one in (TimeWindow, LandmarkWindow, RowsWindow, SessionWindow)}
