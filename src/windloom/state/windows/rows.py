"""Windows of rows in rounds: a window closes when all its positions have a tuple, separately for every key.

So windows that end behind the last tuple of a key never close, not even when the stream has ended.
"""

from __future__ import annotations

import numpy as np

from windloom.model.arrays import Ints, Mask
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import RowsWindow, Window
from windloom.plan.plan import Asking, Member, PartialSet
from windloom.state.cells import Cells, keep_from
from windloom.state.frontiers import LateTuples
from windloom.state.positions import PositionCounts, Positions
from windloom.state.state import CellCoverage, State
from windloom.state.windows.lifecycle import ReportProgress, RetainedCells, RoundBounds, WindowLifecycle


class RowsLife(WindowLifecycle):
    window = RowsWindow
    weaves_again = False  # positions alone determine what a later query can rely on
    can_wait = False  # the positions before and after a round show which windows it completes

    def close(self, partial_set: PartialSet, cells: Cells, history: CellCoverage, turn: RoundBounds) -> RetainedCells:
        closed = turn.closed_of(partial_set)
        # The positions, by group, at which the windows that a round reports end.
        first = _next_positions(partial_set, turn.before.positions.counts_of(partial_set), cells)
        last = _next_positions(partial_set, turn.positions.counts_of(partial_set), cells)
        if closed >= TICK_MAX:
            return RetainedCells(keep_from(cells, TICK_MAX), history, (first, last))
        # Windows that are not complete may cover the cells of their last tuples.
        longest = max(planned.query.window.range_ticks for planned in partial_set.queries)
        still_open = keep_from(cells, np.repeat(last - longest + 1, np.diff(cells.group_bounds)))
        return RetainedCells(still_open, history, (first, last))

    def interval(self, after: int, until: int) -> tuple[int, int]:
        return TICK_MIN, TICK_MAX  # ends are positions, which spans narrow group by group

    def lateness_ticks(self, partial_set: PartialSet, state: State) -> tuple[int, ...]:
        after = state.positions.counts_of(partial_set).after
        return (after + 1,) if after > TICK_MIN else ()

    def complete_from(self, window: Window, seen: int | None) -> int | None:
        return None

    def lost(
        self, partial_set: PartialSet, window: Window, reported: ReportProgress, entries: LateTuples, state: State
    ) -> tuple[Mask, Mask]:
        # A tuple that comes behind the frontier gets no position, so its windows are lost. Tuples up to `after`, from
        # before the first query, were not to have one. If all tuples are counted, every late tuple is lost, even in a
        # scan without slices of time, whose entries have no start.
        after = state.positions.counts_of(partial_set).after
        missed = np.ones(len(entries), np.bool_) if after == TICK_MIN else entries.starts > after
        return missed, np.zeros(len(entries), np.bool_)

    def own_after(self, planned: Asking, state: State, closed: int) -> int:
        # Positions show what has been reported.
        since = state.since.get(planned.name)
        return TICK_MIN if since is None else self.after_since(planned.query.window, since)

    def first_exact(
        self, partial_set: PartialSet, planned: Member, history: CellCoverage, state: State, positions: Positions
    ) -> int | None:
        """Return the start of the first window none of whose tuples has a position yet; None if no tuple has one."""
        most, window = positions.counts_of(partial_set).most, planned.query.window
        if most == 0:
            return None
        return -((window.offset_ticks - most) // window.slide_ticks) * window.slide_ticks + window.offset_ticks

    def question_obstacle(self, window: Window) -> tuple[str, str] | None:
        fact = f"its windows {window} are of rows, whose positions are not kept for questions"
        return fact, "add it as a query: it counts from the next round on"


def _next_positions(partial_set: PartialSet, counts: PositionCounts, cells: Cells) -> Ints:
    """Return for every group of a set's cells the position that the next tuple of its key will have."""
    keys = [cells.keys[partial_set.group_by.index(key)] for key in partial_set.counted_by or ()]
    return counts.of(keys, cells.groups)
