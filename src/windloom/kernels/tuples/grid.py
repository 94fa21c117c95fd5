"""The grid of a slicing and a grouping: a number for every (slice, group) that holds a tuple of the block.

Tuples are visited slice by slice, so the latest cell of each group shows whether a tuple begins a new cell: time
and memory depend on tuples and groups, never on slices × groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import RLock

import numpy as np
import pyarrow as pa

from windloom.kernels.compiling import compiled
from windloom.kernels.tuples.columns import CodedColumn, once
from windloom.kernels.tuples.slices import Slices, SliceStarts
from windloom.model.arrays import Codes, Ints

#: Up to this many combinations of grouping values in all, or this many per tuple, are numbered as a product; beyond
#: that, only those that occur are numbered.
SMALL_PRODUCT = 1 << 20
PER_TUPLE = 4


@dataclass(frozen=True, slots=True)
class TupleGroups:
    """The group of every tuple, below `count`; some numbers may have no tuple."""

    columns: tuple[CodedColumn, ...]
    codes: Codes
    count: int


def group_tuples(columns: Sequence[CodedColumn], tuples: int) -> TupleGroups:
    """Number the combinations of the columns' values; the values of the column with the most are side by side.

    Joins match groups by such a column more often than by one with few values.
    """
    if not columns:
        return TupleGroups((), np.empty(0, np.int32), 1)
    first, *rest = sorted(columns, key=lambda coded: -len(coded.dictionary))
    codes, count = first.codes, max(1, len(first.dictionary))
    for coded in rest:
        size = max(1, len(coded.dictionary))
        count *= size
        if is_small(count, tuples):
            codes, before = np.empty(tuples, np.int32), codes
            _multiply(before, size, coded.codes, codes)
        else:
            product = np.empty(tuples, np.int64)
            _multiply(codes, size, coded.codes, product)
            encoded = pa.array(product).dictionary_encode()
            codes = np.array(encoded.indices.to_numpy(zero_copy_only=False), np.int32)
            count = max(1, len(encoded.dictionary))
    return TupleGroups(tuple(columns), codes, count)


def is_small(count: int, tuples: int) -> bool:
    """Return whether `count` combinations may be numbered as a product."""
    return count <= max(SMALL_PRODUCT, PER_TUPLE * tuples)


def multiplied(grouping: TupleGroups, codes: Codes, count: int) -> TupleGroups:
    """Return a grouping divided by further codes below `count`; the product must be small."""
    if not len(grouping.codes):
        return TupleGroups(grouping.columns, codes, count)
    product = np.empty(len(codes), np.int32)
    _multiply(grouping.codes, count, codes, product)
    return TupleGroups(grouping.columns, product, grouping.count * count)


@dataclass(frozen=True, slots=True)
class NonEmptyCells:
    """The non-empty cells of a grid, in order of group and slice: their numbers, and the bounds of the groups.

    `is_all` if these are all numbers in ascending order.
    """

    cells: Ints
    bounds: Ints
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class CellNumbers:
    """The cell of every tuple; and for every cell, in order of slices, its slice, its group and one of its tuples."""

    cells: Codes
    slice_of: Codes
    group_of: Codes
    row_of: Codes


def number_cells(
    rows: Codes, of_tuple: Codes, slicing: SliceStarts, grouping: TupleGroups, most: int
) -> CellNumbers | None:
    """Number the cells of tuples, which `rows` has in order of their finest slices (empty: they are in that order).

    None if there are more than `most` cells.
    """
    tuples = len(of_tuple)
    room = min(most, tuples)
    cells = np.empty(tuples, np.int32)
    slice_of, group_of, row_of = (np.empty(room, np.int32) for _ in range(3))
    count = _number_cells(
        rows, of_tuple, slicing.of_fine, grouping.codes, grouping.count, cells, slice_of, group_of, row_of
    )
    if count < 0:
        return None
    # If much is cut off, its memory is given back.
    numbered = (column[:count] for column in (slice_of, group_of, row_of))
    return CellNumbers(cells, *(column if 2 * count > room else column.copy() for column in numbered))


class Grid:
    """The cells of a slicing and a grouping.

    `cells` is the cell of every tuple; `slice_of`, `group_of` and `row_of` are those of a cell.
    """

    def __init__(self, slicing: SliceStarts, grouping: TupleGroups, numbered: CellNumbers) -> None:
        self.lock = RLock()
        self.starts, self.grouping, self.cells = slicing.starts, grouping, numbered.cells
        self.slice_of, self.group_of, self.row_of = numbered.slice_of, numbered.group_of, numbered.row_of

    @classmethod
    def of(cls, slices: Slices, slicing: SliceStarts, grouping: TupleGroups, most: int | None = None) -> Grid | None:
        """Return the grid of all tuples; None if it has more than `most` cells."""
        tuples = len(slices.of_tuple)
        numbered = number_cells(slices.rows, slices.of_tuple, slicing, grouping, tuples if most is None else most)
        return None if numbered is None else cls(slicing, grouping, numbered)

    def coarser(self, slices: Slices, slicing: SliceStarts, grouping: TupleGroups) -> Grid:
        """Return a grid of fewer edges and groups. Its `cells` has an entry per cell of this one, not per tuple.

        Cells are numbered as they would be from tuples, because they also come slice by slice.
        """
        codes = grouping.codes[self.row_of] if len(grouping.codes) else grouping.codes
        of_cells = TupleGroups(grouping.columns, codes, grouping.count)
        in_order = np.empty(0, np.int32)
        numbered = number_cells(in_order, slices.of_tuple[self.row_of], slicing, of_cells, len(self))
        assert numbered is not None
        return Grid(slicing, grouping, replace(numbered, row_of=self.row_of[numbered.row_of]))

    def __len__(self) -> int:
        return len(self.slice_of)

    @once
    def every(self) -> NonEmptyCells:
        """All cells."""
        order, bounds = np.empty(len(self), np.int64), np.empty(self.grouping.count + 1, np.int64)
        is_all = bool(_order_by_group(self.group_of, order, bounds))
        return NonEmptyCells(order, np.append(bounds[:-1][bounds[1:] > bounds[:-1]], bounds[-1]), is_all)

    def holding(self, counts: Ints) -> NonEmptyCells:
        """Return cells whose count is not zero."""
        every = self.every
        kept_cells, kept_bounds = np.empty(len(every.cells), np.int64), np.empty(len(every.bounds), np.int64)
        cells, groups = _keep(every.cells, every.bounds, counts, kept_cells, kept_bounds)
        return NonEmptyCells(kept_cells[:cells], kept_bounds[: groups + 1])

    def keys(self, kept: NonEmptyCells) -> list[pa.Array]:
        """Return the groups' values, one array per grouping column."""
        rows = self.row_of[kept.cells[kept.bounds[:-1]]]
        return [coded.dictionary.take(pa.array(coded.codes[rows])) for coded in self.grouping.columns]

    def starts_of(self, kept: NonEmptyCells) -> Ints:
        """Return the start of the slice of each kept cell."""
        out = np.empty(len(kept.cells), np.int64)
        _take_starts(self.starts, self.slice_of, kept.cells, out)
        return out


