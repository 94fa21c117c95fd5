"""Cells: what is kept of tuples, per group and slice; and the builder through which all of them are made.

Tuples are woven into cells, native partials are read as cells, and both are rolled up, merged, coarsened, moved and
filtered; logs and snapshots read them back. All of these make cells in the shape that is drawn at `CellsBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windloom.aggregates.columns import AnyLifted, ComponentColumns, ListColumns, concat, keep, keep_none, merge, place
from windloom.aggregates.registry import lift, neutral
from windloom.kernels.compiling import compiled
from windloom.kernels.merge import place_starts, places_of, running_values, runs_of
from windloom.model.arrays import Ints, Mask
from windloom.model.types import arrow_type, as_array, as_integers
from windloom.plan.plan import PartialSet
from windloom.plan.scans import NativeScan
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import PaneSlice


def number_groups(keys: list[pa.Array], rows: int) -> tuple[Ints, list[pa.Array]]:
    """Return the group number of each row, and the distinct keys by number; without keys there is one group."""
    if not keys:
        return np.zeros(rows, np.int64), []
    numbers, distinct = _codes(keys[0])
    for key in keys[1:]:
        codes, count = _codes(key)
        # Numbers stay dense after every column, so the product never outgrows 64 bits.
        numbers, distinct = _codes(pa.array(numbers * count + codes))
    if rows == 0:
        return numbers, [key.slice(0, 0) for key in keys]
    a_row = np.empty(distinct, np.int64)
    a_row[numbers] = np.arange(rows)
    return numbers, [key.take(pa.array(a_row)) for key in keys]


def _codes(column: pa.Array) -> tuple[Ints, int]:
    """Return a number for each distinct value; as in Spark's grouping, NULL is a value, and NaN equals NaN."""
    encoded = column.dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, max(1, len(encoded.dictionary))


def concat_keys(*parts: list[pa.Array]) -> list[pa.Array]:
    """Return the keys of all parts, one part after the other, in the types of the first."""
    return [pa.concat_arrays([key.cast(columns[0].type) for key in columns]) for columns in zip(*parts, strict=True)]


def describe_group(keys: list[pa.Array], number: int) -> str:
    """Return a group as text, for error messages."""
    if not keys:
        return "(all)"
    values = [key[number].as_py() for key in keys]
    return ", ".join("NULL" if value is None else str(value) for value in values)


@dataclass(frozen=True, slots=True)
class Cells:
    """The non-empty pairs of a group and a slice; see `CellsBuilder` for their order."""

    keys: list[pa.Array]
    group_bounds: Ints
    starts: Ints
    lifted: tuple[AnyLifted, ...]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def groups(self) -> int:
        return len(self.group_bounds) - 1

    @property
    def nbytes(self) -> int:
        fixed: int = self.starts.nbytes + self.group_bounds.nbytes + sum(key.nbytes for key in self.keys)
        return fixed + sum(component.nbytes for component in self.lifted)

    @property
    def tuples(self) -> Ints:
        """COUNT(*) of every cell: the first component of every set."""
        counted = self.lifted[0]
        assert isinstance(counted, ComponentColumns)
        count: Ints = counted.limbs[0].value
        return count


