"""The cells of a tree, and how components are combined over the windows of its queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.aggregates.lifted import AnyLifted, Combined, Lifted
from windloom.aggregates.listed import Listed
from windloom.kernels.cells.locate import Lanes
from windloom.kernels.cells.merge import append_tails
from windloom.kernels.families.algebra import ADD_INT, AddInt, Columns, Family
from windloom.kernels.techniques.registry import find_technique
from windloom.plan.physical import PartialSet, Tree
from windloom.rounds.cells import Cells, coarsen, running
from windloom.rounds.cohorts import Cohort
from windloom.rounds.holistic import ListRows
from windloom.rounds.windows.life import Located, Marks, Span
from windloom.rounds.windows.registry import life_of


class TreeCells:
    """The cells of a set, merged to the slices of one of its trees."""

    def __init__(self, partial_set: PartialSet, tree: Tree, cells: Cells) -> None:
        self.partial_set, self.tree, self.life = partial_set, tree, life_of(partial_set.window)
        if tree.fine_edges != partial_set.edges:
            cells, _ = coarsen(cells, tree.fine_edges)
        self._marks: Marks
        self._running: dict[int, Lifted] = {}
        self._fine: tuple[Cells, NDArray[np.int64]] | None = None  # with marks: cells between them, and runs of slices
        if tree.marks.classes:
            fine, (cells, runs) = cells, coarsen(cells, tree.edges)
            of_run = np.repeat(np.arange(len(cells), dtype=np.int32), np.diff(runs))
            self._marks = (fine.starts, fine.group_bounds, of_run)
            self._fine = fine, runs
            wanted = {component for planned in tree.queries for component in planned.query.components}
            for index, planned_component in enumerate(partial_set.components):
                lifted = fine.lifted[index]
                if planned_component.component in wanted and isinstance(lifted, Lifted):
                    self._running[index] = running(lifted, runs)
        else:
            self._marks = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
        self.cells = cells

    def located(self, cohort: Cohort, groups: slice, span: Span | None) -> Located:
        """Return the cells that each window of the part covers, for some groups."""
        own_span = None if span is None else (span[0][groups], span[1][groups])
        return self.life.located(self.cells, groups, cohort, self._marks_of(groups), own_span)

    def combine(self, cohort: Cohort, groups: slice, lanes: Lanes) -> dict[int, Combined]:
        """Return every component that the queries need, over all rows; rows of queries that do not need it stay
        undefined.

        Components whose cells hold lists are not among them: they are read by `lists` and `list_rows`.
        """
        bounds = self.cells.group_bounds[groups.start : groups.stop + 1]
        combined = {}
        for index, wanted in cohort.wanted.items():
            technique = self.tree.techniques[index]
            lifted, tails = self.cells.lifted[index], self._running.get(index)
            if isinstance(lifted, Listed):
                continue
            family = self.partial_set.components[index].family
            limbs = tuple(
                self._evaluate(
                    technique, family, column, None if tails is None else tails.limbs[i], bounds, lanes, wanted
                )
                for i, column in enumerate(lifted.limbs)
            )
            valid = None
            if lifted.valid is not None:
                marks = None if tails is None else tails.valid
                counting = "recalculate" if technique == "recalculate" else "prefix_ring"
                counted = self._evaluate(counting, ADD_INT, lifted.valid, marks, bounds, lanes, wanted)
                assert isinstance(counted, AddInt)
                valid = counted.value > 0
            combined[index] = Combined(limbs, valid, lifted.dictionary)
        return combined

    def list_rows(self, cohort: Cohort, groups: slice, lanes: Lanes) -> ListRows:
        """Return the rows in the form in which lists are read."""
        bounds = self.cells.group_bounds[groups.start : groups.stop + 1]
        rows = ListRows(bounds, self.cells.starts, cohort.windows, lanes)
        if self._fine is None:
            return rows
        starts, mark_bounds, _ = self._marks_of(groups)
        return rows.on_marks(self._fine[1], mark_bounds, starts)

    def lists(self, component: int) -> Listed | None:
        """Return the cells whose lists a component reads; None if its cells hold no lists."""
        cells = self.cells if self._fine is None else self._fine[0]
        lifted: AnyLifted = cells.lifted[component]
        return lifted if isinstance(lifted, Listed) else None

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