@compiled
def _multiply(codes, size, others, product):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        product[i] = np.int64(codes[i]) * size + others[i]


@compiled
def _number_cells(rows, fine, of_fine, codes, groups, cells, slice_of, group_of, row_of):  # type: ignore[no-untyped-def]
    """Return the number of cells; -1 if there is no room for all."""
    last = np.full(groups, -1, np.int64)  # the latest slice of each group and its cell, in one word
    count = np.int64(0)
    for k in range(len(fine)):
        i = np.int64(rows[k]) if len(rows) else k
        part = of_fine[np.uint32(fine[i])]
        group = np.uint32(codes[i]) if len(codes) else np.uint32(0)
        latest = last[group]
        if latest >> 32 != part:
            if count == len(slice_of):
                return -1
            latest = np.int64(part) << 32 | count
            last[group] = latest
            slice_of[count] = part
            group_of[count] = group
            row_of[count] = i
            count += 1
        cells[i] = latest & 0xFFFFFFFF
    return count


@compiled
def _order_by_group(group_of, order, bounds):  # type: ignore[no-untyped-def]
    """Sort cells, which come in order of their slices, stably by group; return whether they were in order."""
    bounds[:] = 0
    latest = 0
    is_ordered = True
    for cell in range(len(group_of)):
        group = group_of[cell]
        bounds[group + 1] += 1
        is_ordered &= group >= latest
        latest = group
    for group in range(len(bounds) - 1):
        bounds[group + 1] += bounds[group]
    if is_ordered:
        for cell in range(len(group_of)):
            order[cell] = cell
        return True
    place = bounds[:-1].copy()
    for cell in range(len(group_of)):
        order[place[group_of[cell]]] = cell
        place[group_of[cell]] += 1
    return False


