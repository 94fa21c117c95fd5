"""Versions of relations in rounds: a version stays until the next one replaces it."""

from __future__ import annotations

import numpy as np

from windloom.model.arrays import Mask
from windloom.model.windows import Window
from windloom.plan.physical import Member, PartialSet
from windloom.rounds.behind import Behind
from windloom.rounds.cells import Cells
from windloom.rounds.positions import Positions
from windloom.rounds.state import History, State
from windloom.rounds.windows.life import Left, Life, Reported, Turn


class VersionLife(Life):
    """The rows of a relation have no time: none is late, none is dropped, and every window end sees all of them."""

    weaves_again = False

    def merged(self, cells: Cells, fresh: Cells) -> Cells:
        return fresh

    def close(self, partial_set: PartialSet, cells: Cells, history: History, turn: Turn) -> Left:
        return Left(cells, history)

    def needed(self, partial_set: PartialSet, cells: Cells, turn: Turn) -> Mask:
        return np.ones(len(cells), np.bool_)

    def held_from(self, window: Window, seen: int | None) -> int | None:
        return None

    def lost(
        self, partial_set: PartialSet, window: Window, reported: Reported, entries: Behind, state: State
    ) -> tuple[Mask, Mask]:
        nothing = np.zeros(len(entries), np.bool_)
        return nothing, nothing

    def holds_back(self, window: Window, since: int, closed: int) -> bool:
        return False

    def first_exact(
        self, partial_set: PartialSet, planned: Member, history: History, state: State, positions: Positions
    ) -> int | None:
        return None
