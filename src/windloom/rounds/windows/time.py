"""Windows of time in rounds: cells stay while an open window may cover them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import Window
from windloom.plan.physical import PartialSet, PlannedQuery
from windloom.rounds.behind import Behind, Mask
from windloom.rounds.cells import Cells, keep_from
from windloom.rounds.exact import first_exact
from windloom.rounds.positions import Positions
from windloom.rounds.state import History, State
from windloom.rounds.windows.folding import fold_behind
from windloom.rounds.windows.life import Landmark, Left, Life, Turn


class TimeLife(Life):
    def close(self, one: PartialSet, cells: Cells, history: History, turn: Turn) -> Left:
        """Cells some window that ends later may cover, or that the configured history holds; landmarks fold theirs."""
        closed = turn.closed[one.number]
        extents = [planned.query.window.extent_ticks for planned in one.queries]
        needed_from = closed - max(0, turn.history_ticks, *(one for one in extents if one is not None)) + 1
        if not len(cells) or int(np.min(cells.starts)) >= needed_from:
            return Left(cells, history)
        folded_at = [turn.landmarks[planned.name].start for planned in one.queries if planned.name in turn.landmarks]
        if folded_at and closed < TICK_MAX:
            return Left(fold_behind(cells, needed_from, folded_at), history.forget(needed_from))
        return Left(keep_from(cells, needed_from), history.forget(needed_from))

    def lost(
        self, one: PartialSet, planned: PlannedQuery, held: Behind, state: State, landmarks: Mapping[str, Landmark]
    ) -> tuple[Mask, Mask]:
        window, starts = planned.query.window, held.starts
        closed_until, reported_from = reported(window, planned.name, state, state.closed_of(one))
        first = (starts - window.offset_ticks - window.range_ticks) // window.slide_ticks + 1
        last = (starts - window.offset_ticks) // window.slide_ticks
        return first <= np.minimum(last, closed_until), np.maximum(first, reported_from) <= last

    def holds_back(self, window: Window, since: int, closed: int) -> bool:
        return self.after_since(window, since) > closed

    def first_exact(
        self, one: PartialSet, planned: PlannedQuery, history: History, state: State, positions: Positions
    ) -> int | None:
        return first_exact(one, planned, history, state.seen.get(one.stream))


def reported(window: Window, name: str, state: State, closed: int) -> tuple[int, int]:
    """The index up to which its windows are closed, and the first one that is still to be reported."""
    closed_until = (closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
    since = state.since.get(name)
    # The first window that starts at or after `since`; with all of history, every window.
    covered_from = TICK_MIN if since is None else -((window.offset_ticks - since) // window.slide_ticks)
    if name in state.fresh:
        closed_until = min(closed_until, covered_from - 1)
    return closed_until, max(closed_until + 1, covered_from)