@compiled
def _take_starts(starts, slice_of, cells, out):  # type: ignore[no-untyped-def]
    for i in range(len(cells)):
        out[i] = starts[np.uint32(slice_of[np.uint64(cells[i])])]


@compiled
def take_values(values, cells, out):  # type: ignore[no-untyped-def]
    """Copy the values of some cells; NumPy does the same in twice the time, and holds the interpreter."""
    for i in range(len(cells)):
        out[i] = values[np.uint64(cells[i])]


@compiled
def _keep(order, bounds, counts, kept, kept_bounds):  # type: ignore[no-untyped-def]
    """Keep the cells with a count and their groups; return how many of both there are."""
    cells = 0
    groups = 0
    for group in range(len(bounds) - 1):
        first = cells
        for j in range(bounds[group], bounds[group + 1]):
            if counts[order[j]]:
                kept[cells] = order[j]
                cells += 1
        if cells > first:
            kept_bounds[groups] = first
            groups += 1
    kept_bounds[groups] = cells
    return cells, groups


# The grid of sessions: a cell for every run of a group's tuples without a pause longer than the gap.


class SessionGrid(Grid):
    """The cells of sessions: one for every run of tuples of a group without a pause.

    Only chosen tuples count, because others would bridge pauses. Tuples that are not chosen have no cell.
    """

    def __init__(self, ticks: Ints, gap: int, grouping: TupleGroups, rows: Codes, every: bool) -> None:
        self.lock = RLock()
        self.grouping = grouping
        chosen = len(ticks) if every else len(rows)
        order = np.empty(chosen, np.int32)
        _order_tuples(ticks, grouping.codes, grouping.count, rows, every, order)
        self.cells = np.zeros(len(ticks), np.int32)
        starts = np.empty(chosen, np.int64)
        group_of, row_of = np.empty(chosen, np.int32), np.empty(chosen, np.int32)
        count = _number_sessions(ticks, grouping.codes, order, gap, self.cells, starts, group_of, row_of)
        self.starts = starts[:count].copy()
        self.group_of, self.row_of = group_of[:count].copy(), row_of[:count].copy()
        self.slice_of = np.arange(count, dtype=np.int32)


@compiled
def _order_tuples(ticks, codes, groups, rows, every, order):  # type: ignore[no-untyped-def]
    """Order chosen tuples by group (a counting sort), then by tick within each group."""
    places = np.zeros(groups + 1, np.int64)
    for k in range(len(order)):
        i = k if every else np.int64(rows[k])
        places[(codes[i] if len(codes) else 0) + 1] += 1
    for group in range(groups):
        places[group + 1] += places[group]
    bounds = places.copy()
    for k in range(len(order)):
        i = k if every else np.int64(rows[k])
        group = codes[i] if len(codes) else 0
        order[places[group]] = i
        places[group] += 1
    for group in range(groups):
        run = order[bounds[group] : bounds[group + 1]]
        is_sorted = True
        for j in range(1, len(run)):
            if ticks[run[j]] < ticks[run[j - 1]]:
                is_sorted = False
                break
        if not is_sorted:
            run[:] = run[np.argsort(ticks[run], kind="mergesort")]


@compiled
def _number_sessions(ticks, codes, order, gap, cells, starts, group_of, row_of):  # type: ignore[no-untyped-def]
    """Number the sessions in order of group and time; a pause of exactly the gap does not end one."""
    count = 0
    last = np.int64(0)
    for k in range(len(order)):
        i = np.int64(order[k])
        group = np.int32(codes[i] if len(codes) else 0)
        if count == 0 or group != group_of[count - 1] or ticks[i] - last > gap:
            starts[count] = ticks[i]
            group_of[count] = group
            row_of[count] = i
            count += 1
        last = ticks[i]
        cells[i] = count - 1
    return count