class CellsBuilder:
    """Builds cells, one component after the other, in the shape that all readers of cells rely on.

        keys[k][g]   group_bounds[g]   starts[i]           lifted[c] of cell i
        A            0                 10:00 10:05 10:10   count 3 1 4, sum 30 7 25
        B            3                 10:05               count 2,     sum 11
                     4

    `keys` has an array per grouping column, each with a value per group; without grouping columns, there is one group.
    Cell i belongs to group g if `group_bounds[g] <= i < group_bounds[g + 1]`, and to the slice that begins at
    `starts[i]`. Within a group, starts ascend, and no two are equal. Every component in `lifted` is as long as
    `starts`; for a set, the first one is COUNT(*), which is never 0.

    A builder that is called with keys, bounds and starts takes components in this order. `of_rows` and `of_cells` make
    a builder that takes components of rows in any order: those of the same group and start become one cell.
    """

    def __init__(self, keys: list[pa.Array], group_bounds: Ints, starts: Ints) -> None:
        self._keys, self._bounds, self._starts = keys, group_bounds, starts
        self._lifted: list[AnyLifted] = []
        #: The order of rows by group and start, and the bounds of each cell's rows; None if every row is a cell.
        self._sorted: tuple[Ints, Ints] | None = None

    @classmethod
    def of_rows(cls, keys: list[pa.Array], starts: Ints) -> CellsBuilder:
        """Return a builder for rows that each have their own values of the grouping columns."""
        return cls.of_groups(*number_groups(keys, len(starts)), starts)

    @classmethod
    def of_cells(cls, cells: Cells, starts: Ints, keys: list[pa.Array] | None = None) -> CellsBuilder:
        """Return a builder for existing cells at other starts and, with `keys` (a value per group), in other groups."""
        numbers, distinct = group_of_cells(cells), cells.keys
        if keys is not None:
            number_of, distinct = number_groups(keys, cells.groups)
            numbers = number_of[numbers]
        return cls.of_groups(numbers, distinct, starts)

    @classmethod
    def of_groups(cls, numbers: Ints, keys: list[pa.Array], starts: Ints, picked: Ints | None = None) -> CellsBuilder:
        """Return a builder for rows of the groups `numbers`; with `picked`, components have more rows than these."""
        groups = len(keys[0]) if keys else 1
        order, bounds = np.empty(len(starts), np.int64), np.zeros(groups + 1, np.int64)
        _order_cells(numbers, starts, order, bounds)
        runs = np.empty(len(starts) + 1, np.int64)
        merged_starts, merged_bounds = np.empty(len(starts), np.int64), np.empty(groups + 1, np.int64)
        count = _equal_runs(starts, order, bounds, runs, merged_starts, merged_bounds)
        built = cls(keys, merged_bounds, merged_starts[:count])
        built._sorted = (order if picked is None else picked[order]), runs[: count + 1]
        return built

    def add(self, component: AnyLifted, *, is_merged: bool = False) -> None:
        """Add the next component, in the order of the builder's rows or, if it `is_merged`, of its cells."""
        self._lifted.append(component if is_merged or self._sorted is None else merge(component, *self._sorted))

    def build(self, components: Iterable[AnyLifted] = ()) -> Cells:
        """Return the cells, after adding these components one by one."""
        for component in components:
            self.add(component)
        return Cells(self._keys, self._bounds, self._starts, tuple(self._lifted))


def read_partials(native_scan: NativeScan, table: pa.Table) -> Cells:
    """Return cells of partials as they came: columns `slice`, keys, then each component's fields.

    Partials of the same slice and group (from several tasks, rounds or panes) become one cell.
    """
    starts = as_integers(table.column(0))
    if isinstance(native_scan.slice_id, PaneSlice):
        starts = last_edges(starts, native_scan.edges)
    key_columns = table.columns[1 : 1 + len(native_scan.key_types)]
    keys = [as_array(key).cast(arrow_type(kind)) for key, kind in zip(key_columns, native_scan.key_types, strict=True)]
    built = CellsBuilder.of_rows(keys, starts)
    del keys
    fields = iter(table.columns[1 + len(native_scan.key_types) :])
    # Component by component, so that only one of them is held twice while it is sorted.
    return built.build(lift(planned, [next(fields) for _ in planned.fields]) for planned in native_scan.components)


