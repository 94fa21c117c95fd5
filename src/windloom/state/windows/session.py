"""Sessions in rounds: tuples join the open sessions of their group; a session closes once the frontier has passed it.

A tuple at the very end of a session still belongs to it, as it does for Spark. So a session is not complete when the
frontier reaches its end, but when it has passed it. A tuple is late if a session of its own would be complete already.
It may come behind the frontier and still be in time: then it joins open sessions, or bridges two of them, but no
session that is complete.
"""

from __future__ import annotations

import numpy as np

from windloom.aggregates.columns import ComponentColumns
from windloom.kernels.locate import Lanes
from windloom.kernels.merge import session_starts
from windloom.kernels.tuples.grid import Grid
from windloom.kernels.tuples.tuples import Tuples
from windloom.model.arrays import Ints, Mask
from windloom.model.time import TICK_MIN
from windloom.model.windows import SessionWindow, Window
from windloom.plan.plan import Asking, Member, PartialSet
from windloom.plan.scans import WovenFeed
from windloom.state.cells import Cells, CellsBuilder, keep_cells
from windloom.state.frontiers import LateTuples
from windloom.state.history import kept_from
from windloom.state.positions import Positions
from windloom.state.state import CellCoverage, State
from windloom.state.windows.lifecycle import (
    Marks,
    QueryBatch,
    ReportProgress,
    RetainedCells,
    RoundBounds,
    Span,
    WindowCells,
    WindowLifecycle,
)

#: The place of LAST_TICK among the components of a set of sessions: behind COUNT(*).
_LAST = 1


class SessionLife(WindowLifecycle):
    window = SessionWindow
    weaves_again = False  # which tuples of a past round were late is not logged
    sees_late = False  # a tuple that is late for a session is part of none

    def in_time(self, window: Window, tuples: Tuples, closed: int) -> Tuples:
        return tuples.since(closed - window.range_ticks)

    def grid(self, tuples: Tuples, fed: WovenFeed, partial_set: PartialSet) -> Grid:
        return tuples.sessions(fed.groups, partial_set.window.range_ticks, () if fed.bit is None else (fed.bit,))

    def joined(self, partial_set: PartialSet, cells: Cells, closed: int) -> Cells:
        starts = np.empty_like(cells.starts)
        session_starts(cells.starts, _lasts(cells), cells.group_bounds, partial_set.window.range_ticks, closed, starts)
        return cells if (starts == cells.starts).all() else CellsBuilder.of_cells(cells, starts).build(cells.lifted)

    def close(self, partial_set: PartialSet, cells: Cells, history: CellCoverage, turn: RoundBounds) -> RetainedCells:
        is_needed = self.needed(partial_set, cells, turn)
        if is_needed.all():
            return RetainedCells(cells, history)
        return RetainedCells(keep_cells(cells, is_needed), history.forget(_needed_after(partial_set, turn)))

    def needed(self, partial_set: PartialSet, cells: Cells, turn: RoundBounds) -> Mask:
        return np.asarray(_lasts(cells) + partial_set.window.range_ticks >= _needed_after(partial_set, turn))

    def interval(self, after: int, until: int) -> tuple[int, int]:
        return after - 1, until - 1  # ends that the frontier has passed, not those that it has reached

    def lateness_ticks(self, partial_set: PartialSet, state: State) -> tuple[int, ...]:
        closed = state.closed_of(partial_set)
        return (closed - partial_set.window.range_ticks,) if closed > TICK_MIN else ()

    def complete_from(self, window: Window, seen: int | None) -> int | None:
        # A session that begins earlier may have begun with tuples that nobody held.
        return None if seen is None else seen + window.range_ticks + 1

    def located(self, cells: Cells, groups: slice, cohort: QueryBatch, marks: Marks, span: Span | None) -> WindowCells:
        """Return a row for every session; each is a cell."""
        bounds = cells.group_bounds[groups.start : groups.stop + 1]
        cells_of_groups = slice(int(bounds[0]), int(bounds[-1]))
        starts, ends = cells.starts[cells_of_groups], _lasts(cells)[cells_of_groups] + cohort.windows.ranges[0]
        sizes, rows_of_queries = [np.zeros(1, np.int64)], []
        for query in range(len(cohort.windows)):
            wanted = (ends > cohort.after[query]) & (ends <= cohort.until[query]) & (starts >= cohort.since[query])
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(wanted)])
            sizes.append(np.diff(before[bounds - bounds[0]]))
            rows_of_queries.append(np.flatnonzero(wanted))
        rows = np.concatenate(rows_of_queries)
        lo = (rows + cells_of_groups.start).astype(np.int32)
        lanes = Lanes(np.cumsum(np.concatenate(sizes)), starts[rows], lo, lo + np.int32(1), np.empty(0, np.int32))
        return WindowCells(lanes, ends[rows])

    def lost(
        self, partial_set: PartialSet, window: Window, reported: ReportProgress, entries: LateTuples, state: State
    ) -> tuple[Mask, Mask]:
        is_late = entries.starts < reported.closed - window.range_ticks
        is_asked = entries.starts >= (TICK_MIN if reported.since is None else reported.since)
        return is_late & is_asked, ~is_late & is_asked

    def own_after(self, planned: Asking, state: State, closed: int) -> int:
        return TICK_MIN if planned.name in state.fresh else closed - 1

    def first_exact(
        self, partial_set: PartialSet, planned: Member, history: CellCoverage, state: State, positions: Positions
    ) -> int | None:
        """Return where complete sessions begin: where everything is kept; earlier ones may lack tuples."""
        seen, lowest = state.seen.get(partial_set.base), kept_from(partial_set, planned, history)
        return None if seen is None or lowest == TICK_MIN else min(lowest, seen + partial_set.window.range_ticks + 1)

    def last_start(self, window: Window, closed: int) -> int:
        return closed - window.range_ticks - 1


def _needed_after(partial_set: PartialSet, turn: RoundBounds) -> int:
    """Return the tick before which sessions have been reported, and are not kept for later questions."""
    return min(turn.reached(planned) for planned in partial_set.queries) - turn.history_ticks


def _lasts(cells: Cells) -> Ints:
    """Return the tick of the latest tuple of every cell."""
    lifted = cells.lifted[_LAST]
    assert isinstance(lifted, ComponentColumns)
    lasts: Ints = lifted.limbs[0].value
    return lasts
