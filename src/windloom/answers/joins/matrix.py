"""Joins by slice matrix: what two sides have in common is folded slice by slice, once for all joins and ranges.

Joins share a matrix if they link the same two sets on the same keys and keep the same grouping columns; they may differ
in windows, aggregates and HAVING. A matrix is made for some windows at a time, so that it stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from operator import methodcaller
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.answers.joins.integer_terms import IntegerSums, WholeTerms
from windloom.answers.joins.joined_rows import (
    JoinedRows,
    OutGroups,
    Partner,
    Place,
    allowed_pairs,
    number_keys,
    out_groups,
    residual_by_types,
)
from windloom.answers.joins.term_folds import TermFold, fold_of, is_settled
from windloom.answers.joins.terms import FoldTypes, Held, HeldValue, Term, Terms
from windloom.kernels.families import AddFloat, AddInt
from windloom.kernels.folds.bands import Band, by_moving_group
from windloom.kernels.folds.int128 import Int128, widened
from windloom.kernels.folds.matching import GroupPairs, LinkedRows, Matchable, UnmatchedRows, runs_of
from windloom.kernels.folds.slice_matrix import (
    CellSide,
    Rectangles,
    cell_stretches,
    cells_between,
    combine_rectangles,
    number_slices,
    sum_rectangles,
)
from windloom.model.arrays import Ints, Positions
from windloom.model.join import Join
from windloom.state.cells import Cells

#: A matrix that would have more entries than this for one end of windows is not made.
MOST_ENTRIES = 1 << 23
Pair = tuple[Ints, Ints]


class TooManyGroupsError(Exception):
    """The result has so many groups that a matrix would be larger than what sides answer."""


@dataclass(frozen=True, slots=True)
class MatrixWindows:
    """The windows of one join: where they end, and their slices of both sides, `lo : hi`."""

    ends: Ints
    lo: tuple[Ints, Ints]
    hi: tuple[Ints, Ints]


@dataclass(frozen=True, slots=True)
class MatrixTerms:
    """Terms to fold: those of integers that are folded together, and the others."""

    whole: WholeTerms
    others: Sequence[Term]
    known: Terms


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of integers over the band of some slices, which begin at `first` on both sides."""

    whole: IntegerSums
    first: tuple[int, int]


