"""The rows of a relation as a side of joins: those of its version that can match, at every end.

A version is one slice of cells, without a time. For a stretch of ends it is placed right before the first of them, and
read through windows that grow from there: each of these ends with a window of the join, and holds every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from windloom.model.join import Side
from windloom.model.windows import LandmarkWindow
from windloom.plan.physical import Member, Plan, PlannedJoin
from windloom.rounds.cells import keep_groups
from windloom.rounds.joins.keys import number_keys
from windloom.rounds.joins.rows import SideRows
from windloom.rounds.joins.sides import Ends, side_rows
from windloom.rounds.tree_cells import TreeCells
from windloom.rounds.windows.life import Landmark


def relation_rows(tree_cells: TreeCells, planned: Member, side: Side, ends: Ends) -> SideRows:
    """Return the rows of a relation at these ends: all that it has, at each of them."""
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
