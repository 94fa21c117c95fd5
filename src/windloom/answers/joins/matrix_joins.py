"""The answers of joins that share a slice matrix: which windows they ask for, and rows from what the matrix holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from windloom.aggregates.columns import ComponentColumns
from windloom.answers.joins.fold import finished
from windloom.answers.joins.joined_rows import JoinedRows, relation_of
from windloom.answers.joins.matrix import (
    MOST_ENTRIES,
    Matrix,
    MatrixWindows,
    TooManyGroupsError,
    band_of,
    joined_held,
    rows_of_held,
)
from windloom.answers.joins.sides import no_cells
from windloom.answers.joins.terms import FactorTerms, FoldedRows, FoldTypes, Held, SideRows, Term, Terms
from windloom.answers.joins.tuple_matrix import TupleMatrix
from windloom.answers.trees import cell_values
from windloom.kernels.families import AddInt
from windloom.kernels.folds.int128 import Int128
from windloom.model.aggregate import Component
from windloom.model.arrays import Ints
from windloom.model.join import Folded, SideComponent, SumOfProducts
from windloom.model.windows import Window
from windloom.plan.plan import Plan, PlannedJoin
from windloom.state.cells import Cells
from windloom.weave.sorted_tuples import KeyedSides

#: Entries, for one value, of the matrix that is made at a time: it stays near the caches.
MATRIX_ENTRIES = 1 << 18
#: A matrix with more entries than this for one end is made only if it has fewer entries than there would be rows to
#: match instead.
SPARSE_ENTRIES = 1 << 16
#: Entries near the diagonal whose sums are made at a time: every walk along the cells touches all groups.
BAND_ENTRIES = 1 << 20
#: Values of windows that are collected before they become rows.
HELD_VALUES = 1 << 22

#: The number of pairs of tuples; a window without any has no row.
_PAIRS = FactorTerms(((0, 0), (1, 0)))
_BOTH = frozenset((0, 1))


@dataclass(frozen=True, slots=True)
class _Member:
    """A join whose components have the numbers that all joins of the matrix use."""

    join: PlannedJoin
    folded: tuple[Folded, ...]
    terms: Terms
    wanted: tuple[Term, ...]


class MatrixFamily:
    """Joins that share a matrix; `intervals` are `(after, until]` for the ends that each of them reports.

    With `tuples`, the matrix is made straight from these.
    """

    def __init__(
        self,
        plan: Plan,
        cells: Mapping[int, Cells],
        joins: Sequence[PlannedJoin],
        intervals: Sequence[tuple[int, int]],
        tuples: KeyedSides | None = None,
    ) -> None:
        first = joins[0]
        sets = [plan.sets[place.set] for place in first.sides]
        components = [
            tuple(dict.fromkeys(component for join in joins for component in join.join.sides[side].components))
            for side in (0, 1)
        ]
        planned = [{each.component: each for each in partial_set.components} for partial_set in sets]
        types = FoldTypes(
            tuple(tuple(planned[side][component] for component in components[side]) for side in (0, 1)),
            (),
            tuple(
                tuple(partial_set.group_types[position] for position in plan.side(place)[2].group_positions)
                for partial_set, place in zip(sets, first.sides, strict=True)
            ),
        )
        set_cells = [cells.get(partial_set.number) for partial_set in sets]
        self._cells = tuple(
            no_cells(partial_set) if own_cells is None or tuples is not None else own_cells
            for partial_set, own_cells in zip(sets, set_cells, strict=True)
        )
        self._periods = tuple(partial_set.edges.pane.period for partial_set in sets)
        self._intervals = intervals
        self._members = []
        for join in joins:
            moved = [[components[side].index(each) for each in join.join.sides[side].components] for side in (0, 1)]
            folded = tuple(_moved(component, moved) for component in join.join.folded)
            terms = Terms(replace(types, folded=join.components), _BOTH)
            self._members.append(_Member(join, folded, terms, terms.all_of(folded)))
        self._relations = tuple(
            _relation(plan, first, side, self._cells[side], components[side], types) for side in (0, 1)
        )
        self._types, self._kept, self._tuples = types, components, tuples

    def folded(self, threads: int = 1) -> Iterator[tuple[PlannedJoin, FoldedRows, Ints]]:
        """Yield the rows of every join and where their windows end, some windows at a time.

        Raises `TooManyGroupsError` before it gives the first rows.
        """
        first = self._members[0]
        windows = [[member.join.join.sides[side].window for member in self._members] for side in (0, 1)]
        lengths = [max(window.range_ticks for window in each) for each in windows]
        ranges = (lengths[0], lengths[1])
        matrix: Matrix | TupleMatrix
        if self._tuples is not None:
            matrix = TupleMatrix(first.join, self._tuples, self._kept, ranges)
        else:
            matrix = Matrix(first.join.join, self._types, self._cells, self._relations, ranges, self._periods)  # type: ignore[arg-type]
        asked, owner = self._asked(matrix)
        if not len(asked.ends) or not matrix.groups:
            return
        wanted = tuple(dict.fromkeys([_PAIRS, *(term for member in self._members for term in member.wanted)]))
        prepared: Any = matrix.wanting(wanted, first.terms)  # which only the matrix itself reads
        parts: list[tuple[Ints, dict[Term, Held]]] = []
        held_values = 0
        with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
            sums, until = None, 0
            portions = list(_portions(asked, matrix.groups, matrix.matches))
            for number, (part, begin, end) in enumerate(portions):
                if sums is None or number == until:
                    # The sums of as many portions are made together as a band has room for.
                    until = number + 1
                    while until < len(portions):
                        band = band_of(matrix.ticks, ranges, matrix.fixed, begin, portions[until].last)
                        if matrix.groups * len(band) * band.width > BAND_ENTRIES:
                            break
                        until += 1
                    sums = matrix.sums(prepared, begin, portions[until - 1].last, pool, threads)
                window = matrix.values(prepared, sums, begin, end, pool)
                rectangles = window.rectangles(asked, part)
                parts.append((part, window.over_all(wanted, rectangles)))
                held_values += len(part) * matrix.groups * len(wanted)
                if held_values >= HELD_VALUES:
                    yield from self._rows(parts, asked, owner, matrix)
                    parts, held_values = [], 0
        if parts:
            yield from self._rows(parts, asked, owner, matrix)

    def _asked(self, matrix: Matrix | TupleMatrix) -> tuple[MatrixWindows, Ints]:
        """Return all windows that hold slices of both sides, in order of end and then of start, latest first."""
        asked_by_member: list[MatrixWindows] = []
        for member, interval in zip(self._members, self._intervals, strict=True):
            sides = member.join.join.sides
            ends = ends_of(matrix.ticks[0], sides[0].window, interval)
            lo = tuple(np.searchsorted(matrix.ticks[i], ends - sides[i].window.range_ticks) for i in (0, 1))
            hi = tuple(np.searchsorted(matrix.ticks[i], ends) for i in (0, 1))
            some = (hi[0] > lo[0]) & (hi[1] > lo[1])
            asked_by_member.append(MatrixWindows(ends[some], (lo[0][some], lo[1][some]), (hi[0][some], hi[1][some])))
        owner = np.repeat(np.arange(len(asked_by_member)), [len(asked.ends) for asked in asked_by_member])
        ends = np.concatenate([asked.ends for asked in asked_by_member])
        lo, hi = (
            tuple(np.concatenate([getattr(asked, name)[side] for asked in asked_by_member]) for side in (0, 1))
            for name in ("lo", "hi")
        )
        order = np.lexsort((-lo[matrix.fixed], ends))
        return MatrixWindows(ends[order], (lo[0][order], lo[1][order]), (hi[0][order], hi[1][order])), owner[order]

    def _rows(
        self,
        parts: Sequence[tuple[Ints, dict[Term, Held]]],
        asked: MatrixWindows,
        owner: Ints,
        matrix: Matrix | TupleMatrix,
    ) -> Iterator[tuple[PlannedJoin, FoldedRows, Ints]]:
        places = np.concatenate([part for part, _ in parts])
        counts = [len(part) for part, _ in parts]
        values_by_term = {
            term: joined_held([values[term] for _, values in parts], counts, matrix.groups) for term in parts[0][1]
        }
        pairs = values_by_term[_PAIRS]
        assert isinstance(pairs, AddInt | Int128)
        there = (pairs.value > 0 if isinstance(pairs, AddInt) else (pairs.high != 0) | (pairs.low != 0)).reshape(
            matrix.groups, -1
        )
        owners = owner[places]
        ends = asked.ends[places]
        for number, member in enumerate(self._members):
            own_windows = np.flatnonzero(owners == number)
            group, column = np.nonzero(there[:, own_windows])
            if not len(group):
                continue
            # The rows of a join are those of its own windows, for each group, that have a pair.
            rows = group * len(places) + own_windows[column]
            used, begin = np.unique(group, return_index=True)
            relation = JoinedRows(
                _BOTH,
                {place: values.take(used) for place, values in matrix.columns.items()},
                np.append(begin, len(group)).astype(np.int64),
                np.zeros(len(rows), np.int32),
                lambda term, rows=rows: rows_of_held(values_by_term[term], rows),  # type: ignore[misc]
            )
            combined, refused = finished(relation, member.terms, member.folded)
            groups = tuple(relation.columns[place] for place in member.join.join.groups)
            folded_rows = FoldedRows(groups, relation.bounds, relation.ends, tuple(combined), tuple(refused))
            yield member.join, folded_rows, ends[own_windows][column]


def ends_of(ticks: Ints, window: Window, interval: tuple[int, int]) -> Ints:
    """Return the ends in `(after, until]` of windows that hold one of these ticks, in ascending order."""
    slide, residue = window.slide_ticks, window.offset_ticks + window.range_ticks
    first = ticks + slide - (ticks - residue) % slide
    last = ticks + window.range_ticks - (ticks + window.range_ticks - residue) % slide
    after, until = interval
    first = np.maximum(first, after + slide - (after - residue) % slide if after > -(2**62) else first)
    last = np.minimum(last, until - (until - residue) % slide if until < 2**62 else last)
    some = first <= last
    first, last = first[some], last[some]
    if not len(first):
        return np.empty(0, np.int64)
    # Stretches of ends that overlap or follow each other become one; both bounds ascend.
    begins = np.concatenate([[True], first[1:] > last[:-1] + slide])
    starts, stops = first[begins], last[np.append(np.flatnonzero(begins)[1:] - 1, len(last) - 1)]
    counts = (stops - starts) // slide + 1
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    ends: Ints = np.repeat(starts, counts) + within * slide
    return ends


class _Portion(NamedTuple):
    """Windows by place, and the slices of both sides that they need."""

    part: Ints
    first: tuple[int, int]
    last: tuple[int, int]


def _portions(asked: MatrixWindows, groups: int, matches: int) -> Iterator[_Portion]:
    """Yield windows by place, some ends at a time, and the slices of both sides that they need, `first : last`.

    The matrix of a portion has few entries, unless a single end needs more. Slices move forward from portion to
    portion.
    """
    count = len(asked.ends)
    first = [np.minimum.accumulate(asked.lo[side][::-1])[::-1] for side in (0, 1)]
    last = [np.maximum.accumulate(asked.hi[side]) for side in (0, 1)]
    is_new = np.concatenate([[True], asked.ends[1:] != asked.ends[:-1]])
    stops = np.append(np.flatnonzero(is_new)[1:], count)  # one past the windows of each end
    begin = end_index = 0
    while begin < count:
        rows, columns = (last[side][stops[end_index:] - 1] - first[side][begin] for side in (0, 1))
        entries = rows.astype(np.float64) * columns * groups
        if entries[0] > MOST_ENTRIES:
            raise TooManyGroupsError
        fitting = max(1, int(np.searchsorted(entries, MATRIX_ENTRIES, side="right")))
        end_index += fitting
        end = int(stops[end_index - 1])
        if entries[0] > SPARSE_ENTRIES and entries[fitting - 1] > matches * (end - begin):
            raise TooManyGroupsError  # nearly all entries would be empty
        yield _Portion(
            np.arange(begin, end),
            (int(first[0][begin]), int(first[1][begin])),
            (int(last[0][end - 1]), int(last[1][end - 1])),
        )
        begin = end


def _moved(folded: Folded, numbers: Sequence[Sequence[int]]) -> Folded:
    """Return the component with other numbers for the components of both sides."""

    def every(components: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(numbers[side][component] for side, component in enumerate(components))

    match folded:
        case SideComponent(side=side, component=component, weights=weights):
            return SideComponent(side, numbers[side][component], every(weights))
        case SumOfProducts(products=products, counted=counted):
            signed = tuple(replace(product, factors=every(product.factors)) for product in products)
            return SumOfProducts(signed, None if counted is None else replace(counted, factors=every(counted.factors)))
    raise AssertionError("a matrix folds no extrema of both sides")


def _relation(
    plan: Plan, join: PlannedJoin, side: int, cells: Cells, components: Sequence[Component], types: FoldTypes
) -> JoinedRows:
    """Return the cells of a set as rows of a side, whose ends are not used."""
    partial_set, _, member = plan.side(join.sides[side])
    positions = {planned.component: i for i, planned in enumerate(partial_set.components)}

    values = []
    for component in components:
        lifted = cells.lifted[positions[component]]
        assert isinstance(lifted, ComponentColumns), "a matrix folds no lists"
        values.append(cell_values(lifted))
    keys = [cells.keys[position] for position in member.group_positions]
    ends = np.zeros(len(cells), np.int32)
    return relation_of(side, SideRows(keys, cells.group_bounds, ends, tuple(values)), types)