def roll_up(cells: Cells, finer: PartialSet, partial_set: PartialSet) -> Cells:
    """Return the cells of a set from those of a finer one; components that the finer set lacks are neutral."""
    places = {component: index for index, component in enumerate(finer.components)}
    if finer.components != partial_set.components:
        lifted = (
            cells.lifted[places[component]] if component in places else neutral(component, len(cells))
            for component in partial_set.components
        )
        cells = CellsBuilder(cells.keys, cells.group_bounds, cells.starts).build(lifted)
    is_sliced_alike = partial_set.edges.union(finer.edges) == partial_set.edges
    if partial_set.group_by == finer.group_by:
        return cells if is_sliced_alike else coarsen(cells, partial_set.edges)[0]
    starts = cells.starts if is_sliced_alike else last_edges(cells.starts, partial_set.edges)
    keys = [cells.keys[finer.group_by.index(expression)] for expression in partial_set.group_by]
    return CellsBuilder.of_cells(cells, starts, keys).build(cells.lifted)


def last_edges(ticks: Ints, edges: EdgeSet) -> Ints:
    """Return the last edge at or before each tick; many ticks are alike."""
    if not len(ticks):
        return ticks
    distinct, place = np.unique(ticks, return_inverse=True)
    return np.asarray(edges.last_edge(distinct)[place])


def merge_all(parts: Sequence[Cells]) -> Cells:
    """Return the cells of all parts; those with the same group and slice are combined, in the order of the parts."""
    return merge_released(list(parts))


def merge_released(parts: list[Cells]) -> Cells:
    """Like `merge_all`. The list is emptied, so that memory nobody else holds is freed component by component."""
    merging = [part for part in parts if len(part)] or parts[:1]
    parts.clear()
    if len(merging) == 1:
        return merging.pop()
    numbers, keys = number_groups(concat_keys(*(part.keys for part in merging)), sum(part.groups for part in merging))
    own_numbers = np.split(numbers, np.cumsum([part.groups for part in merging])[:-1])
    starts = [part.starts for part in merging]
    groups = len(keys[0]) if keys else 1
    followed = places_of(starts, [part.group_bounds for part in merging], own_numbers, groups)
    if followed is None:
        which = [number[group_of_cells(part)] for number, part in zip(own_numbers, merging, strict=True)]
        built = CellsBuilder.of_groups(np.concatenate(which), keys, np.concatenate(starts))
        del which
    else:
        bounds, places = followed
        merged_starts = np.empty(bounds[-1], np.int64)
        for own_starts, own in zip(starts, places, strict=True):
            place_starts(own_starts, own.bounds, own.first, merged_starts)
        built = CellsBuilder(keys, bounds, merged_starts)
        if any(isinstance(component, ListColumns) for component in merging[0].lifted):
            built._sorted = runs_of(places, int(bounds[-1]))
    remaining = [list(part.lifted[::-1]) for part in merging]
    merging.clear()
    while remaining[0]:
        components = [left.pop() for left in remaining]
        values = [component for component in components if isinstance(component, ComponentColumns)]
        if followed is not None and values:  # the parts follow one another: their cells are put at their places
            built.add(place(values, followed[1], int(followed[0][-1])), is_merged=True)
        else:
            built.add(concat(*components))
        del components, values
    return built.build()


def keep_from(cells: Cells, tick: int | Ints) -> Cells:
    """Return the cells of slices that begin at `tick` or later; `tick` may differ from cell to cell."""
    return keep_cells(cells, cells.starts >= tick)


def keep_cells(cells: Cells, wanted: Mask) -> Cells:
    """Return only some cells; `wanted` has one entry per cell. Groups without cells are dropped."""
    if wanted.all():
        return cells
    counts = np.bincount(group_of_cells(cells)[wanted], minlength=cells.groups)
    used = counts > 0 if cells.keys else np.ones(1, np.bool_)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[used], dtype=np.int64)])
    built = CellsBuilder([key.filter(pa.array(used)) for key in cells.keys], bounds, cells.starts[wanted])
    if not wanted.any():  # at the end of a batch run, for example
        return built.build(keep_none(component) for component in cells.lifted)
    return built.build(keep(component, wanted) for component in cells.lifted)


