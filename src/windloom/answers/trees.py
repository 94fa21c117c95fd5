"""The cells of a tree, and how components are combined over the windows of its queries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.aggregator import ListAggregator, ListWindows, Refuse
from windloom.aggregates.columns import AnyLifted, ComponentColumns, ListColumns, WindowValues
from windloom.aggregates.registry import aggregator_for
from windloom.kernels.families import ADD_INT, AddInt, Columns, Family
from windloom.kernels.lists.lists import Members
from windloom.kernels.locate import Lanes, WindowArrays
from windloom.kernels.merge import append_tails
from windloom.kernels.techniques.registry import find_technique
from windloom.model.aggregate import Aggregate
from windloom.plan.plan import PartialSet, Tree
from windloom.state.cells import Cells, coarsen, running
from windloom.state.windows.lifecycle import Marks, QueryBatch, Span, WindowCells
from windloom.state.windows.registry import life_of


@dataclass(frozen=True, slots=True)
class ListRows:
    """The lanes of a block, and the cells whose lists they read: bounds of groups, starts."""

    bounds: NDArray[np.int64]
    starts: NDArray[np.int64]
    windows: WindowArrays
    lanes: Lanes

    def column(
        self,
        aggregate: Aggregate,
        listed: ListColumns,
        technique: str,
        queries: NDArray[np.int64],
        refuse: Refuse,
    ) -> pa.Array:
        """Return the answers of an aggregate for consecutive queries; `refuse` is told of a list that is too long."""
        aggregator = aggregator_for(aggregate, None)
        assert isinstance(aggregator, ListAggregator)
        groups = len(self.bounds) - 1
        rows = slice(int(self.lanes.bounds[queries[0] * groups]), int(self.lanes.bounds[(queries[-1] + 1) * groups]))
        asked = ListWindows(len(listed.dictionary), len(self.lanes), self.starts, self.windows)
        question = aggregator.question(aggregate, asked)
        find_technique(technique).evaluate(listed.cells, self.bounds, self.lanes, queries, question)
        if isinstance(question, Members) and question.beyond >= 0:
            refuse(question.beyond - rows.start, str(aggregate))
        return aggregator.answer(aggregate, question, listed, rows)


def cell_values(lifted: ComponentColumns) -> WindowValues:
    """Return the values of a component by cell, as those of a window that covers only this cell."""
    return WindowValues(lifted.limbs, None if lifted.valid is None else lifted.valid.value > 0, lifted.dictionary)


class TreeCells:
    """The cells of a set, merged to the slices of one of its trees."""

    def __init__(self, partial_set: PartialSet, tree: Tree, cells: Cells) -> None:
        self.partial_set, self.tree, self.life = partial_set, tree, life_of(partial_set.window)
        if tree.fine_edges != partial_set.edges:
            cells, _ = coarsen(cells, tree.fine_edges)
        self._marks: Marks
        self._running: dict[int, ComponentColumns] = {}
        self._fine: tuple[Cells, NDArray[np.int64]] | None = None  # with marks: cells between them, and runs of slices
        if tree.marks.classes:
            fine, (cells, runs) = cells, coarsen(cells, tree.edges)
            of_run = np.repeat(np.arange(len(cells), dtype=np.int32), np.diff(runs))
            self._marks = (fine.starts, fine.group_bounds, of_run)
            self._fine = fine, runs
            wanted = {component for planned in tree.queries for component in planned.query.components}
            for index, planned_component in enumerate(partial_set.components):
                lifted = fine.lifted[index]
                if planned_component.component in wanted and isinstance(lifted, ComponentColumns):
                    self._running[index] = running(lifted, runs)
        else:
            self._marks = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
        self.cells = cells

    def located(self, cohort: QueryBatch, groups: slice, span: Span | None) -> WindowCells:
        """Return the cells that each window of the part covers, for some groups."""
        own_span = None if span is None else (span[0][groups], span[1][groups])
        return self.life.located(self.cells, groups, cohort, self._marks_of(groups), own_span)

    def combine(self, cohort: QueryBatch, groups: slice, lanes: Lanes) -> dict[int, WindowValues]:
        """Return every component that the queries need; it is undefined in rows of queries that do not need it.

        Components whose cells hold lists are not among them: they are read by `lists` and `list_rows`.
        """
        bounds = self.cells.group_bounds[groups.start : groups.stop + 1]
        combined = {}
        for index, wanted in cohort.wanted.items():
            technique = self.tree.techniques[index]
            lifted, tails = self.cells.lifted[index], self._running.get(index)
            if isinstance(lifted, ListColumns):
                continue
            family = self.partial_set.components[index].family
            marks_of_limbs = [None] * len(lifted.limbs) if tails is None else tails.limbs
            limbs = tuple(
                self._evaluate(technique, family, column, marks, bounds, lanes, wanted)
                for column, marks in zip(lifted.limbs, marks_of_limbs, strict=True)
            )
            valid = None
            if lifted.valid is not None:
                marks = None if tails is None else tails.valid
                counting = "recalculate" if technique == "recalculate" else "prefix_ring"
                counted = self._evaluate(counting, ADD_INT, lifted.valid, marks, bounds, lanes, wanted)
                assert isinstance(counted, AddInt)
                valid = counted.value > 0
            combined[index] = WindowValues(limbs, valid, lifted.dictionary)
        return combined

    def list_rows(self, cohort: QueryBatch, groups: slice, lanes: Lanes) -> ListRows:
        """Return the rows in the form in which lists are read."""
        bounds = self.cells.group_bounds[groups.start : groups.stop + 1]
        if self._fine is None:
            return ListRows(bounds, self.cells.starts, cohort.windows, lanes)
        # Lists have no running values at marks, so the windows are read over the finer cells between marks.
        starts, mark_bounds, _ = self._marks_of(groups)
        lo, hi = self._fine[1][lanes.lo].astype(np.int32), lanes.tail + np.int32(1)
        lanes = replace(lanes, lo=lo, hi=hi, runs=np.empty(0, np.int64))  # runs are of the coarse cells
        return ListRows(mark_bounds, starts, cohort.windows, lanes)

    def lists(self, component: int) -> ListColumns | None:
        """Return the cells whose lists a component reads; None if its cells hold no lists."""
        cells = self.cells if self._fine is None else self._fine[0]
        lifted: AnyLifted = cells.lifted[component]
        return lifted if isinstance(lifted, ListColumns) else None

    def _marks_of(self, groups: slice) -> Marks:
        starts, bounds, cells = self._marks
        return (starts, bounds[groups.start : groups.stop + 1], cells) if len(starts) else self._marks

    def _evaluate(
        self,
        technique: str,
        family: Family,
        cells: Columns,
        marks: Columns | None,
        bounds: NDArray[np.int64],
        lanes: Lanes,
        queries: NDArray[np.int64],
    ) -> Columns:
        out = family.empty(len(lanes))
        find_technique(technique).evaluate(cells, bounds, lanes, queries, out)
        if marks is not None:
            groups = len(bounds) - 1
            for query in queries:
                append_tails(out, marks, lanes.tail, lanes.bounds[query * groups], lanes.bounds[(query + 1) * groups])
        return out
