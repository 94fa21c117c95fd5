"""Answers: the rows of every query of every tree, computed block by block as Arrow tables.

A block holds the rows of a few groups and queries, of one shape. Blocks are made one after another, so that memory is
bounded by the block size and not by the number of answers; whoever consumes them may keep or write them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.columns import WindowValues
from windloom.aggregates.registry import lower
from windloom.answers.blocks import Block, RefusedAnswer, group_column, out_of_range, run_ahead, too_long
from windloom.answers.joins.joins import join_folds, join_makers
from windloom.answers.rows.row_queries import summary_blocks
from windloom.answers.trees import ListRows, TreeCells
from windloom.kernels.lanes import NO_LANDMARK
from windloom.kernels.tuples.sorted_tuples import SortedTuples
from windloom.model.types import arrow_type
from windloom.plan.plan import Asking, FeedPlace, PartialSet, Plan, PlannedJoin, PlannedQuery, Tree
from windloom.state.cells import Cells, describe_group, merge_all
from windloom.state.tuple_store import ReportedWindows
from windloom.state.windows.lifecycle import BatchPiece, Landmark, QueryBatch, ShapeRun, Span, make_windows, shape_runs

#: The size that a block aims at, in rows: large enough to amortise the calls, small enough to stay near the caches.
BLOCK_ROWS = 1 << 20
#: The most rows by which trees that are answered at the same time may be ahead of the one being read.
ROWS_AHEAD = 4 << 20

#: Wraps the maker of the blocks of queries that are answered together; the name is that of the first of them.
Timed = Callable[[str, Callable[[], Iterator[Block]]], Iterator[Block]]


def untimed(name: str, make: Callable[[], Iterator[Block]]) -> Iterator[Block]:
    return make()


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one step: for each query, by name, the windows that end in `(after, until]`.

    `earlier` has the answers of windows that closed before late tuples came; they are computed from other cells.
    """

    plan: Plan
    cells: Mapping[int, Cells]  # by number of the partial set
    intervals: Mapping[str, tuple[int, int]]  # by name of the query; a query without an entry reports nothing
    landmarks: Mapping[str, Landmark] = field(default_factory=dict)  # by name of the query
    spans: Mapping[int, Span] = field(default_factory=dict)  # by number of the set; only sets whose tuples are counted
    since: Mapping[str, int] = field(default_factory=dict)  # by name of the query, the first start that it reports
    earlier: tuple[Answers, ...] = ()
    rows: tuple[tuple[ReportedWindows, Cells | None], ...] = ()  # row queries, with the cells of their aggregates
    keyed: Mapping[FeedPlace, SortedTuples] = field(default_factory=dict)  # tuples that folds read instead of cells

    def blocks(
        self,
        rows: int = BLOCK_ROWS,
        threads: int = 1,
        *,
        without: Collection[int] = (),
        timed: Timed = untimed,
    ) -> Iterator[Block]:
        """Return every answer once, except of joins in `without` (by place), in an order that never changes.

        `timed` gets each maker of blocks, with the name of its first query, and may measure it.
        """
        makers = [
            partial(timed, name, make)
            for each in (*self.earlier, self)
            for name, make in each._makers(rows, threads, without)
        ]
        return run_ahead(makers, threads, lambda block: block.table.num_rows, ROWS_AHEAD)

    def without(self, names: Collection[str]) -> Answers:
        """Return these answers without those of some queries."""
        if not names:
            return self
        return replace(
            self,
            intervals={name: interval for name, interval in self.intervals.items() if name not in names},
            earlier=tuple(each.without(names) for each in self.earlier),
            rows=tuple(asked for asked in self.rows if asked[0].planned.name not in names),
        )

    def of_summaries(self, timed: Timed = untimed) -> Iterator[Block]:
        """Yield only the answers of aggregates over rows, which buckets do not make; `blocks` has them too."""
        for name, make in self._summary_makers():
            yield from timed(name, make)

    def folds(self, divided: Collection[int]) -> dict[int, Cells]:
        """Return the folded cells, by place, of joins that other buckets fold in part."""
        parts_by_join: dict[int, list[Cells]] = {}
        for each in (*self.earlier, self):
            folded = join_folds(each.plan, each.cells, each.interval, each.landmarks, each._asked(divided))
            for number, cells in folded.items():
                parts_by_join.setdefault(number, []).append(cells)
        return {number: merge_all(parts) for number, parts in parts_by_join.items()}

    def interval(self, planned: Asking) -> tuple[int, int]:
        """Return `(after, until]` for the ends of the windows that a query reports."""
        return self.intervals.get(planned.name, (0, 0))

    def _makers(
        self, rows: int, threads: int, without: Collection[int]
    ) -> Iterator[tuple[str, Callable[[], Iterator[Block]]]]:
        """Yield a maker of blocks for each lot of queries answered together, with the name of its first query."""
        for each in self.plan.sets:
            cells = self.cells.get(each.number)
            if cells is None or not len(cells):
                continue
            for tree in each.trees:
                if any(map(self._reports, tree.answered)):
                    yield tree.answered[0].name, partial(self._tree_blocks, each, tree, cells, rows)
        asked = self._asked(number for number in range(len(self.plan.joins)) if number not in without)
        yield from join_makers(self.plan, self.cells, self.interval, self.landmarks, asked, threads, self.keyed)
        yield from self._summary_makers()

    def _summary_makers(self) -> Iterator[tuple[str, Callable[[], Iterator[Block]]]]:
        for asked, summaries in self.rows:
            if summaries is not None:
                yield asked.planned.name, partial(summary_blocks, self.plan, asked.planned, summaries, asked.span)

    def _asked(self, joins: Iterable[int]) -> list[int]:
        """Return the joins, by place, that report something."""
        return [number for number in joins if self._reports(self.plan.joins[number])]

    def _reports(self, planned: PlannedQuery | PlannedJoin) -> bool:
        after, until = self.interval(planned)
        return after < until

    def _tree_blocks(self, partial_set: PartialSet, tree: Tree, cells: Cells, rows: int) -> Iterator[Block]:
        return _TreeAnswers(self, partial_set, tree, cells).blocks(rows)


