"""The decisions that depend on the kind of window; the step and its parts never ask which kind it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.cells.lanes import shift_queries
from windloom.kernels.cells.locate import Lanes, locate
from windloom.kernels.compiling.memory import new_array
from windloom.model.arrays import Mask
from windloom.model.time import TICK_MIN
from windloom.model.windows import Window
from windloom.plan.physical import Asking, Member, PartialSet
from windloom.plan.scans import WovenSet
from windloom.rounds.behind import Behind
from windloom.rounds.cells import Cells, merge_cells
from windloom.rounds.frontiers import Inputs, inputs_of
from windloom.rounds.positions import Positions
from windloom.rounds.state import History, State
from windloom.weave.grid import Grid
from windloom.weave.tuples import Tuples

if TYPE_CHECKING:
    from windloom.rounds.cohorts import Cohort

#: For every group of a set, `(after, until]` for the ends of its windows, if groups close separately.
Span = tuple[NDArray[np.int64], NDArray[np.int64]]

#: Starts of marked cells, bounds of their groups, and the cell that each lies in; three empty arrays without marks.
Marks = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Landmark:
    """The windows of one query, from `start` to every end up to `until`; both are -∞ as long as there is no tuple.

    A side of a join has an `until` once any stream of the join has a tuple, and a `start` once its own has one.
    """

    start: int = TICK_MIN
    until: int = TICK_MIN

    @property
    def is_known(self) -> bool:
        return self.start > TICK_MIN


@dataclass(frozen=True, slots=True)
class Reported:
    """How far a query had reported its windows before a round: those that ended up to `closed`.

    With `since`, it reports only windows that begin there or later. A fresh query is still to report every such window,
    however long ago it ended. `landmark` is set for windows that grow from one.
    """

    closed: int
    since: int | None = None
    is_fresh: bool = False
    landmark: Landmark | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One round from the point of view of windows: the state before it, and what it has moved.

    `closed` says, by inputs of queries, up to where windows are closed after the round. `behind` names members of sets
    that still have to report windows which end after a tick; it is empty where only open windows matter.
    """

    before: State
    closed: Mapping[Inputs, int]
    positions: Positions
    landmarks: Mapping[str, Landmark] = field(default_factory=dict)
    history_ticks: int = 0
    behind: Mapping[str, int] = field(default_factory=dict)

    def closed_of(self, partial_set: PartialSet) -> int:
        """Return up to where the windows of all queries of a set are closed."""
        return min(self.closed[inputs] for inputs in inputs_of(partial_set))

    def reached(self, planned: Member) -> int:
        """Return the end after which the windows of a member of a set still matter."""
        return self.behind.get(planned.name, self.closed[planned.query.inputs])


@dataclass(frozen=True, slots=True)
class Left:
    """The cells of a set that remain after a round; `span` is set if groups close their windows separately."""

    cells: Cells
    history: History
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """Rows to answer, and where the window of each ends."""

    lanes: Lanes
    window_end: NDArray[np.int64]


