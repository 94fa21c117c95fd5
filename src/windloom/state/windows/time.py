"""Windows of time in rounds: cells stay while an open window may cover them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from windloom.model.arrays import Ints, Mask
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import TimeWindow, Window
from windloom.plan.plan import Member, PartialSet
from windloom.state.cells import Cells, CellsBuilder, keep_from
from windloom.state.frontiers import LateTuples
from windloom.state.history import first_exact
from windloom.state.positions import Positions
from windloom.state.state import CellCoverage, State
from windloom.state.windows.lifecycle import ReportProgress, RetainedCells, RoundBounds, WindowLifecycle


class TimeLife(WindowLifecycle):
    window: ClassVar[type[Window]] = TimeWindow

    def close(self, partial_set: PartialSet, cells: Cells, history: CellCoverage, turn: RoundBounds) -> RetainedCells:
        """Keep cells that a window that ends later may cover, or that are history.

        Every open window of a landmark query covers all cells behind the watermark, from its landmark on. So these are
        merged into one per group from each landmark to the next, and the state does not grow with the stream.
        """
        closed, needed_from = turn.closed_of(partial_set), self.needed_from(partial_set, turn)
        if not len(cells) or int(np.min(cells.starts)) >= needed_from:
            return RetainedCells(cells, history)
        folded_at = [
            turn.landmarks[planned.name].start for planned in partial_set.queries if planned.name in turn.landmarks
        ]
        kept_from = needed_from
        if folded_at and closed < TICK_MAX:
            edges, starts = np.unique(np.array(folded_at, np.int64)), cells.starts
            index = np.searchsorted(edges, starts, side="right") - 1
            moved = np.where((starts < needed_from) & (index >= 0), edges[index], starts)
            if (moved != starts).any():
                cells = CellsBuilder.of_cells(cells, moved).build(cells.lifted)
            kept_from = min(int(edges[0]), needed_from)
        return RetainedCells(keep_from(cells, kept_from), history.forget(needed_from))

    def needed_from(self, partial_set: PartialSet, turn: RoundBounds) -> int:
        return min(
            turn.reached(planned) - max(turn.history_ticks, planned.query.window.extent_ticks or 0) + 1
            for planned in partial_set.queries
        )

    def needed(self, partial_set: PartialSet, cells: Cells, turn: RoundBounds) -> Mask:
        return np.asarray(cells.starts >= self.needed_from(partial_set, turn))

    def folds(self, partial_set: PartialSet) -> bool:
        return any(planned.query.window.extent_ticks is None for planned in partial_set.queries)

    def lost(
        self, partial_set: PartialSet, window: Window, reported: ReportProgress, entries: LateTuples, state: State
    ) -> tuple[Mask, Mask]:
        return time_lost(window, reported, entries.starts)

    def holds_back(self, window: Window, since: int, closed: int) -> bool:
        return self.after_since(window, since) > closed

    def first_exact(
        self, partial_set: PartialSet, planned: Member, history: CellCoverage, state: State, positions: Positions
    ) -> int | None:
        return first_exact(partial_set, planned, history, state.seen.get(partial_set.base))


def time_lost(window: Window, reported: ReportProgress, ticks: Ints) -> tuple[Mask, Mask]:
    """Return which ticks lie in a window of a query that is closed, and which in one that is still open."""
    closed_until, reported_from = reported_until(window, reported)
    first = (ticks - window.offset_ticks - window.range_ticks) // window.slide_ticks + 1
    last = (ticks - window.offset_ticks) // window.slide_ticks
    return first <= np.minimum(last, closed_until), np.maximum(first, reported_from) <= last


def reported_until(window: Window, reported: ReportProgress) -> tuple[int, int]:
    """Return the index up to which its windows are closed, and the first one that is still to be reported."""
    closed_until = (reported.closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
    since = reported.since
    # The first window that starts at or after `since`; with all of history, every window.
    covered_from = TICK_MIN if since is None else -((window.offset_ticks - since) // window.slide_ticks)
    if reported.is_fresh:
        closed_until = min(closed_until, covered_from - 1)
    return closed_until, max(closed_until + 1, covered_from)
