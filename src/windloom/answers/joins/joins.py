"""The answers of joins: sides are answered for a stretch of ends at a time, folded, and lowered to blocks.

Joins that ask the same sides for the same windows are answered together, so that a side is answered once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
    """Return the cells that a shard has folded of joins whose answers are divided among shards, by their place in the
    plan.
    """
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
        if joins[0].tuples and self.tuples:
            yield from self._folded_tuples(joins)
            return
        if joins[0].fold == SliceMatrix.name:
            family = MatrixFamily(self.plan, self.cells, joins, [self.interval(join) for join in joins])
            try:
                yield from family.folded(self.threads)
                return
            except TooManyGroupsError:
                # There are more groups than the plan expected: sides are folded window by window, which gives the same
                # rows.
                for family_joins in self.together([replace(join, fold=Pairwise.name) for join in joins]):
                    yield from self.folded(family_joins)
                return
        yield from _JoinFamily(self.plan, self.held, joins, self.interval(joins[0]), self.landmarks).folded()

    def _folded_tuples(self, joins: Sequence[PlannedJoin]) -> Iterator[tuple[PlannedJoin, FoldedRows, Ticks]]:
        """Fold straight from tuples; if that is not possible after all, from cells woven from them."""
        if self.tuples.of(joins[0]) is not None:
            intervals = [self.interval(join) for join in joins]
            try:
                yield from MatrixFamily(self.plan, self.cells, joins, intervals, self.tuples).folded(self.threads)
                return
            except TooManyGroupsError:
                pass
        cells = self.tuples.cells(joins[0], self.cells)
        others = replace(self, cells=cells, tuples=KeyedSides(self.plan, {}))
        yield from others.folded(joins)


def family_rows(
    plan: Plan, cells: Mapping[int, Cells], join: PlannedJoin, interval: Interval
) -> list[tuple[FoldTypes, list[SideRows], int]]:
    """Return the input of a row fold: what the sides of a join answer for every stretch of ends, and how many ends it
    has.
    """
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
                yield join, types, [self._side(join, i, tree, ends, known) for i, tree in enumerate(trees)], ends

    def _side(
        self, join: PlannedJoin, number: int, tree: TreeCells, ends: Ends, known: dict[object, SideRows]
    ) -> SideRows:
        side, place = join.join.sides[number], join.sides[number]
        key = (place, side.components)
        if key not in known:
            member = self.plan.side(place)[2]
            is_windowed = not side.is_relation
            known[key] = (
                side_rows(tree, member, side, ends, self.landmarks)
                if is_windowed
                else relation_rows(tree, member, side, ends)
            )
        return known[key]

    def _stretches(self, trees: Sequence[TreeCells]) -> Iterator[Ends]:
        """Yield the ends to answer at, but no long stretches without a tuple of the first side, to which all are
        linked.
        """
        first, (after, until) = self.joins[0].join.sides[0].window, self.interval
        starts = np.unique(trees[0].cells.starts)
        if not len(starts):
            return
        slide, landmark = first.slide_ticks, self.landmarks.get(self.joins[0].sides[0].name)
        # With a landmark window on any side, nothing is reported after the last tuple of all streams.
        until = min(
            [
                until,
                *(
                    self.landmarks[side_place.name].until
                    for side_place in self.joins[0].sides
                    if side_place.name in self.landmarks
                ),
            ]
        )
        if landmark is None:
            until = min(until, int(starts[-1]) + first.range_ticks)
        else:
            after = max(after, landmark.start)
        most = self._ends_at_once(trees, max(1, (until - max(after, int(starts[0]))) // slide + 1))
        while after < until:
            if landmark is None:
                # The first cell that a window which ends after `after` may cover: no such window ends before that cell
                # begins.
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
        """Return the number of ends that give the sides about `SIDE_ROWS` rows, if cells spread evenly over `every`
        ends.
        """
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
