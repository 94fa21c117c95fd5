"""Cells: the non-empty (group, slice) pairs, sorted; coarsening them to the slices of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates import lift
from windloom.aggregates.arrow import arrow_type, as_array, as_integers
from windloom.aggregates.lifted import AnyLifted, Lifted, concat, keep, keep_none, merge, place
from windloom.aggregates.listed import Listed
from windloom.kernels.cells.merge import running_values
from windloom.kernels.cells.place import Places, place_starts, places_of
from windloom.kernels.compiling.compiled import compiled
from windloom.plan.scans import NativeScan
from windloom.rounds.groups import concat_keys, number_groups
from windloom.slicing.edges import EdgeSet
from windloom.slicing.identify import PaneSlice


@dataclass(frozen=True, slots=True)
class Cells:
    """Cell i belongs to the group whose bounds hold i and to the slice that begins at `starts[i]`."""

    keys: list[pa.Array]  # the distinct group keys, one array per grouping column
    group_bounds: NDArray[np.int64]
    starts: NDArray[np.int64]
    lifted: tuple[AnyLifted, ...]  # one for each component of the set

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
    def tuples(self) -> NDArray[np.int64]:
        """COUNT(*) of every cell: the first component of every set."""
        counted = self.lifted[0]
        assert isinstance(counted, Lifted)
        count: NDArray[np.int64] = counted.limbs[0].value
        return count


def read_partials(native_scan: NativeScan, table: pa.Table) -> Cells:
    """Sorted, merged cells from partials as they came: columns `slice`, keys, then each component's fields.

    Partials of the same slice and group (from several tasks, rounds or panes) become one cell.
    """
    starts = as_integers(table.column(0))
    if isinstance(native_scan.slice_id, PaneSlice) and len(starts):
        panes, place = np.unique(starts, return_inverse=True)
        starts = native_scan.edges.last_edge(panes)[place]
    key_columns = table.columns[1 : 1 + len(native_scan.key_types)]
    keys = [as_array(key).cast(arrow_type(kind)) for key, kind in zip(key_columns, native_scan.key_types, strict=True)]
    numbers, distinct = number_groups(keys, len(starts))
    arranged = arrange(numbers, len(distinct[0]) if distinct else 1, starts)
    del keys, numbers
    fields = iter(table.columns[1 + len(native_scan.key_types) :])
    # Component by component, so that only one of them is held twice while it is sorted.
    lifted = tuple(
        arranged.merge(lift(planned, [next(fields) for _ in planned.fields])) for planned in native_scan.components
    )
    return Cells(distinct, arranged.group_bounds, arranged.starts, lifted)


def merge_cells(kept: Cells, fresh: Cells) -> Cells:
    """The cells of both; those with the same group and slice are combined."""
    return merge_released([kept, fresh])


def merge_all(parts: Sequence[Cells]) -> Cells:
    """The cells of all parts; those with the same group and slice are combined, in the order of the parts."""
    return merge_released(list(parts))


def merge_released(parts: list[Cells]) -> Cells:
    """Like `merge_all`. The list is emptied, so that memory nobody else holds is freed component by component."""
    held = [part for part in parts if len(part)] or parts[:1]
    parts.clear()
    if len(held) == 1:
        return held.pop()
    numbers, keys = number_groups(concat_keys(*(part.keys for part in held)), sum(part.groups for part in held))
    own_numbers = np.split(numbers, np.cumsum([part.groups for part in held])[:-1])
    groups = len(keys[0]) if keys else 1
    starts = [part.starts for part in held]
    followed = places_of(starts, [part.group_bounds for part in held], own_numbers, groups)
    arranged = None
    if followed is None or any(isinstance(component, Listed) for component in held[0].lifted):
        which = [number[group_of_cells(part)] for number, part in zip(own_numbers, held, strict=True)]
        arranged = arrange(np.concatenate(which), groups, np.concatenate(starts))
        del which
    waiting = [list(part.lifted[::-1]) for part in held]
    held.clear()
    lifted: list[AnyLifted] = []
    while waiting[0]:
        lifted.append(_merged([components.pop() for components in waiting], followed, arranged))
    if arranged is not None:
        return Cells(keys, arranged.group_bounds, arranged.starts, tuple(lifted))
    assert followed is not None
    bounds, places = followed
    merged_starts = np.empty(bounds[-1], np.int64)
    for own_starts, own in zip(starts, places, strict=True):
        place_starts(own_starts, own.bounds, own.first, merged_starts)
    return Cells(keys, bounds, merged_starts, tuple(lifted))


def _merged(
    parts: list[AnyLifted], followed: tuple[NDArray[np.int64], list[Places]] | None, arranged: Arrangement | None
) -> AnyLifted:
    """One component of all parts: put at its places if the parts follow one another, otherwise arranged."""
    values = [part for part in parts if isinstance(part, Lifted)]
    if followed is not None and values:
        bounds, places = followed
        return place(values, places, int(bounds[-1]))
    assert arranged is not None
    return arranged.merge(concat(*parts))


def keep_from(cells: Cells, tick: int | NDArray[np.int64]) -> Cells:
    """Only the cells of slices that begin at `tick` or later; `tick` may differ from cell to cell."""
    return keep_cells(cells, cells.starts >= tick)


def keep_cells(cells: Cells, wanted: NDArray[np.bool_]) -> Cells:
    """Only some cells; `wanted` has one entry per cell."""
    if wanted.all():
        return cells
    if not wanted.any():  # at the end of a batch run, for example
        none = tuple(keep_none(component) for component in cells.lifted)
        return _sorted_cells(
            np.empty(0, np.int64), [key.slice(0, 0) for key in cells.keys], np.empty(0, np.int64), none
        )
    lifted = tuple(keep(component, wanted) for component in cells.lifted)
    numbers, keys = _drop_unused(group_of_cells(cells)[wanted], cells.keys)
    return _sorted_cells(numbers, keys, cells.starts[wanted], lifted)


def keep_groups(cells: Cells, wanted: NDArray[np.bool_]) -> Cells:
    """Only the cells of some groups; `wanted` has one entry per group."""
    if wanted.all():
        return cells
    sizes = np.diff(cells.group_bounds)
    held = np.repeat(wanted, sizes)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[wanted])])
    keys = [key.filter(pa.array(wanted)) for key in cells.keys]
    return Cells(keys, bounds, cells.starts[held], tuple(keep(component, held) for component in cells.lifted))


def move_cells(cells: Cells, starts: NDArray[np.int64]) -> Cells:
    """The same cells at other slice starts; those that then have the same group and start are combined."""
    return _sorted_cells(group_of_cells(cells), cells.keys, starts, cells.lifted)


def coarsen(cells: Cells, edges: EdgeSet) -> tuple[Cells, NDArray[np.int64]]:
    """The cells of the slices between `edges`, and the bounds of each one's run of finer cells."""
    periods = np.array([edge_class.period for edge_class in edges.classes], np.int64)
    residues = np.array([edge_class.residue for edge_class in edges.classes], np.int64)
    runs = np.empty(len(cells) + 1, np.int64)
    starts = np.empty(len(cells), np.int64)
    bounds = np.empty_like(cells.group_bounds)
    count = _slice_runs(cells.starts, cells.group_bounds, periods, residues, runs, starts, bounds)
    runs = runs[: count + 1]
    order = np.arange(len(cells), dtype=np.int64)
    lifted = tuple(merge(component, order, runs) for component in cells.lifted)
    return Cells(cells.keys, bounds, starts[:count].copy(), lifted), runs


