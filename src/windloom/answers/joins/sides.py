"""The answers of the sides of a join, for a stretch of window ends at a time."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.columns import WindowValues
from windloom.aggregates.registry import neutral
from windloom.answers.joins.joined_rows import number_keys
from windloom.answers.joins.terms import ListedRows, SideRows
from windloom.answers.trees import TreeCells
from windloom.model.join import Side
from windloom.model.types import arrow_type
from windloom.model.windows import LandmarkWindow
from windloom.plan.plan import Member, PartialSet, Plan, PlannedJoin, SidePlace
from windloom.state.cells import Cells, CellsBuilder, keep_groups
from windloom.state.windows.lifecycle import Landmark, make_windows


@dataclass(frozen=True, slots=True)
class Ends:
    """Window ends `first, first + slide, …`, `count` of them; the windows of all sides of a join end there."""

    first: int
    slide: int
    count: int

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
                partial_set, cells = self._plan.sets[place.set], self._cells.get(place.set)
                cells = no_cells(partial_set) if cells is None else cells
                self._made[key] = TreeCells(partial_set, partial_set.trees[place.tree], cells)
            return self._made[key]


def no_cells(partial_set: PartialSet) -> Cells:
    """Return the cells of a set that no tuple is part of."""
    keys = [pa.array([], arrow_type(kind)) for kind in partial_set.group_types]
    built = CellsBuilder(keys, np.zeros(1, np.int64), np.empty(0, np.int64))
    return built.build(neutral(component, 0) for component in partial_set.components)


def side_rows(
    trees_cells: TreeCells, planned: Member, side: Side, ends: Ends, landmarks: Mapping[str, Landmark]
) -> SideRows:
    """Return the rows of a side whose windows end at these ends."""
    windows = make_windows(trees_cells.partial_set, [planned], [(ends.first - 1, ends.until)], landmarks, {})
    groups = slice(0, trees_cells.cells.groups)
    located = trees_cells.located(windows, groups, None)
    combined = trees_cells.combine(windows, groups, located.lanes)
    positions = {each.component: i for i, each in enumerate(trees_cells.partial_set.components)}
    runs = trees_cells.list_rows(windows, groups, located.lanes).lanes

    values: list[WindowValues | ListedRows] = []
    for place in (positions[component] for component in side.components):
        listed = trees_cells.lists(place)
        values.append(combined[place] if listed is None else ListedRows(listed, runs.lo, runs.hi))
    ordinals = (located.window_end - ends.first) // ends.slide
    keys = [trees_cells.cells.keys[position] for position in planned.group_positions]
    return SideRows(keys, located.lanes.bounds, ordinals.astype(np.int32), tuple(values))


def relation_rows(tree_cells: TreeCells, planned: Member, side: Side, ends: Ends) -> SideRows:
    """Return the rows of a relation at these ends: all that it has, at each of them.

    A version is one slice of cells, without a time. It is placed right before the first end, and read through windows
    that grow from there: each of these ends with a window of the join, and holds every row.
    """
    before = ends.first - ends.slide
    placed = copy(tree_cells)
    placed.cells = replace(tree_cells.cells, starts=np.full(len(tree_cells.cells), before, np.int64))
    window = LandmarkWindow(ends.slide, ends.first % ends.slide)
    source = replace(side.source, window=window)
    growing = replace(planned, query=replace(planned.query, source=source))
    return side_rows(placed, growing, side, ends, {planned.name: Landmark(before, ends.until)})


def with_matches_only(plan: Plan, joins: Sequence[PlannedJoin], trees: Sequence[TreeCells]) -> list[TreeCells]:
    """Return the trees of the sides that all these joins have; relations lose rows whose keys no row of the parent has.

    A relation may have many more rows than match within the windows at hand, and each costs a row per end.
    """
    matching_trees = list(trees)
    for number, side in enumerate(joins[0].join.sides):
        if not side.is_relation or not len(matching_trees[number].cells):
            continue
        wanted = np.zeros(matching_trees[number].cells.groups, np.bool_)
        for join in joins:
            link = next(link for link in join.join.links if link.child == number)
            # Which groups of the child have a key of some group of the parent.
            parent, child = matching_trees[link.parent], matching_trees[number]
            positions = [plan.side(join.sides[number])[2].group_positions for number in (link.parent, link.child)]
            codes, child_codes, keys = number_keys(
                [parent.cells.keys[positions[0][pair.parent]] for pair in link.keys],
                [child.cells.keys[positions[1][pair.child]] for pair in link.keys],
                [pair.null_safe for pair in link.keys],
                (parent.cells.groups, child.cells.groups),
            )
            is_there = np.zeros(keys + 1, np.bool_)  # the last entry is for keys that match nothing: -1
            is_there[codes] = True
            is_there[-1] = False
            wanted |= is_there[child_codes]
        if not wanted.all():
            matching_trees[number] = copy(matching_trees[number])
            matching_trees[number].cells = keep_groups(matching_trees[number].cells, wanted)
    return matching_trees
