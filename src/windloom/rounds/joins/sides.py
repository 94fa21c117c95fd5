"""The answers of the sides of a join, for a stretch of window ends at a time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates import neutral
from windloom.aggregates.arrow import arrow_type
from windloom.aggregates.lifted import Combined
from windloom.model.aggregate import Component
from windloom.model.join import Side
from windloom.plan.physical import Member, PartialSet, Plan, SidePlace
from windloom.rounds.cells import Cells, CellsBuilder
from windloom.rounds.cohorts import make_windows
from windloom.rounds.joins.rows import ListedRows, SideRows
from windloom.rounds.tree_cells import TreeCells
from windloom.rounds.windows.life import Landmark


@dataclass(frozen=True, slots=True)
class Ends:
    """Window ends `first, first + slide, …`, `count` of them; the windows of all sides of a join end there."""

    first: int
    slide: int
    count: int

    @property
    def after(self) -> int:
        return self.first - 1

    @property
    def until(self) -> int:
        return self.first + (self.count - 1) * self.slide

    def ticks(self, ordinals: NDArray[np.int32]) -> NDArray[np.int64]:
        ticks: NDArray[np.int64] = self.first + ordinals.astype(np.int64) * self.slide
        return ticks


class HeldTrees:
    """The cells of the trees that sides read, merged to their slices once for all joins and threads."""

    def __init__(self, plan: Plan, cells: Mapping[int, Cells]) -> None:
        self._plan, self._cells = plan, cells
        self._made: dict[tuple[int, int], TreeCells] = {}
        self._lock = threading.Lock()

    def of(self, place: SidePlace) -> TreeCells:
        key = (place.set, place.tree)
        with self._lock:
            if key not in self._made:
                partial_set = self._plan.sets[place.set]
                cells = self._cells.get(place.set)
                self._made[key] = TreeCells(
                    partial_set, partial_set.trees[place.tree], no_cells(partial_set) if cells is None else cells
                )
            return self._made[key]


def no_cells(partial_set: PartialSet) -> Cells:
    """The cells of a set that no tuple is part of."""
    keys = [pa.array([], arrow_type(kind)) for kind in partial_set.group_types]
    built = CellsBuilder(keys, np.zeros(1, np.int64), np.empty(0, np.int64))
    return built.build(neutral(component, 0) for component in partial_set.components)


def side_rows(
    trees_cells: TreeCells, planned: Member, side: Side, ends: Ends, landmarks: Mapping[str, Landmark]
) -> SideRows:
    """Return the rows of a side whose windows end at these ends."""
    windows = make_windows(trees_cells.partial_set, [planned], [(ends.after, ends.until)], landmarks, {})
    groups = slice(0, trees_cells.cells.groups)
    located = trees_cells.located(windows, groups, None)
    combined = trees_cells.combine(windows, groups, located.lanes)
    positions = {
        planned_component.component: i for i, planned_component in enumerate(trees_cells.partial_set.components)
    }
    runs = trees_cells.list_rows(windows, groups, located.lanes).lanes

    def rows_of(component: Component) -> Combined | ListedRows:
        listed = trees_cells.lists(positions[component])
        return combined[positions[component]] if listed is None else ListedRows(listed, runs.lo, runs.hi)

    values = [rows_of(component) for component in side.components]
    ordinals = (located.window_end - ends.first) // ends.slide
    keys = [trees_cells.cells.keys[position] for position in planned.group_positions]
    return SideRows(keys, located.lanes.bounds, ordinals.astype(np.int32), tuple(values))