def running(lifted: Lifted, runs: NDArray[np.int64]) -> Lifted:
    """The value of each cell accumulated from the start of its run: the running value that Cutty reads at a mark."""

    def accumulated(limb: object) -> object:
        out = type(limb)(*(np.empty_like(column) for column in limb))  # type: ignore[attr-defined]
        running_values(limb, runs, out)
        return out

    return lifted.map_limbs(accumulated)


def group_of_cells(cells: Cells) -> NDArray[np.int64]:
    return np.repeat(np.arange(cells.groups), np.diff(cells.group_bounds))


def _drop_unused(numbers: NDArray[np.int64], keys: list[pa.Array]) -> tuple[NDArray[np.int64], list[pa.Array]]:
    used, renumbered = np.unique(numbers, return_inverse=True)
    return renumbered.astype(np.int64), [key.take(pa.array(used)) for key in keys]


def _sorted_cells(
    numbers: NDArray[np.int64], keys: list[pa.Array], starts: NDArray[np.int64], lifted: Iterable[AnyLifted]
) -> Cells:
    arranged = arrange(numbers, len(keys[0]) if keys else 1, starts)
    return Cells(keys, arranged.group_bounds, arranged.starts, tuple(arranged.merge(component) for component in lifted))


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Cells in order of group and slice; those with the same group and slice form a run that becomes one cell."""

    order: NDArray[np.int64]
    runs: NDArray[np.int64]
    starts: NDArray[np.int64]
    group_bounds: NDArray[np.int64]

    def merge(self, lifted: AnyLifted) -> AnyLifted:
        return merge(lifted, self.order, self.runs)


def arrange(
    numbers: NDArray[np.int64], groups: int, starts: NDArray[np.int64], places: NDArray[np.int64] | None = None
) -> Arrangement:
    """Arranges cells by groups (`numbers`) and `starts`; with `places`, only those cells, which `order` then names."""
    order, bounds = np.empty(len(starts), np.int64), np.zeros(groups + 1, np.int64)
    _order_cells(numbers, starts, order, bounds)
    runs = np.empty(len(starts) + 1, np.int64)
    merged_starts, merged_bounds = np.empty(len(starts), np.int64), np.empty(groups + 1, np.int64)
    count = _equal_runs(starts, order, bounds, runs, merged_starts, merged_bounds)
    if places is not None:
        order = places[order]
    return Arrangement(order, runs[: count + 1], merged_starts[:count], merged_bounds)


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