class Matrix:
    """The matches of two sides, slice by slice. `cells` are those of their sets, `components` those all joins need.

    `join` is one of the joins, whose link and grouping columns are those of all; `ranges` are the longest windows, and
    slices of a side begin at multiples of its period.
    """

    def __init__(
        self,
        join: Join,
        types: FoldTypes,
        cells: tuple[Cells, Cells],
        relations: tuple[JoinedRows, JoinedRows],
        ranges: tuple[int, int],
        periods: tuple[int, int],
    ) -> None:
        self._types, self._ranges = types, ranges
        self._relations, self._bounds = relations, (cells[0].group_bounds, cells[1].group_bounds)
        numbered = [number_slices(side_cells.starts, period) for side_cells, period in zip(cells, periods, strict=True)]
        self.ticks, self._slices = [ticks for ticks, _ in numbered], [slices for _, slices in numbered]
        self._outs, self._pairs = self._matched(join)
        numbers, self.columns, self.groups, self.matches = self._numbered()
        # Longer runs of slices are walked faster, so the side whose groups have more cells moves.
        cells_per_group = [
            len(slices) / max(1, len(bounds) - 1) for slices, bounds in zip(self._slices, self._bounds, strict=True)
        ]
        self.fixed = int(cells_per_group[0] > cells_per_group[1])
        # The numbers of groups of the result, by what remains of the fixed and of the moving side.
        self._numbers = numbers.T.copy() if self.fixed else numbers
        self._cursors, self._band_cursors = (
            [(bounds[:-1].copy(), bounds[:-1].copy()) for bounds in self._bounds] for _ in range(2)
        )
        self._partners = []
        for side, relation in enumerate(relations):
            rows: Callable[..., NDArray[np.int32]] = (lambda each: each.child) if side else (lambda each: each.parent)
            # A cell of the fixed side is taken for a whole stretch.
            last = 0 if side == self.fixed else len(relation.ends)
            self._partners.append(Partner(relation.sides, last, relation.held, rows))
        self._ordered: tuple[object, tuple[Positions, Positions]] | None = None

    @cached_property
    def _runs(self) -> Positions:
        runs: Positions = runs_of(self._slices[1 - self.fixed], self._bounds[1 - self.fixed])
        return runs

    def _matched(self, join: Join) -> tuple[tuple[OutGroups, OutGroups], GroupPairs]:
        (link,), (parent, child) = join.links, self._relations
        outs = out_groups(parent, join.groups), out_groups(child, join.groups)
        codes, other_codes, keys = number_keys(
            [parent.columns[0, pair.parent] for pair in link.keys],
            [child.columns[1, pair.child] for pair in link.keys],
            [pair.null_safe for pair in link.keys],
            (parent.groups, child.groups),
        )
        no_ends = np.zeros(0, np.int32)
        linked = LinkedRows(
            Matchable(parent.bounds, no_ends, codes, outs[0].numbers, outs[0].count),
            Matchable(child.bounds, no_ends, other_codes, outs[1].numbers, outs[1].count),
            keys,
            0,
            True,
            UnmatchedRows.NONE,
            0,
            allowed_pairs(link, parent, child, residual_by_types(self._types)),
        )
        return outs, GroupPairs(linked)

    def _numbered(self) -> tuple[NDArray[np.int32], dict[Place, pa.Array], int, int]:
        """Return a number for every group of the result, by what remains of both sides, and their columns by number.

        Also how many groups there are, and how many pairs of groups of the sides match.
        """
        parent, child = self._outs
        if parent.count * child.count > MOST_ENTRIES:
            raise TooManyGroupsError
        used = np.zeros((parent.count, child.count), np.bool_)
        matches = 0
        for parents, children in self._pairs.blocks():
            used[parent.numbers[parents], child.numbers[children]] = True
            matches += len(parents)
        of_parent, of_child = np.nonzero(used)
        numbers = np.zeros(used.shape, np.int32)
        numbers[of_parent, of_child] = np.arange(len(of_parent))
        columns = {place: values.take(pa.array(of_parent)) for place, values in parent.columns.items()}
        columns |= {place: values.take(pa.array(of_child)) for place, values in child.columns.items()}
        return numbers, columns, len(of_parent), matches

    def wanting(self, terms: Sequence[Term], known: Terms) -> MatrixTerms:
        """Return the terms, prepared to be folded."""
        whole = WholeTerms(terms, known, self._relations, self.fixed, self.matches)
        return MatrixTerms(whole, [term for term in terms if term not in whole], known)

    def sums(
        self, wanted: MatrixTerms, first: tuple[int, int], last: tuple[int, int], pool: Executor | None, threads: int
    ) -> Sums:
        """Return sums of integers over the slices `first : last` of both sides; a pool divides the pairs of groups.

        Successive calls must move forward in time.
        """
        sides = self._sides(first, last, self._band_cursors)
        both = sides[self.fixed], sides[1 - self.fixed]
        band = band_of(self.ticks, self._ranges, self.fixed, first, last)
        pairs, numbers = self._ordered_pairs(), self._numbers
        return Sums(wanted.whole.folded(pairs, both, band, numbers, self.groups, pool, threads), first)

    def values(
        self, wanted: MatrixTerms, sums: Sums, first: tuple[int, int], last: tuple[int, int], pool: Executor | None
    ) -> MatrixWindow:
        """Return every term over the slices `first : last` of both sides. Successive calls must move forward in time.

        `sums` cover these slices and others. If there is a pool of threads, they divide the other terms.
        """
        fixed, moving = self.fixed, 1 - self.fixed
        shape = (self.groups, last[fixed] - first[fixed], last[moving] - first[moving])
        entries, (parent, child) = shape[0] * shape[1] * shape[2], self._partners
        folds = {term: fold_of(term, wanted.known, parent, child, entries) for term in wanted.others}
        active = [fold for fold in folds.values() if not is_settled(fold)]
        rows, columns = ((first[side] - sums.first[side], last[side] - sums.first[side]) for side in (fixed, moving))
        whole = sums.whole.matrices(rows, columns)
        if active:
            self._fold_others(active, first, last, pool)
        return MatrixWindow({**whole, **{term: fold.done() for term, fold in folds.items()}}, shape, first, fixed)

    def _fold_others(
        self, active: Sequence[TermFold], first: tuple[int, int], last: tuple[int, int], pool: Executor | None
    ) -> None:
        fixed, moving = self.fixed, 1 - self.fixed
        sides = self._sides(first, last, self._cursors)
        band = band_of(self.ticks, self._ranges, fixed, first, last)
        for pairs in self._pairs.blocks():
            both = (pairs[fixed], pairs[moving])
            for stretches in cell_stretches(
                both,
                sides[fixed],
                sides[moving],
                self._runs,
                (band.low, band.high),
                self._numbers,
                is_swapped=fixed == 1,
            ):
                if pool is None:
                    for fold in active:
                        fold.add(stretches)
                else:
                    list(pool.map(methodcaller("add", stretches), active))

    def _sides(self, first: tuple[int, int], last: tuple[int, int], cursors: Sequence[Pair]) -> list[CellSide]:
        """Return the cells of both sides in these slices, to which the cursors are moved."""
        for side in (0, 1):
            cells_between(self._bounds[side], self._slices[side], first[side], last[side], *cursors[side])
        return [
            CellSide(*cursors[side], self._slices[side], first[side], last[side] - first[side], outs.numbers)
            for side, outs in enumerate(self._outs)
        ]

    def _ordered_pairs(self) -> Iterator[tuple[Positions, Positions]]:
        """Yield pairs of groups of the fixed and the moving side, block by block in order of the latter."""
        for pairs in self._pairs.blocks():
            if self._ordered is None or self._ordered[0] is not pairs:
                both = pairs[self.fixed], pairs[1 - self.fixed]
                self._ordered = pairs, by_moving_group(both, len(self._bounds[1 - self.fixed]) - 1)
            yield self._ordered[1]


