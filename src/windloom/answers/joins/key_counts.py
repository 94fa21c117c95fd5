"""Counts the join keys of the sides of joins, for statistics: a sample by hash where sides have many groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.kernels.hashing import spark_hash
from windloom.plan.plan import Plan, PlannedJoin
from windloom.state.cells import Cells
from windloom.statistics.observations import MOST_COUNTED, KeyHistogram, LinkRound
from windloom.weave.sorted_tuples import KeyedSides

#: Of sides with more groups than this, only a sample of the keys is counted: one in two, one in four, …
MOST_GROUPS = 1 << 15
_BUCKETS = (1 << 16) - 1

#: Hashes of keys, and how many groups have each.
_Counted = tuple[NDArray[np.int64], NDArray[np.int64]]


def count_links(plan: Plan, cells: Mapping[int, Cells], tuples: KeyedSides) -> dict[tuple[int, int], LinkRound]:
    """Return counts of keys over the groups that are held, by place of the join in the plan and number of the link."""
    hashes: dict[object, NDArray[np.int64]] = {}
    of_keys: dict[object, _Counted] = {}

    def hashed(join: PlannedJoin, side: int, places: tuple[int, ...], safe: tuple[bool, ...]) -> NDArray[np.int64]:
        number = join.sides[side].set
        positions = tuple(plan.side(join.sides[side])[2].group_positions[place] for place in places)
        place = tuples.place(join, side)
        key = (number, positions, safe, place)
        if key not in hashes:
            hashes[key] = (
                _hashes(cells.get(number), positions, safe) if place is None else np.repeat(*keyed(join, side, *safe))
            )
        return hashes[key]

    def keyed(join: PlannedJoin, side: int, is_safe: bool) -> _Counted:
        place, number = join.tuples[side], join.sides[side].set
        if (place, number, is_safe) not in of_keys:
            groups = tuples.grouped(place, number).groups
            # Keys that match nothing are left out.
            keys = tuples.keys(place, number)
            wanted = _matchable([keys], (is_safe,), len(keys)) & (groups > 0)
            of_keys[place, number, is_safe] = (spark_hash([keys], len(keys))[wanted], groups[wanted])
        return of_keys[place, number, is_safe]

    counts_by_link = {}
    counted: dict[tuple[int, int], LinkRound] = {}  # many joins link the same sides
    for place, join in enumerate(plan.joins):
        for number, link in enumerate(join.join.links):
            safe = tuple(pair.null_safe for pair in link.keys)
            if tuples.of(join) is not None:
                mine, its = keyed(join, link.parent, *safe), keyed(join, link.child, *safe)
                if (id(mine), id(its)) not in counted:
                    counted[id(mine), id(its)] = linked_keys(mine, its)
                counts_by_link[place, number] = counted[id(mine), id(its)]
                continue
            parent = hashed(join, link.parent, tuple(pair.parent for pair in link.keys), safe)
            child = hashed(join, link.child, tuple(pair.child for pair in link.keys), safe)
            both = id(parent), id(child)
            if both not in counted:
                counted[both] = linked(parent, child)
            counts_by_link[place, number] = counted[both]
    return counts_by_link


def with_relations(
    plan: Plan, added: Mapping[tuple[int, int], LinkRound], whole: Mapping[tuple[int, int], LinkRound]
) -> dict[tuple[int, int], LinkRound]:
    """Return what all buckets counted together. Every bucket has all of a relation, so its counts come from `whole`."""
    counts_by_link = dict(added)
    for (place, number), link in added.items():
        join = plan.joins[place].join
        if join.sides[join.links[number].parent].is_relation:
            counts_by_link[place, number] = whole[place, number]
        elif join.sides[join.links[number].child].is_relation:
            counts_by_link[place, number] = replace(link, child=whole[place, number].child)
    return counts_by_link


def _hashes(cells: Cells | None, positions: tuple[int, ...], safe: tuple[bool, ...]) -> NDArray[np.int64]:
    """Return hashes of the keys of all groups that can match anything."""
    if cells is None or not cells.groups:
        return np.zeros(0, np.int64)
    columns = [cells.keys[position] for position in positions]
    return spark_hash(columns, cells.groups)[_matchable(columns, safe, cells.groups)]


def _matchable(columns: Sequence[pa.Array], safe: Sequence[bool], groups: int) -> NDArray[np.bool_]:
    matchable = np.ones(groups, np.bool_)
    for column, is_safe in zip(columns, safe, strict=True):
        if column.null_count and not is_safe:
            matchable &= column.is_valid().to_numpy(zero_copy_only=False)
    return matchable


def linked_keys(parent: _Counted, child: _Counted) -> LinkRound:
    """Return the counts of two sides, given the hashes of their keys and how many groups each key has."""
    if max(len(parent[0]), len(child[0])) > MOST_GROUPS:
        return linked(np.repeat(*parent), np.repeat(*child))
    sides = []
    for keys, groups in (parent, child):  # keys with equal hashes are counted together
        hashes, bucket = np.unique(keys, return_inverse=True)
        sides.append((hashes, np.bincount(bucket, groups, len(hashes)).astype(np.int64)))
    return _counted(sides[0], sides[1], 1)


def linked(parent: NDArray[np.int64], child: NDArray[np.int64]) -> LinkRound:
    """Return the counts of two sides, given the hashes of the keys of their groups.

    The keys with the most groups are counted exactly, the others by a sample: a few keys often have most groups.
    """
    distinct: Callable[[NDArray[np.int64]], Any] = partial(np.unique, return_counts=True)
    factor = 1
    while max(len(parent), len(child)) > factor * MOST_GROUPS:
        factor *= 2
    if factor == 1:
        return _counted(distinct(parent), distinct(child), 1)
    heavy = np.union1d(_heavy(parent), _heavy(child))
    apart = [np.isin(side & _BUCKETS, heavy) for side in (parent, child)]
    exact = _counted(distinct(parent[apart[0]]), distinct(child[apart[1]]), 1)
    mine, its = (side[~is_heavy & (side % factor == 0)] for side, is_heavy in zip((parent, child), apart, strict=True))
    return exact + _counted(distinct(mine), distinct(its), factor)


def _heavy(hashes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the buckets of hashes that have the most groups."""
    groups = np.bincount(hashes & _BUCKETS, minlength=_BUCKETS + 1)
    wanted = 2 * MOST_COUNTED
    # Most buckets have equally many groups. Then sorting places instead of numbers takes ten times as long, and so does
    # a partition.
    least = np.sort(groups)[-wanted]
    above = np.flatnonzero(groups > least)
    return np.concatenate([above, np.flatnonzero(groups == least)[: wanted - len(above)]])


def _counted(mine: _Counted, its: _Counted, factor: int) -> LinkRound:
    """Return the counts of two sides of which only one key in `factor` is looked at."""
    _, left, right = np.intersect1d(mine[0], its[0], assume_unique=True, return_indices=True)
    pairs = int((mine[1][left].astype(np.int64) * its[1][right]).sum()) * factor
    matched = int(mine[1][left].sum()) * factor
    histograms = []
    for keys, groups in (mine, its):
        order = np.lexsort((keys, -groups))[: MOST_COUNTED if factor == 1 else 0]
        most = tuple((int(keys[index]), int(groups[index])) for index in order)
        rest = int(groups.sum()) - sum(groups_of_key for _, groups_of_key in most)
        histograms.append(KeyHistogram(most, rest * factor, (len(keys) - len(most)) * factor))
    return LinkRound(histograms[0], histograms[1], pairs, matched)
