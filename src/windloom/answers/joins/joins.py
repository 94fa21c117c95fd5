"""The answers of joins: sides are answered for a stretch of ends at a time, folded, and lowered to blocks.

Joins that ask the same sides for the same windows are answered together, so that a side is answered once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from windloom.aggregates.registry import PlannedComponent
from windloom.answers.blocks import Block
from windloom.answers.joins.fold import fold_sides
from windloom.answers.joins.lowering import Lowering, as_cells
from windloom.answers.joins.matrix import TooManyGroupsError
from windloom.answers.joins.matrix_joins import MatrixFamily
from windloom.answers.joins.sides import Ends, HeldTrees, relation_rows, side_rows, with_matches_only
from windloom.answers.joins.terms import FoldedRows, FoldTypes, SideRows
from windloom.answers.trees import TreeCells
from windloom.kernels.folds.pairwise import Pairwise
from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.kernels.tuples.sorted_tuples import SortedTuples
from windloom.model.types import DataType
from windloom.plan.plan import FeedPlace, Plan, PlannedJoin
from windloom.state.cells import Cells, merge_all
from windloom.state.windows.lifecycle import Landmark
from windloom.weave.sorted_tuples import KeyedSides

#: The number of rows, of all sides together, that a stretch of ends aims at.
SIDE_ROWS = 1 << 21
#: The most ends of one stretch.
MOST_ENDS = 1 << 12

Ticks = NDArray[np.int64]
#: `(after, until]` for the ends of windows.
Interval = tuple[int, int]


def join_makers(
    plan: Plan,
    cells: Mapping[int, Cells],
    interval: Callable[[PlannedJoin], Interval],
    landmarks: Mapping[str, Landmark],
    asked: Collection[int],
    threads: int = 1,
    keyed: Mapping[FeedPlace, SortedTuples] | None = None,
) -> list[tuple[str, Callable[[], Iterator[Block]]]]:
    """Return makers of blocks, each for joins that are folded together, by the name of the first of them.

    `asked` are the places of the joins to answer; `keyed` are tuples that may be folded instead of cells.
    """
    families = _Families(plan, cells, interval, landmarks, threads, KeyedSides(plan, keyed or {}))
    together = families.together([plan.joins[number] for number in asked])
    return [(joins[0].name, partial(families.blocks, joins)) for joins in together]


def join_folds(
    plan: Plan,
    cells: Mapping[int, Cells],
    interval: Callable[[PlannedJoin], Interval],
    landmarks: Mapping[str, Landmark],
    divided: Collection[int],
) -> dict[int, Cells]:
    """Return the cells that a bucket has folded of joins whose answers buckets divide, by their place in the plan."""
    families = _Families(plan, cells, interval, landmarks, 1, KeyedSides(plan, {}))
    parts_by_join: dict[int, list[Cells]] = {}
    places = {plan.joins[number].name: number for number in divided}
    for joins in families.together([plan.joins[number] for number in sorted(divided)]):
        for join, folded, ends in families.folded(joins):
            Lowering(plan, join, landmarks).refuse_first(folded, ends)
            parts_by_join.setdefault(places[join.name], []).append(as_cells(folded, ends))
    return {number: merge_all(parts) for number, parts in sorted(parts_by_join.items())}


@dataclass(frozen=True, slots=True)
class _Families:
    """Joins that are folded together: by one slice matrix, or because they ask the same sides for the same windows."""

    plan: Plan
    cells: Mapping[int, Cells]
    interval: Callable[[PlannedJoin], Interval]
    landmarks: Mapping[str, Landmark]
    threads: int
    tuples: KeyedSides
    held: HeldTrees = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "held", HeldTrees(self.plan, self.cells))

    def together(self, joins: Iterable[PlannedJoin]) -> list[list[PlannedJoin]]:
        families: dict[object, list[PlannedJoin]] = {}
        for join in joins:
            by_rows = (join.sides, self.interval(join))
            families.setdefault(join.pairing if join.fold == SliceMatrix.name else by_rows, []).append(join)
        return list(families.values())

    def blocks(self, joins: Sequence[PlannedJoin]) -> Iterator[Block]:
        lowered = {join.name: Lowering(self.plan, join, self.landmarks) for join in joins}
        for join, folded, ends in self.folded(joins):
            yield lowered[join.name].block(folded, ends)

    def folded(self, joins: Sequence[PlannedJoin]) -> Iterator[tuple[PlannedJoin, FoldedRows, Ticks]]:
        """Yield the rows of joins that are folded together, and where their windows end."""
        intervals = [self.interval(join) for join in joins]
        if joins[0].tuples and self.tuples:
            if self.tuples.of(joins[0]) is not None:
                family = MatrixFamily(self.plan, self.cells, joins, intervals, self.tuples)
                with suppress(TooManyGroupsError):
                    yield from family.folded(self.threads)
                    return
            # The tuples cannot be folded after all: cells woven from them are.
            cells = self.tuples.cells(joins[0], self.cells)
            yield from replace(self, cells=cells, tuples=KeyedSides(self.plan, {})).folded(joins)
            return
        if joins[0].fold == SliceMatrix.name:
            try:
                yield from MatrixFamily(self.plan, self.cells, joins, intervals).folded(self.threads)
                return
            except TooManyGroupsError:
                # There are more groups than the plan expected. Folding window by window gives the same rows.
                for family_joins in self.together([replace(join, fold=Pairwise.name) for join in joins]):
                    yield from self.folded(family_joins)
                return
        yield from _JoinFamily(self.plan, self.held, joins, intervals[0], self.landmarks).folded()


def family_rows(
    plan: Plan, cells: Mapping[int, Cells], join: PlannedJoin, interval: Interval
) -> list[tuple[FoldTypes, list[SideRows], int]]:
    """Return the input of a row fold: what the sides answer for every stretch of ends, and how many ends it has."""
    family = _JoinFamily(plan, HeldTrees(plan, cells), [join], interval, {})
    return [(types, rows, ends.count) for _, types, rows, ends in family.answered()]


@dataclass(frozen=True, slots=True)
class _JoinFamily:
    """Joins with the same sides, which report windows that end in the same interval."""

    plan: Plan
    held: HeldTrees
    joins: Sequence[PlannedJoin]
    interval: Interval
    landmarks: Mapping[str, Landmark]

    def folded(self) -> Iterator[tuple[PlannedJoin, FoldedRows, Ticks]]:
        """Yield the rows of every join for every stretch of ends, where there are any."""
        for join, types, rows, ends in self.answered():
            folded = fold_sides(join.join, types, rows, ends.count, join.order, join.fold)
            if len(folded.ends):
                yield join, folded, ends.ticks(folded.ends)

    def answered(self) -> Iterator[tuple[PlannedJoin, FoldTypes, list[SideRows], Ends]]:
        """Yield the answers of the sides of every join for every stretch of ends."""
        trees = with_matches_only(self.plan, self.joins, [self.held.of(place) for place in self.joins[0].sides])
        typed = [(join, _types(join, trees)) for join in self.joins]
        for ends in self._stretches(trees):
            known: dict[object, SideRows] = {}
            for join, types in typed:
                rows = []
                for side, place, tree in zip(join.join.sides, join.sides, trees, strict=True):
                    key, member = (place, side.components), self.plan.side(place)[2]
                    if key not in known and side.is_relation:
                        known[key] = relation_rows(tree, member, side, ends)
                    elif key not in known:
                        known[key] = side_rows(tree, member, side, ends, self.landmarks)
                    rows.append(known[key])
                yield join, types, rows, ends

    def _stretches(self, trees: Sequence[TreeCells]) -> Iterator[Ends]:
        """Yield the ends to answer at, but no long stretches without a tuple of the first side, which all link to."""
        first, (after, until) = self.joins[0].join.sides[0].window, self.interval
        starts = np.unique(trees[0].cells.starts)
        if not len(starts):
            return
        slide, landmark = first.slide_ticks, self.landmarks.get(self.joins[0].sides[0].name)
        # With a landmark window on any side, nothing is reported after the last tuple of all streams.
        names = [place.name for place in self.joins[0].sides if place.name in self.landmarks]
        until = min([until, *(self.landmarks[name].until for name in names)])
        if landmark is None:
            until = min(until, int(starts[-1]) + first.range_ticks)
        else:
            after = max(after, landmark.start)
        most = self._ends_at_once(trees, max(1, (until - max(after, int(starts[0]))) // slide + 1))
        while after < until:
            if landmark is None:
                # No window that ends after `after` ends before the first cell begins that it may cover.
                next_cell = int(np.searchsorted(starts, after - first.range_ticks + 1))
                if next_cell == len(starts):
                    return
                after = max(after, int(starts[next_cell]))
            end = after + slide - (after - first.offset_ticks - first.range_ticks) % slide
            count = min(most, (until - end) // slide + 1)
            if count <= 0:
                return
            yield Ends(end, slide, count)
            after = end + (count - 1) * slide

    def _ends_at_once(self, trees: Sequence[TreeCells], every: int) -> int:
        """Return how many ends give the sides about `SIDE_ROWS` rows, if cells spread evenly over `every` ends."""
        rows = 0.0
        for side, tree in zip(self.joins[0].join.sides, trees, strict=True):
            side_rows = len(tree.cells) * (side.window.overlap + 1) / every
            rows += tree.cells.groups if side.window.extent_ticks is None else min(tree.cells.groups, side_rows)
        return int(max(1, min(MOST_ENDS, SIDE_ROWS / max(1.0, rows))))


def _types(join: PlannedJoin, trees: Sequence[TreeCells]) -> FoldTypes:
    sides: list[tuple[PlannedComponent, ...]] = []
    groups: list[tuple[DataType, ...]] = []
    for side, tree in zip(join.join.sides, trees, strict=True):
        components = {planned.component: planned for planned in tree.partial_set.components}
        kinds = dict(zip(tree.partial_set.group_by, tree.partial_set.group_types, strict=True))
        sides.append(tuple(components[component] for component in side.components))
        groups.append(tuple(kinds[expression] for expression in side.group_by))
    return FoldTypes(tuple(sides), join.components, tuple(groups))
