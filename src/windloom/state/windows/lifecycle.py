"""The decisions that depend on the kind of window; the step and its parts never ask which kind it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import new_array
from windloom.kernels.lanes import NO_LANDMARK, shift_queries
from windloom.kernels.locate import Lanes, WindowArrays, locate
from windloom.kernels.tuples.grid import Grid
from windloom.kernels.tuples.tuples import Tuples
from windloom.model.aggregate import Aggregate
from windloom.model.arrays import Ints, Mask
from windloom.model.time import TICK_MIN
from windloom.model.windows import Window
from windloom.plan.plan import Asking, Member, PartialSet, Plan, PlannedQuery
from windloom.plan.scans import WovenFeed
from windloom.state.cells import Cells, merge_all
from windloom.state.frontiers import Inputs, LateTuples, inputs_of
from windloom.state.positions import Positions
from windloom.state.state import CellCoverage, State

#: For every group of a set, `(after, until]` for the ends of its windows, if groups close separately.
Span = tuple[Ints, Ints]

#: Starts of marked cells, bounds of their groups, and the cell that each lies in; three empty arrays without marks.
Marks = tuple[Ints, Ints, NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Landmark:
    """The windows of one query, from `start` to every end up to `until`; both are -∞ as long as there is no tuple.

    A side of a join has an `until` once any stream of the join has a tuple, and a `start` once its own has one.
    """

    start: int = TICK_MIN
    until: int = TICK_MIN


@dataclass(frozen=True, slots=True)
class ReportProgress:
    """How far a query had reported its windows before a round: those that ended up to `closed`.

    With `since`, it reports only windows that begin there or later. A fresh query is still to report every such window,
    however long ago it ended. `landmark` is set for windows that grow from one.
    """

    closed: int
    since: int | None = None
    is_fresh: bool = False
    landmark: Landmark | None = None


@dataclass(frozen=True, slots=True)
class RoundBounds:
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
class RetainedCells:
    """The cells of a set that remain after a round; `span` is set if groups close their windows separately."""

    cells: Cells
    history: CellCoverage
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class WindowCells:
    """Rows to answer, and where the window of each ends."""

    lanes: Lanes
    window_end: Ints


class WindowLifecycle(ABC):
    """The windows of one kind, from round to round. Kinds that share sets agree in everything that concerns a set."""

    #: The kind.
    window: ClassVar[type[Window]]

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

    def grid(self, tuples: Tuples, fed: WovenFeed, partial_set: PartialSet) -> Grid:
        """Return the cells of a set, over tuples."""
        return tuples.grid(fed.groups, partial_set.edges)

    def merged(self, cells: Cells, fresh: Cells) -> Cells:
        """Return the cells of a set after a round has brought fresh ones."""
        return merge_all([cells, fresh])

    def joined(self, partial_set: PartialSet, cells: Cells, closed: int) -> Cells:
        """Return the cells once fresh ones are among them; `closed` is where the set was closed before these came."""
        return cells

    def close(self, partial_set: PartialSet, cells: Cells, history: CellCoverage, turn: RoundBounds) -> RetainedCells:
        """Return what is kept of the cells of a set after a round has reported its windows."""
        return RetainedCells(cells, history)

    def needed_from(self, partial_set: PartialSet, turn: RoundBounds) -> int:
        """Return the tick before which no slice begins that a window which matters after a round may cover."""
        return TICK_MIN

    def needed(self, partial_set: PartialSet, cells: Cells, turn: RoundBounds) -> Mask:
        """Return the cells that may be covered by a window that matters after a round."""
        return np.ones(len(cells), np.bool_)

    def folds(self, partial_set: PartialSet) -> bool:
        """Return whether cells that have served are folded together, and not dropped."""
        return False

    def interval(self, after: int, until: int) -> tuple[int, int]:
        """Return `(after, until]` for the ends of the windows that a round reports, if these ticks are its bounds."""
        return after, until

    def lateness_ticks(self, partial_set: PartialSet, state: State) -> tuple[int, ...]:
        """Return the ticks that divide a slice into tuples that are late and tuples that are not."""
        return ()

    def complete_from(self, window: Window, seen: int | None) -> int | None:
        """Return the tick from which a new set lacks nothing, if tuples up to `seen` are gone; None if it has all."""
        return None if seen is None else seen + 1

    def located(self, cells: Cells, groups: slice, cohort: QueryBatch, marks: Marks, span: Span | None) -> WindowCells:
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
            rows = slice(int(lanes.bounds[query * count]), int(lanes.bounds[(query + 1) * count]))
            starts_of_query = lanes.window_start[rows]
            starts_of_query -= (starts_of_query - cohort.windows.offsets[query]) % cohort.windows.every_period[query]
        return WindowCells(lanes, window_end)

    # ---- of a query ---------------------------------------------------------------------------------------------

    @abstractmethod
    def lost(
        self, partial_set: PartialSet, window: Window, reported: ReportProgress, entries: LateTuples, state: State
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

    def holds_back(self, window: Window, since: int, closed: int) -> bool:
        """Return whether it still matters that only windows which begin at or after `since` are reported."""
        return True

    @abstractmethod
    def first_exact(
        self, partial_set: PartialSet, planned: Member, history: CellCoverage, state: State, positions: Positions
    ) -> int | None:
        """Return the start of the first window from which a new query is exact, or None if every window is."""

    def question_obstacle(self, window: Window) -> tuple[str, str] | None:
        """Return why a question cannot be answered from what is kept, and what to do."""
        return None

    def last_start(self, window: Window, closed: int) -> int:
        """Return the start of the last window that is closed."""
        last = (closed - window.offset_ticks - window.range_ticks) // window.slide_ticks
        return last * window.slide_ticks + window.offset_ticks


@dataclass(frozen=True, slots=True)
class BatchPiece:
    """A piece of one answer column: queries `first : last` of a shape run fill it from the same components."""

    first: int
    last: int
    aggregate: Aggregate
    components: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShapeRun:
    """Queries that have one shape, the same grouping columns, and the windows `first : last` of a cohort, in order."""

    first: int
    last: int
    queries: tuple[PlannedQuery, ...]
    query_names: tuple[str, ...]
    names: tuple[str, ...]  # of the table's columns
    columns: tuple[tuple[BatchPiece, ...], ...]  # one for each answer column


@dataclass(frozen=True, slots=True)
class QueryBatch:
    """Consecutive queries of a tree that are answered together, and the arrays that all their blocks share.

    Queries with the same windows share them: arrays have an entry for each of the different windows, as if that was a
    query, and `places` has the entry of each query. `wanted` holds, by component, the entries that need it. Windows end
    in `(after, until]`. `since` is their first start, for kinds of windows whose ends do not determine it.
    """

    windows: WindowArrays
    after: Ints
    until: Ints
    since: Ints
    places: Ints
    wanted: Mapping[int, Ints]
    shapes: tuple[ShapeRun, ...] = ()


def make_windows(
    partial_set: PartialSet,
    queries: Sequence[Member],
    intervals: Sequence[tuple[int, int]],
    landmarks: Mapping[str, Landmark],
    since: Mapping[str, int],
) -> QueryBatch:
    """Return some queries as a batch without shapes; `intervals` are `(after, until]` for the ends of each."""
    rows = []
    for planned, (after, until) in zip(queries, intervals, strict=True):
        window, landmark = planned.query.window, landmarks.get(planned.name)
        start, until = (NO_LANDMARK, until) if landmark is None else (landmark.start, min(until, landmark.until))
        lengths = window.range_ticks, window.slide_ticks, window.offset_ticks, start, window.restart_ticks or 0
        rows.append((*lengths, after, until, since.get(planned.name, TICK_MIN)))
    different = {row: place for place, row in enumerate(dict.fromkeys(rows))}
    places = np.array([different[row] for row in rows], np.int64)
    *arrays, after_each, until_each, since_each = np.array(list(different), np.int64).T.copy()
    wanted: dict[int, set[int]] = {}
    position = {component.component: index for index, component in enumerate(partial_set.components)}
    for planned, place in zip(queries, places.tolist(), strict=True):
        for component in planned.query.components:
            wanted.setdefault(position[component], set()).add(place)
    by_component = {index: np.array(sorted(wanted[index]), np.int64) for index in sorted(wanted)}
    return QueryBatch(WindowArrays(*arrays), after_each, until_each, since_each, places, by_component)


def shape_runs(
    plan: Plan, partial_set: PartialSet, queries: tuple[PlannedQuery, ...], places: Ints
) -> tuple[ShapeRun, ...]:
    """Return the stretches of queries that have one shape, the same grouping columns, and neighbouring windows."""
    position = {planned_component.component: i for i, planned_component in enumerate(partial_set.components)}
    runs = []
    ahead = (places - np.arange(len(places))).tolist()
    kinds = [(planned.shape, planned.group_positions, by) for planned, by in zip(queries, ahead, strict=True)]
    for first, last in _equal_stretches(kinds):
        mine = queries[first:last]
        shape = plan.shapes[mine[0].shape]
        columns = []
        for column in range(len(shape.columns)):
            # Queries may fill a column from different arguments: `sum(a) AS x`, `sum(b) AS x`.
            aggregates = [planned.query.aggregates[planned.columns[column]] for planned in mine]
            pieces = []
            for begin, end in _equal_stretches(aggregates):
                components = tuple(position[component] for component in aggregates[begin].components)
                pieces.append(BatchPiece(begin, end, aggregates[begin], components))
            columns.append(tuple(pieces))
        names = ("window_start", "window_end", *(name for name, _ in shape.groups + shape.columns))
        query_names = tuple(planned.name for planned in mine)
        place = int(places[first])
        runs.append(ShapeRun(place, place + last - first, mine, query_names, names, tuple(columns)))
    return tuple(runs)


def _equal_stretches(values: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Yield the first and last index (excluded) of each stretch of equal values."""
    first = 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[first]:
            yield first, i
            first = i
