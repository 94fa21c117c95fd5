"""Which joins of a batch run may be folded straight from tuples, and what their scans put in order for that.

Folding tuples saves making cells of them. Only tuples of files that the driver reads itself are put in order: what
comes from Spark takes much longer to arrive than cells take to be made. Joins that share a slice matrix are decided on
together, and once more, for the tuples at hand, when the plan runs: see `rounds.keyed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.kernels.tuples.sorted_tuples import MOST_VALUES
from windloom.model.aggregate import COUNT_STAR
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.types import TypeKind
from windloom.optimizer.joins.plan import pairings
from windloom.plan.plan import FeedPlace, PartialSet, PlannedJoin, Tree
from windloom.plan.scans import KeyedFeed, KeyedSet, Scan, WovenScan
from windloom.slicing.edges import EdgeSet

#: The tuples of one feed: their scan, the column that they are in order of, and their bit.
_Order = tuple[int, int, int | None]


@dataclass(frozen=True, slots=True)
class _Side:
    """The input of a family of joins from one side; columns are given by position."""

    order: _Order
    set: int
    trees: frozenset[int]
    outs: tuple[int, ...]
    values: tuple[int, ...]
    counted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _TupleFoldFamily:
    joins: Sequence[PlannedJoin]
    sides: tuple[_Side, _Side]


def with_tuples(
    joins: Sequence[PlannedJoin], sets: Sequence[PartialSet], scans: Sequence[Scan]
) -> tuple[tuple[PlannedJoin, ...], tuple[Scan, ...]]:
    """Return joins that say where they find their tuples, and scans that have them."""
    families = []
    for together in pairings([join for join in joins if join.fold == SliceMatrix.name]).values():
        (link,) = together[0].join.links
        groups = together[0].join.groups
        if len(link.keys) != 1 or link.residual is not None or len({side for side, _ in groups}) > 1:
            continue
        parent = _side(together, 0, link.keys[0].parent, sets, scans)
        child = _side(together, 1, link.keys[0].child, sets, scans)
        if parent is not None and child is not None:
            families.append(_TupleFoldFamily(together, (parent, child)))
    while True:
        values: dict[_Order, set[int]] = {}
        for side in (side for family in families for side in family.sides):
            values.setdefault(side.order, set()).update(side.values)
        fitting = [each for each in families if all(len(values[side.order]) <= MOST_VALUES for side in each.sides)]
        if len(fitting) == len(families):
            break
        families = fitting
    if not families:
        return tuple(joins), tuple(scans)
    direct = {join.name for family in families for join in family.joins}
    others = {side_place.name for join in joins if join.name not in direct for side_place in join.sides}
    feeds: dict[int, list[KeyedFeed]] = {}
    places: dict[_Order, FeedPlace] = {}
    for order in values:
        scan_feeds = feeds.setdefault(order[0], [])
        places[order] = order[0], len(scan_feeds)
        scan_feeds.append(_feed(order, families, sets, others))
    of_join = {
        join.name: tuple(places[side.order] for side in family.sides) for family in families for join in family.joins
    }
    return (
        tuple(replace(join, tuples=of_join.get(join.name, ())) for join in joins),
        tuple(
            replace(scan, keyed=tuple(feeds[scan.number]))
            if isinstance(scan, WovenScan) and scan.number in feeds
            else scan
            for scan in scans
        ),
    )


def _side(
    joins: Sequence[PlannedJoin], number: int, key: int, sets: Sequence[PartialSet], scans: Sequence[Scan]
) -> _Side | None:
    """Return what joins of one pairing read of a side; None if they cannot be folded from tuples."""
    join, place = joins[0].join, joins[0].sides[number]
    grouped = {position for side, position in join.groups if side == number}
    if key in grouped or grouped | {key} != set(range(len(join.sides[number].group_by))):
        return None
    partial_set = sets[place.set]
    local = (each for each in scans if isinstance(each, WovenScan) and each.counted_by is None and each.local)
    fed = ((each, feed) for each in local for feed in each.feeds if feed.number == partial_set.number)
    scan, woven_set = next(fed, (None, None))
    if scan is None or woven_set is None or not partial_set.window.is_sliced:
        return None
    reads = dict(zip(partial_set.components, woven_set.components, strict=True))
    asked = {component for join in joins for component in join.join.sides[number].components}
    wanted = [planned for planned in partial_set.components if planned.component in asked]
    for planned in wanted:  # counts, and sums of integers, over all tuples of the side
        is_whole = planned.argument_type is not None and planned.argument_type.kind is TypeKind.INTEGER
        kind, where = planned.component.kind, planned.component.where
        if planned.component != COUNT_STAR and (
            where is not None or not (kind == "count" or (kind == "sum" and is_whole))
        ):
            return None
    # The grouping columns of the set are those of the side, in another order perhaps.
    columns = {expression: woven_set.groups[i] for i, expression in enumerate(partial_set.group_by)}
    group_by = join.sides[number].group_by
    read = {(planned.component.kind, reads[planned].argument) for planned in wanted}
    summed, counted = (
        tuple(sorted(place for kind, place in read if kind == asked and place is not None))
        for asked in ("sum", "count")
    )
    return _Side(
        (scan.number, columns[group_by[key]], woven_set.bit),
        partial_set.number,
        frozenset(join.sides[number].tree for join in joins),
        tuple(sorted(columns[group_by[position]] for position in grouped)),
        summed,
        counted,
    )


def _feed(
    order: _Order, families: Sequence[_TupleFoldFamily], sets: Sequence[PartialSet], others: set[str]
) -> KeyedFeed:
    """Return the feed of all families that read the tuples of a scan in one order."""
    sides = [side for family in families for side in family.sides if side.order == order]
    width = 0.0  # the slices of one side that some window holds together with a slice of the other
    for family in families:
        if any(side.order == order for side in family.sides):
            length = sum(max(each.join.sides[side].window.range_ticks for each in family.joins) for side in (0, 1))
            rate = max(sets[side.set].edges.edges_per_second for side in family.sides)
            width = max(width, length / TICKS_PER_SECOND * rate)
    outs = tuple(sorted({position for side in sides for position in side.outs}))
    trees: dict[int, set[int]] = {}
    for side in (side for family in families for side in family.sides):
        trees.setdefault(side.set, set()).update(side.trees)
    keyed_sets: dict[int, KeyedSet] = {}
    for side in sides:
        every = sets[side.set].trees
        # Cells are cut at the edges that queries, and sides of joins folded from cells, need.
        needing = [tree for tree in every if tree.answered or any(planned.name in others for planned in tree.queries)]
        keyed_sets[side.set] = KeyedSet(
            side.set,
            _fine_edges(every[number] for number in trees[side.set]),
            tuple(outs.index(position) for position in side.outs),
            _fine_edges(needing) if needing else None,
        )
    return KeyedFeed(
        order[1],
        order[2],
        outs,
        tuple(sorted({position for side in sides for position in side.values})),
        tuple(sorted({position for side in sides for position in side.counted})),
        tuple(keyed_sets.values()),
        width,
    )


def _fine_edges(trees: Iterable[Tree]) -> EdgeSet:
    return EdgeSet.of(edge_class for tree in trees for edge_class in tree.fine_edges.classes)
