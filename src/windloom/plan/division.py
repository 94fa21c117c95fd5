"""Chooses the columns by which a set's groups are divided into buckets, so that the sides of a join meet in one bucket.

A set is divided by all its grouping columns, unless joins read it: then by the join keys that all sides of these joins
have in common. Rows of such a join that belong to one group of the answer may come from several buckets, unless the
keys are among its grouping columns; the folded results of the buckets are then merged. If joins have no key in common,
their sets stay in one bucket. Every bucket has the whole of a relation, so a relation need not be divided, and a join
of one stream with relations divides that stream like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windloom.model.join import Join
from windloom.model.stream import JoinKind
from windloom.plan.plan import Plan, PlannedJoin

#: Places of grouping columns, by number of the set.
Columns = Mapping[int, tuple[int, ...]]

#: A column of a side: its number, and the place among the grouping columns of the side.
_Place = tuple[int, int]

#: Places of grouping columns for every set of a join, as pairs.
_Option = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Division:
    """The columns by which groups are divided into buckets.

    `columns` are those of sets that joins read; other sets are divided by all of theirs.

    A set with an empty tuple of columns stays in one bucket. `divided` are the joins, by their place in the plan, whose
    answers have to be merged.
    """

    columns: Columns
    divided: frozenset[int]

    def of(self, number: int) -> tuple[int, ...] | None:
        """The places of the grouping columns that decide the bucket of a group of a set; None means all of them."""
        return self.columns.get(number)


def division_of(plan: Plan) -> Division:
    columns: dict[int, tuple[int, ...]] = {}
    for together in _connected([join for join in plan.joins if len(_streams(join)) > 1]):
        agreed = _agreed(together, plan)
        for join in together:
            for side in _streams(join):
                number = join.sides[side].set
                columns[number] = () if agreed is None else agreed[number]
    divided = (number for number, join in enumerate(plan.joins) if not _is_whole(plan, join, columns))
    return Division(columns, frozenset(divided))


def _streams(join: PlannedJoin) -> list[int]:
    """Return the sides that are windows over streams."""
    return [number for number, side in enumerate(join.join.sides) if not side.is_relation]


def key_classes(join: Join) -> list[frozenset[_Place]]:
    """Return columns of sides that are equal wherever rows match."""
    classes: list[set[_Place]] = []
    for link in join.links:
        for pair in link.keys:
            both = {(link.parent, pair.parent), (link.child, pair.child)}
            met = [edge_class for edge_class in classes if edge_class & both]
            classes = [edge_class for edge_class in classes if not edge_class & both] + [both.union(*met)]
    return [frozenset(edge_class) for edge_class in classes]


def _connected(joins: Sequence[PlannedJoin]) -> list[list[PlannedJoin]]:
    """Return joins that share sets of streams with each other."""
    groups: list[tuple[set[int], list[PlannedJoin]]] = []
    for join in joins:
        joined_sets = {join.sides[side].set for side in _streams(join)}
        met = [group for group in groups if group[0] & joined_sets]
        groups = [group for group in groups if not group[0] & joined_sets]
        together = [*(other for _, others in met for other in others), join]
        groups.append((joined_sets.union(*(sets for sets, _ in met)), together))
    return [together for _, together in groups]


def _agreed(joins: Sequence[PlannedJoin], plan: Plan) -> Columns | None:
    """Return columns for all sets of these joins so that the sides of every join meet in one bucket, or None."""
    options = list(dict.fromkeys(tuple(_options(join, plan)) for join in joins))

    def search(chosen: dict[int, tuple[int, ...]], left: Sequence[tuple[_Option, ...]]) -> Columns | None:
        if not left:
            return chosen
        for option in left[0]:
            if all(chosen.get(number, places) == places for number, places in option):
                columns = search(chosen | dict(option), left[1:])
                if columns is not None:
                    return columns
        return None

    return search({}, options)


def _options(join: PlannedJoin, plan: Plan) -> Iterator[_Option]:
    """Ways to divide the sets of one join so that its sides meet: by all keys of all sides, then by each alone."""
    every = _streams(join)
    common = [each for each in key_classes(join.join) if {side for side, _ in each} >= set(every)]
    common.sort(key=sorted)
    for classes in [common, *([key_class] for key_class in common)] if len(common) > 1 else [common]:
        columns_of_set: dict[int, tuple[int, ...]] = {}
        for side in every:
            member = plan.side(join.sides[side])[2]
            # A side may have a key twice; either of the columns is equal to those of other sides.
            places = tuple(min(position for each, position in edge_class if each == side) for edge_class in classes)
            columns = tuple(member.group_positions[position] for position in places)
            if columns_of_set.setdefault(join.sides[side].set, columns) != columns:
                break  # a join of a set with itself on different columns
        else:
            if classes:
                yield tuple(sorted(columns_of_set.items()))


def _is_whole(plan: Plan, join: PlannedJoin, columns: Columns) -> bool:
    """Return whether every group of the answer is in one bucket: its columns determine those that decide the bucket."""
    partial_set, _, member = plan.side(join.sides[0])
    dividing = columns.get(partial_set.number, tuple(range(len(partial_set.group_by))))
    paired = {0}
    for link in join.join.links:
        if link.kind is JoinKind.INNER and link.parent in paired:
            paired.add(link.child)
    reported = {place for place in join.join.groups if place[0] in paired}
    classes = key_classes(join.join)
    for column in dividing:
        key = {(0, place) for place, position in enumerate(member.group_positions) if position == column}
        same = key.union(*(edge_class for edge_class in classes if edge_class & key))
        if not same & reported:
            return False
    return True
