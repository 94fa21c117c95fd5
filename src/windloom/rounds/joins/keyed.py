"""Counts the join keys of the sides of joins, for statistics: a sample by hash where sides have many groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.lists.murmur import spark_hash
from windloom.plan.links import MOST_COUNTED, KeyHistogram, LinkRound
from windloom.plan.physical import Plan, PlannedJoin
from windloom.rounds.cells import Cells

#: Sides with more groups are sampled: of their keys one in two, in four, …
MOST_GROUPS = 1 << 15

#: Hashes of keys, ascending, and how many groups have each.
_Counted = tuple[NDArray[np.int64], NDArray[np.int64]]


def count_links(plan: Plan, cells: Mapping[int, Cells]) -> dict[tuple[int, int], LinkRound]:
    """By place of the join in the plan and number of the link, over the groups that are held."""
    hashes: dict[tuple[int, tuple[int, ...]], NDArray[np.int64]] = {}

    def hashed(join: PlannedJoin, side: int, places: tuple[int, ...], safe: tuple[bool, ...]) -> NDArray[np.int64]:
        number = join.sides[side].set
        positions = tuple(plan.side(join.sides[side])[2].group_positions[place] for place in places)
        key = (number, positions)
        if key not in hashes:
            hashes[key] = _hashes(cells.get(number), positions, safe)
        return hashes[key]

    found = {}
    for place, join in enumerate(plan.joins):
        for number, link in enumerate(join.join.links):
            safe = tuple(pair.null_safe for pair in link.keys)
            parent = hashed(join, link.parent, tuple(pair.parent for pair in link.keys), safe)
            child = hashed(join, link.child, tuple(pair.child for pair in link.keys), safe)
            found[place, number] = _link(parent, child)
    return found


def _hashes(cells: Cells | None, positions: tuple[int, ...], safe: tuple[bool, ...]) -> NDArray[np.int64]:
    """Of the keys of all groups that can match anything."""
    if cells is None or not cells.groups:
        return np.zeros(0, np.int64)
    columns = [cells.keys[position] for position in positions]
    found = spark_hash(columns, cells.groups)
    for column, is_safe in zip(columns, safe, strict=True):
        if column.null_count and not is_safe:
            found = found[column.is_valid().to_numpy(zero_copy_only=False)]
    return found


def _link(parent: NDArray[np.int64], child: NDArray[np.int64]) -> LinkRound:
    factor = 1
    while max(len(parent), len(child)) > factor * MOST_GROUPS:
        factor *= 2
    if factor > 1:
        parent, child = parent[parent % factor == 0], child[child % factor == 0]
    mine, its = (np.unique(side, return_counts=True) for side in (parent, child))
    _, left, right = np.intersect1d(mine[0], its[0], assume_unique=True, return_indices=True)
    pairs = int((mine[1][left].astype(np.int64) * its[1][right]).sum()) * factor
    return LinkRound(_histogram(mine, factor), _histogram(its, factor), pairs, int(mine[1][left].sum()) * factor)


def _histogram(counted: _Counted, factor: int) -> KeyHistogram:
    keys, groups = counted
    if len(keys) <= MOST_COUNTED and factor == 1:
        order = np.lexsort((keys, -groups))
    else:
        order = np.argsort(-groups, kind="stable")[:MOST_COUNTED]
    most = tuple((int(keys[place]), int(groups[place])) for place in order)
    rest = int(groups.sum()) - sum(one for _, one in most)
    return KeyHistogram(most, rest * factor, (len(keys) - len(most)) * factor)