def band_of(
    ticks: Sequence[Ints], ranges: tuple[int, int], fixed: int, first: tuple[int, int], last: tuple[int, int]
) -> Band:
    """Return, for every slice of the fixed side, the slices of the other that some window holds together with it.

    By side, `ticks` are where slices begin, `ranges` the longest windows, and `first : last` the slices.
    """
    moving = 1 - fixed
    fixed_ticks, others = ticks[fixed][first[fixed] : last[fixed]], ticks[moving][first[moving] : last[moving]]
    low = np.searchsorted(others, fixed_ticks - ranges[moving], side="right")
    high = np.searchsorted(others, fixed_ticks + ranges[fixed], side="left")
    return Band.of(low.astype(np.int32), high.astype(np.int32))


@dataclass(frozen=True, slots=True)
class MatrixWindow:
    """Terms over the slices of some windows, and their rectangles."""

    held: dict[Term, Held]
    shape: tuple[int, int, int]
    first: tuple[int, int]
    fixed: int

    def over_all(self, terms: Collection[Term], rectangles: Rectangles) -> dict[Term, Held]:
        """Return terms over every rectangle; what several terms have in common is made once."""
        by_identity: dict[int, Held] = {}
        for term in terms:
            if id(self.held[term]) not in by_identity:
                by_identity[id(self.held[term])] = self.over(term, rectangles)
        return {term: by_identity[id(self.held[term])] for term in terms}

    def over(self, term: Term, rectangles: Rectangles) -> Held:
        """Return a term over every rectangle, group by group."""
        match self.held[term]:
            case AddInt() | Int128() as numbers:
                return sum_rectangles(numbers, self.shape, rectangles)
            case AddFloat() as pairs:
                combined: AddFloat = combine_rectangles(pairs, self.shape, rectangles)
                return combined
            case HeldValue(columns=columns, dictionary=dictionary):
                return HeldValue(combine_rectangles(columns, self.shape, rectangles), dictionary)
            case np.ndarray() as flags:
                counts = sum_rectangles(AddInt(flags.astype(np.int64)), self.shape, rectangles)
                assert isinstance(counts, AddInt)
                known: NDArray[np.bool_] = counts.value > 0
                return known
            case None:
                return None
        raise AssertionError(f"a matrix does not hold {term}")

    def rectangles(self, asked: MatrixWindows, part: Ints) -> Rectangles:
        """Return windows as rectangles; `part` are the places of windows in order of their ends, then their starts."""
        fixed, moving = self.fixed, 1 - self.fixed
        lo, hi, left, right = (
            (bound[side][part] - self.first[side]).astype(np.int32)
            for side in (fixed, moving)
            for bound in (asked.lo, asked.hi)
        )
        ends = asked.ends[part]
        bounds = np.flatnonzero(np.concatenate([[True], ends[1:] != ends[:-1], [True]]))
        return Rectangles(bounds, lo, hi, left, right)


def joined_held(parts: Sequence[Held], counts: Sequence[int], groups: int) -> Held:
    """Return a term as several matrices hold it, group by group, for all windows; `counts` has the windows of each."""
    if len(parts) == 1 or all(piece is None for piece in parts):
        return parts[0]
    if any(isinstance(piece, Int128) for piece in parts):
        parts = [widened(piece) if isinstance(piece, AddInt) else piece for piece in parts]
    if any(piece is None or isinstance(piece, np.ndarray) for piece in parts):
        flags = [
            piece if isinstance(piece, np.ndarray) else np.ones(groups * count, np.bool_)
            for piece, count in zip(parts, counts, strict=True)
        ]
        return _beside(flags, groups)
    if isinstance(parts[0], HeldValue):
        columns = [piece.columns for piece in parts if isinstance(piece, HeldValue)]
        joined_columns = type(columns[0])(*(_beside(each, groups) for each in zip(*columns, strict=True)))
        return HeldValue(joined_columns, parts[0].dictionary)
    numbers = [piece for piece in parts if isinstance(piece, AddInt | Int128 | AddFloat)]
    joined: AddInt | Int128 | AddFloat = type(numbers[0])(
        *(_beside(each, groups) for each in zip(*numbers, strict=True))
    )
    return joined


def rows_of_held(values: Held, rows: Ints) -> Held:
    """Return some rows of what is held."""
    match values:
        case None:
            return None
        case np.ndarray():
            return values[rows]
        case HeldValue(columns=columns, dictionary=dictionary):
            return HeldValue(type(columns)(*(column[rows] for column in columns)), dictionary)
        case AddInt() | Int128() | AddFloat():
            numbers: AddInt | Int128 | AddFloat = type(values)(*(column[rows] for column in values))
            return numbers
    raise AssertionError("a matrix holds no lists and no extrema of both sides")


def _beside(columns: Sequence[NDArray[Any]], groups: int) -> NDArray[Any]:
    return np.concatenate([column.reshape(groups, -1) for column in columns], axis=1).reshape(-1)