def keep_groups(cells: Cells, wanted: Mask) -> Cells:
    """Return only the cells of some groups; `wanted` has one entry per group."""
    return keep_cells(cells, np.repeat(wanted, np.diff(cells.group_bounds)))


def coarsen(cells: Cells, edges: EdgeSet) -> tuple[Cells, Ints]:
    """Return the cells of the slices between `edges`, and the bounds of each one's run of finer cells."""
    periods = np.array([edge_class.period for edge_class in edges.classes], np.int64)
    residues = np.array([edge_class.residue for edge_class in edges.classes], np.int64)
    runs = np.empty(len(cells) + 1, np.int64)
    starts = np.empty(len(cells), np.int64)
    bounds = np.empty_like(cells.group_bounds)
    count = _slice_runs(cells.starts, cells.group_bounds, periods, residues, runs, starts, bounds)
    runs = runs[: count + 1]
    order = np.arange(len(cells), dtype=np.int64)
    built = CellsBuilder(cells.keys, bounds, starts[:count].copy())
    return built.build(merge(component, order, runs) for component in cells.lifted), runs


def running(lifted: ComponentColumns, runs: Ints) -> ComponentColumns:
    """Accumulate the value of each cell from the start of its run: the running value that Cutty reads at a mark."""

    def accumulated(limb: object) -> object:
        out = type(limb)(*(np.empty_like(column) for column in limb))  # type: ignore[attr-defined]
        running_values(limb, runs, out)
        return out

    return lifted.map_limbs(accumulated)


def group_of_cells(cells: Cells) -> Ints:
    return np.repeat(np.arange(cells.groups), np.diff(cells.group_bounds))


@compiled
def _order_cells(numbers, starts, order, bounds):  # type: ignore[no-untyped-def]
    """Sorts by group (counting sort), then by slice start within each group."""
    for number in numbers:
        bounds[number + 1] += 1
    for group in range(len(bounds) - 1):
        bounds[group + 1] += bounds[group]
    place = bounds[:-1].copy()
    for i in range(len(numbers)):
        order[place[numbers[i]]] = i
        place[numbers[i]] += 1
    for group in range(len(bounds) - 1):
        run = order[bounds[group] : bounds[group + 1]]
        is_sorted = True
        for i in range(1, len(run)):
            if starts[run[i]] < starts[run[i - 1]]:
                is_sorted = False
                break
        if not is_sorted:
            run[:] = run[np.argsort(starts[run], kind="mergesort")]


@compiled
def _equal_runs(starts, order, bounds, runs, merged_starts, merged_bounds):  # type: ignore[no-untyped-def]
    count = 0
    for group in range(len(bounds) - 1):
        merged_bounds[group] = count
        for i in range(bounds[group], bounds[group + 1]):
            start = starts[order[i]]
            if i == bounds[group] or start != merged_starts[count - 1]:
                runs[count] = i
                merged_starts[count] = start
                count += 1
    merged_bounds[len(bounds) - 1] = count
    runs[count] = len(order)
    return count


@compiled
def _slice_runs(starts, bounds, periods, residues, runs, merged_starts, merged_bounds):  # type: ignore[no-untyped-def]
    count = 0
    for group in range(len(bounds) - 1):
        merged_bounds[group] = count
        next_edge = np.int64(0)
        for i in range(bounds[group], bounds[group + 1]):
            start = starts[i]
            if i == bounds[group] or start >= next_edge:
                last_edge = np.int64(-(2**63))
                next_edge = np.int64(2**63 - 1)
                for j in range(len(periods)):
                    edge = start - (start - residues[j]) % periods[j]
                    last_edge = max(last_edge, edge)
                    next_edge = min(next_edge, edge + periods[j])
                runs[count] = i
                merged_starts[count] = last_edge
                count += 1
    merged_bounds[len(bounds) - 1] = count
    runs[count] = len(starts)
    return count