class _TreeAnswers:
    """The answers of one tree over the cells of its set."""

    def __init__(self, answers: Answers, partial_set: PartialSet, tree: Tree, cells: Cells) -> None:
        self.answers, self.plan, self.partial_set, self.queries = answers, answers.plan, partial_set, tree.answered
        self.held, self.span = TreeCells(partial_set, tree, cells), answers.spans.get(partial_set.number)
        self.tree, self.cells = tree, self.held.cells
        self.cohorts: dict[tuple[int, int], QueryBatch] = {}

    def blocks(self, rows: int) -> Iterator[Block]:
        every = slice(0, len(self.queries))
        for groups in _cut_by_size(self._estimated_rows(every, axis=0), rows):
            one_group = slice(groups.start, groups.start + 1)
            if groups != one_group:
                yield from self._answer(groups, every)
                continue
            # A technique derives its structures from the group's cells once per cohort, so cohorts must outweigh that.
            cells = int(np.diff(self.cells.group_bounds[groups.start : groups.stop + 1])[0])
            for queries in _cut_by_size(self._estimated_rows(groups, axis=1), max(rows, 4 * cells)):
                yield from self._answer(groups, queries)

    def _estimated_rows(self, chosen: slice, axis: int) -> NDArray[np.float64]:
        """Return upper bounds of rows: by group over all queries (axis 0), or by query over the groups `chosen`.

        A query with the windows of an earlier one adds none.
        """
        bounds, starts = self.cells.group_bounds, self.cells.starts
        groups = slice(0, len(bounds) - 1) if axis == 0 else chosen
        windows = [planned.query.window for planned in self.queries]
        length = np.array([window.extent_ticks or window.range_ticks for window in windows], np.float64)[:, None]
        slide = np.array([window.slide_ticks for window in windows], np.float64)[:, None]
        whole = self._cohort(slice(0, len(windows)))
        places = whole.places[:, None]
        is_new = places > np.maximum.accumulate(np.concatenate([[[-1]], places[:-1]]))
        grows = whole.windows.every_landmark[places] != NO_LANDMARK
        totals = []
        step = max(1, (1 << 20) // len(windows))
        for first in range(groups.start, groups.stop, step):
            edge = bounds[first : min(first + step, groups.stop) + 1]
            counts = np.diff(edge)
            covered = starts[np.maximum(edge[1:] - 1, edge[:-1])] - starts[np.minimum(edge[:-1], len(starts) - 1)]
            rows = np.minimum((covered + length) / slide + 1, counts * (length / slide + 1))
            if grows.any():
                # A group has a row for every end from its first cell on, even if it has fallen silent.
                begin = np.maximum(starts[np.minimum(edge[:-1], len(starts) - 1)], whole.after[places])
                ends = (whole.until[places] - begin) / slide + 1
                rows = np.where(grows, np.maximum(ends, 0), rows)
            rows = rows * (counts > 0) * is_new
            totals.append(rows.sum(axis=axis))
        return np.concatenate(totals)

    def _cohort(self, queries: slice) -> QueryBatch:
        """Return the cohort that all blocks of these queries share; made once."""
        key = (queries.start, queries.stop)
        if key not in self.cohorts:
            planned = self.queries[queries]
            intervals = [self.answers.interval(planned_query) for planned_query in planned]
            windows = make_windows(self.partial_set, planned, intervals, self.answers.landmarks, self.answers.since)
            self.cohorts[key] = replace(
                windows, shapes=shape_runs(self.plan, self.partial_set, planned, windows.places)
            )
        return self.cohorts[key]

    def _answer(self, groups: slice, queries: slice) -> Iterator[Block]:
        cohort = self._cohort(queries)
        located = self.held.located(cohort, groups, self.span)
        lanes, window_end = located.lanes, located.window_end
        if not len(lanes):
            return
        combined = self.held.combine(cohort, groups, lanes)
        list_rows = self.held.list_rows(cohort, groups, lanes)
        count = groups.stop - groups.start
        keys = [key.slice(groups.start, count) for key in self.cells.keys]
        made = _Made({})
        for run in cohort.shapes:
            lane_bounds = lanes.bounds[run.first * count : run.last * count + 1]
            rows = slice(int(lane_bounds[0]), int(lane_bounds[-1]))
            if rows.stop > rows.start:
                yield self._block(
                    run,
                    lane_bounds - rows.start,
                    lanes.window_start[rows],
                    window_end[rows],
                    keys,
                    combined,
                    rows.start,
                    list_rows,
                    made,
                )

    def _block(
        self,
        run: ShapeRun,
        lane_bounds: NDArray[np.int64],
        window_start: NDArray[np.int64],
        window_end: NDArray[np.int64],
        keys: list[pa.Array],
        combined: dict[int, WindowValues],
        first_row: int,
        list_rows: ListRows,
        made: _Made,
    ) -> Block:
        shape = self.plan.shapes[run.queries[0].shape]
        groups = (len(lane_bounds) - 1) // len(run.queries)
        bounds = lane_bounds[::groups]

        def refuse(make: RefusedAnswer, row: int, value: str) -> None:
            query = run.queries[int(np.searchsorted(bounds, row, side="right")) - 1].query
            group = describe_group(keys, (int(np.searchsorted(lane_bounds, row, side="right")) - 1) % groups)
            raise make(query, (int(window_start[row]), int(window_end[row])), group, value)

        instant = arrow_type(shape.time)
        arrays = [pa.array(window_start).view(instant), pa.array(window_end).view(instant)]
        arrays += [
            made.once((run.first, run.last, i), partial(group_column, keys[i], lane_bounds))
            for i in run.queries[0].group_positions
        ]
        for pieces, (_, kind) in zip(run.columns, shape.columns, strict=True):
            column = partial(
                self._column, run, pieces, arrow_type(kind), bounds, combined, first_row, list_rows, refuse
            )
            arrays.append(made.once((run.first, run.last, kind, pieces), column))
        table = pa.Table.from_arrays(arrays, names=run.names)
        return Block(run.queries[0].shape, run.query_names, bounds, table)

    def _column(
        self,
        run: ShapeRun,
        pieces: tuple[BatchPiece, ...],
        kind: pa.DataType,
        bounds: NDArray[np.int64],
        combined: dict[int, WindowValues],
        first_row: int,
        list_rows: ListRows,
        refuse: Callable[[RefusedAnswer, int, str], None],
    ) -> pa.Array:
        """Return one answer column; functions that compute with different types fill it together."""
        arrays = []
        for piece in pieces:
            rows = slice(int(bounds[piece.first]), int(bounds[piece.last]))
            refuse_long, refuse_here = (
                partial(lambda make, begin, row, value: refuse(make, row + begin, value), make, rows.start)
                for make in (too_long, out_of_range)
            )
            listed = self.held.lists(piece.components[0])
            if listed is not None:
                technique = self.tree.techniques[piece.components[0]]
                queries = run.first + np.arange(piece.first, piece.last)
                arrays.append(list_rows.column(piece.aggregate, listed, technique, queries, refuse_long).cast(kind))
                continue
            argument = self.partial_set.components[piece.components[0]].type_for(piece.aggregate)
            own_rows = slice(first_row + rows.start, first_row + rows.stop)
            parts = [rows_of(combined[i], own_rows) for i in piece.components]
            arrays.append(lower(piece.aggregate, argument, parts, refuse_here).cast(kind))
        return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


@dataclass(frozen=True, slots=True)
class _Made:
    """Columns that are made already; queries that share windows may share them, too."""

    columns: dict[Hashable, pa.Array]

    def once(self, key: Hashable, make: Callable[[], pa.Array]) -> pa.Array:
        if key not in self.columns:
            self.columns[key] = make()
        return self.columns[key]


def rows_of(combined: WindowValues, rows: slice) -> WindowValues:
    """Return some rows of a component."""
    limbs = tuple(type(limb)(*(column[rows] for column in limb)) for limb in combined.limbs)
    return WindowValues(limbs, None if combined.valid is None else combined.valid[rows], combined.dictionary)


def _cut_by_size(sizes: NDArray[np.float64], limit: int) -> Iterator[slice]:
    """Yield consecutive stretches whose sizes add up to at most `limit`; a larger one stands alone."""
    first, total = 0, 0.0
    for i, size in enumerate(sizes.tolist()):
        if i > first and total + size > limit:
            yield slice(first, i)
            first, total = i, 0.0
        total += size
    if first < len(sizes):
        yield slice(first, len(sizes))