class Life(ABC):
    """The windows of one kind, from round to round. Kinds that share sets agree in everything that concerns a set."""

    #: Whether the cells of a set that was not kept can be made from the tuples of past rounds.
    weaves_again = True

    #: Whether its answers may be left to later rounds.
    can_wait = True

    #: Whether tuples that come late are part of cells, because windows that are still open cover them.
    sees_late = True

    # ---- of a set -----------------------------------------------------------------------------------------------

    def in_time(self, window: Window, tuples: Tuples, closed: int) -> Tuples:
        """Return the tuples that may be part of cells, if the set was closed at the tick `closed` before they came."""
        return tuples

    def grid(self, tuples: Tuples, fed: WovenSet, partial_set: PartialSet) -> Grid:
        """Return the cells of a set, over tuples."""
        return tuples.grid(fed.groups, partial_set.edges)

    def merged(self, cells: Cells, fresh: Cells) -> Cells:
        """Return the cells of a set after a round has brought fresh ones."""
        return merge_cells(cells, fresh)

    def joined(self, partial_set: PartialSet, cells: Cells, closed: int) -> Cells:
        """Return the cells once fresh ones are among them; `closed` is where the set was closed before these came."""
        return cells

    @abstractmethod
    def close(self, partial_set: PartialSet, cells: Cells, history: History, turn: Turn) -> Left:
        """Return what is kept of the cells of a set after a round has reported its windows."""

    @abstractmethod
    def needed(self, partial_set: PartialSet, cells: Cells, turn: Turn) -> Mask:
        """Return the cells that may be covered by a window that matters after a round."""

    def folds(self, partial_set: PartialSet) -> bool:
        """Return whether cells that have served are folded together, and not dropped."""
        return False

    def interval(self, after: int, until: int) -> tuple[int, int]:
        """Return `(after, until]` for the ends of the windows that a round reports, if the set is closed at these
        ticks."""
        return after, until

    def told_apart(self, partial_set: PartialSet, state: State) -> tuple[int, ...]:
        """Return the ticks that divide a slice into tuples that are late and tuples that are not."""
        return ()

    def held_from(self, window: Window, seen: int | None) -> int | None:
        """Return the tick from which a new set has what windows need, if tuples up to `seen` are gone; None if it has
        all.
        """
        return None if seen is None else seen + 1

    def located(self, cells: Cells, groups: slice, cohort: Cohort, marks: Marks, span: Span | None) -> Located:
        """Return the cells that each window of the cohort covers, for some groups."""
        bounds = cells.group_bounds[groups.start : groups.stop + 1]
        lanes = locate(cells.starts, bounds, cohort.windows, cohort.after, cohort.until, marks, span)
        window_end = new_array(len(lanes), np.int64)
        shift_queries(lanes.window_start, lanes.bounds, cohort.windows.ranges, window_end)
        count = groups.stop - groups.start
        for query in cohort.windows.landmark_queries:
            rows = slice(int(lanes.bounds[query * count]), int(lanes.bounds[(query + 1) * count]))
            lanes.window_start[rows] = cohort.windows.every_landmark[query]
        for query in cohort.windows.periodic_queries:
            starts_of_query = lanes.window_start[
                int(lanes.bounds[query * count]) : int(lanes.bounds[(query + 1) * count])
            ]
            starts_of_query -= (starts_of_query - cohort.windows.offsets[query]) % cohort.windows.every_period[query]
        return Located(lanes, window_end)

    # ---- of a query ---------------------------------------------------------------------------------------------

    @abstractmethod
    def lost(
        self, partial_set: PartialSet, window: Window, reported: Reported, entries: Behind, state: State
    ) -> tuple[Mask, Mask]:
        """Return which late entries have a closed window of a query, and which have one that is still open."""

    def own_after(self, planned: Asking, state: State, closed: int) -> int:
        """Return the end after which a query reports its windows, which may differ from where its set was closed."""
        after = TICK_MIN if planned.name in state.fresh else closed
        since = state.since.get(planned.name)
        return after if since is None else max(after, self.after_since(planned.query.window, since))

    def after_since(self, window: Window, since: int) -> int:
        """Return the end after which all windows begin at or after `since`."""
        return since + window.range_ticks - 1

    @abstractmethod
    def holds_back(self, window: Window, since: int, closed: int) -> bool:
        """Return whether it still matters that only windows which begin at or after `since` are reported."""

    @abstractmethod
    def first_exact(
        self, partial_set: PartialSet, planned: Member, history: History, state: State, positions: Positions
    ) -> int | None:
        """Return the start of the first window from which all windows of a new query are exact, or None if every window
        is."""

    def question_obstacle(self, window: Window) -> tuple[str, str] | None:
        """Return why a question cannot be answered from what is kept, and what to do."""
        return None

    def last_start(self, window: Window, closed: int) -> int:
        """Return the start of the last window that is closed."""
        last = (closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
        return last * window.slide_ticks + window.offset_ticks
