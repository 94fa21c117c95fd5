"""Versions of relations in rounds: a version stays until the next one replaces it."""

from __future__ import annotations

import numpy as np

from windloom.model.arrays import Mask
from windloom.model.windows import VersionWindow, Window
from windloom.plan.plan import Member, PartialSet
from windloom.state.cells import Cells
from windloom.state.frontiers import LateTuples
from windloom.state.positions import Positions
from windloom.state.state import CellCoverage, State
from windloom.state.windows.lifecycle import ReportProgress, WindowLifecycle


class VersionLife(WindowLifecycle):
    """The rows of a relation have no time: none is late, none is dropped, and every window end sees all of them."""

    window = VersionWindow
    weaves_again = False

    def merged(self, cells: Cells, fresh: Cells) -> Cells:
        return fresh

    def complete_from(self, window: Window, seen: int | None) -> int | None:
        return None

    def lost(
        self, partial_set: PartialSet, window: Window, reported: ReportProgress, entries: LateTuples, state: State
    ) -> tuple[Mask, Mask]:
        nothing = np.zeros(len(entries), np.bool_)
        return nothing, nothing

    def holds_back(self, window: Window, since: int, closed: int) -> bool:
        return False

    def first_exact(
        self, partial_set: PartialSet, planned: Member, history: CellCoverage, state: State, positions: Positions
    ) -> int | None:
        return None
