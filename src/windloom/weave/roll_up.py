"""Sets that differ in predicates, rolled up from cells by signature: tuples are aggregated once for all of them.

A native scan feeds its sets in this way: Spark's partials have the signature among their keys. A woven scan does so
where that is less work than to aggregate tuples for each set.

All tuples of one signature satisfy the same predicates and FILTERs. Where signatures are few, the cells of a
grouping, divided by signature, are few as well; the cells of a set are those whose signatures have its bit, merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.columns import AnyLifted, ComponentColumns, masked, valid_or_ones, without_unused
from windloom.aggregates.registry import PlannedComponent, neutral
from windloom.kernels.compiling import compiled
from windloom.kernels.families import AddInt
from windloom.kernels.tuples.grid import Grid, NonEmptyCells
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.signatures import SIGNATURE_BITS, Bits, Signatures
from windloom.kernels.tuples.tuples import Tuples
from windloom.kernels.tuples.updates import fold_values
from windloom.model.arrays import Codes
from windloom.model.types import arrow_type
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import FEW_CELLS, FEWEST_SIGNED, SIGNED_SHARE, KeyedFeed, NativeFeed, NativeScan, WovenFeed
from windloom.slicing.edges import EdgeSet
from windloom.state.cells import Cells, CellsBuilder, group_of_cells, last_edges, number_groups

#: A component without its FILTER, and what it reads: sets that differ in predicates and FILTERs share it.
Reading = tuple[PlannedComponent, ComponentInput]

#: What a tuple (or a cell by signature) costs, roughly in nanoseconds: to test a bit and list it, to find its cell, to
#: update a component.
_TEST, _NUMBER, _UPDATE = 1.0, 6.0, 2.5


class SignedCells:
    """The tuples of a grouping in cells by slice, group and signature, from which the cells of sets are made."""

    def __init__(self, tuples: Tuples, signatures: Signatures, grid: Grid, readings: Sequence[Reading]) -> None:
        self._tuples, self._signatures, self._grid = tuples, signatures, grid
        self._signature_of = signatures.codes[grid.row_of]
        every = np.arange(len(grid), dtype=np.int64)  # in order of slices, as coarser cells are numbered
        self._cut = SetTuples(tuples, grid, (), NonEmptyCells(every, np.array([0, len(grid)])))
        self._lifted: dict[Reading, ComponentColumns] = {}
        self._grids: dict[EdgeSet, Grid] = {}
        self._readings = readings

    def makers(self) -> list[Callable[[], None]]:
        """Return functions that make a component each, in any order or at once; `cells` is called after them."""

        def make(reading: Reading) -> None:
            planned, read = reading
            made = planned.aggregator.weave(planned, self._cut, read)
            assert isinstance(made, ComponentColumns), "lists are made from tuples"
            self._lifted[reading] = made

        return [partial(make, reading) for reading in self._readings]

    def cells(self, fed: WovenFeed, partial_set: PartialSet) -> Cells:
        """Return the cells of one set. Components that cannot be rolled up are made from tuples."""
        own = bits_of(fed)
        if all(map(_rolls_up, partial_set.components)):
            # The cells by slice and group alone; sets of the same slices share them, if one is made before the others.
            grid = self._grids.get(partial_set.edges)
            if grid is None:
                slices, grouping = self._tuples.slices, self._tuples.grouping(fed.groups)
                grid = self._grid.coarser(slices, slices.slicing(partial_set.edges), grouping)
                self._grids[partial_set.edges] = grid
            of_signed = grid.cells
        else:
            grid = self._tuples.grid(fed.groups, partial_set.edges)
            of_signed = grid.cells[self._grid.row_of]
        counts = np.zeros(len(grid), np.int64)
        rows = self._rows(own)
        fold_values(of_signed, rows, not own, AddInt(self._cut.counts(ComponentInput(), None)), AddInt(counts))
        kept = grid.holding(counts) if own else grid.every
        cut = SetTuples(self._tuples, grid, own, kept)
        keys = [key.cast(arrow_type(kind)) for key, kind in zip(grid.keys(kept), partial_set.group_types, strict=True)]
        built = CellsBuilder(keys, kept.bounds, grid.starts_of(kept))
        for planned, read in zip(partial_set.components, fed.components, strict=True):
            if _rolls_up(planned):
                built.add(self._rolled(planned, read, cut, of_signed, rows))
            else:
                built.add(planned.aggregator.weave(planned, cut, read))
        return built.build()

    def _rolled(
        self, planned: PlannedComponent, read: ComponentInput, cut: SetTuples, of_signed: Codes, rows_of_set: Codes
    ) -> AnyLifted:
        found = self._lifted[without_filter(planned, read)]
        nothing = neutral(planned, len(cut.grid))
        assert isinstance(nothing, ComponentColumns)
        bits = cut.own if read.filter is None else (*cut.own, read.filter)
        rows = rows_of_set if read.filter is None else self._rows(bits)
        for values, out in zip(found.limbs, nothing.limbs, strict=True):
            fold_values(of_signed, rows, not bits, values, out)
        limbs = tuple(type(out)(*map(cut.taken, out)) for out in nothing.limbs)
        if nothing.valid is None or (found.valid is None and read.filter is None):
            return without_unused(ComponentColumns(limbs, None, found.dictionary))
        fold_values(of_signed, rows, not bits, AddInt(valid_or_ones(found)), nothing.valid)
        valid = cut.taken(nothing.valid.value)
        return without_unused(ComponentColumns(limbs, None if (valid > 0).all() else AddInt(valid), found.dictionary))

    def _rows(self, bits: Bits) -> Codes:
        """The cells whose signatures have all these bits; without bits the list is empty, because all cells do."""
        rows = np.empty(len(self._grid) if bits else 0, np.int32)
        return rows[: _with_bits(self._signature_of, self._signatures.have(bits), rows)] if bits else rows


def bits_of(fed: WovenFeed | KeyedFeed) -> Bits:
    """Return the signature bits of the tuples of a feed."""
    return () if fed.bit is None else (fed.bit,)


def without_filter(planned: PlannedComponent, read: ComponentInput) -> Reading:
    if read.filter is None:
        return planned, read
    return replace(planned, component=replace(planned.component, where=None)), replace(read, filter=None)


def _rolls_up(planned: PlannedComponent) -> bool:
    """Not lists, which would be merged value by value, nor user-defined aggregates, which would be compiled again."""
    return not planned.family.is_list and planned.component.own is None


def sign_sets(
    tuples: Tuples, members: Sequence[tuple[WovenFeed, PartialSet]], *, always: bool = False
) -> dict[int, SignedCells]:
    """The cells that each set is rolled up from, by its number; sets that are better made from tuples are missing.

    With `always`, whatever can be rolled up is, whether that is less work or not.
    """
    by_groups: dict[tuple[int, ...], list[tuple[WovenFeed, PartialSet]]] = {}
    for fed, partial_set in members:
        window = partial_set.window
        if window.is_sliced and window.rolls_up and any(map(_rolls_up, partial_set.components)):
            by_groups.setdefault(fed.groups, []).append((fed, partial_set))
    found: dict[int, SignedCells] = {}
    for groups, sets in by_groups.items():
        if len({fed.bit for fed, _ in sets}) >= (1 if always else FEWEST_SIGNED) and tuples.has_signature:
            signed = _signed(tuples, groups, sets, always)
            if signed is not None:
                found |= {fed.number: signed for fed, _ in sets}
    return found


def _signed(
    tuples: Tuples, groups: tuple[int, ...], sets: Sequence[tuple[WovenFeed, PartialSet]], always: bool
) -> SignedCells | None:
    signatures = tuples.signatures(len(tuples) if always else None)
    if signatures is None:
        return None
    readings = list(dict.fromkeys(without_filter(planned, read) for planned, read in _plain(sets)))
    most = len(tuples) if always else _most_cells(tuples, sets, len(readings))
    if most <= 0:
        return None
    edges = EdgeSet.of(each for _, partial_set in sets for each in partial_set.edges.classes)
    grid = tuples.signed_grid(groups, edges, most)
    return None if grid is None else SignedCells(tuples, signatures, grid, readings)


def _plain(sets: Sequence[tuple[WovenFeed, PartialSet]]) -> list[Reading]:
    return [
        (planned, read)
        for fed, partial_set in sets
        for planned, read in zip(partial_set.components, fed.components, strict=True)
        if _rolls_up(planned)
    ]


def _most_cells(tuples: Tuples, sets: Sequence[tuple[WovenFeed, PartialSet]], readings: int) -> int:
    """With more cells than this, rolling them up would be no better than making each set from tuples."""
    from_tuples = from_a_cell = 0.0
    for fed, partial_set in sets:
        updates = _UPDATE * len(_plain([(fed, partial_set)]))
        chosen = tuples.count(bits_of(fed))
        from_tuples += chosen * updates
        from_a_cell += 2 * _TEST + updates * chosen / len(tuples)
        if fed.bit is not None and all(map(_rolls_up, partial_set.components)):
            from_tuples += len(tuples) * _TEST
    saved = SIGNED_SHARE * from_tuples - len(tuples) * (_NUMBER + readings * _UPDATE)
    return int(min(saved / from_a_cell, len(tuples) // FEW_CELLS))


def feed_sets(plan: Plan, scan: NativeScan, cells: Cells) -> dict[int, Cells]:
    """Return the cells of each set that a native scan feeds, by its number.

    `cells` are those of the scan, with its signature as the first keys.
    """
    if scan.is_plain and plan.sets[scan.feeds[0].number].edges == scan.edges:
        return {scan.feeds[0].number: cells}
    return {fed.number: _fed_cells(scan, cells, plan.sets[fed.number], fed) for fed in scan.feeds}


def _holds(cells: Cells, bit: int) -> NDArray[np.bool_]:
    """For each group of the scan: does its signature have the bit?"""
    word = cells.keys[bit // SIGNATURE_BITS].to_numpy(zero_copy_only=False)
    return np.asarray((word >> (bit % SIGNATURE_BITS)) & 1, np.bool_)


def _fed_cells(scan: NativeScan, cells: Cells, partial_set: PartialSet, fed: NativeFeed) -> Cells:
    group_of = group_of_cells(cells)
    wanted = None if fed.bit is None else _holds(cells, fed.bit)
    picked = np.flatnonzero(wanted[group_of]) if wanted is not None else np.arange(len(cells), dtype=np.int64)
    keys = [cells.keys[scan.signature.words + position] for position in fed.groups]
    if wanted is None:
        number_of, distinct = number_groups(keys, cells.groups)
    else:  # groups without a wanted cell have no number
        places = np.flatnonzero(wanted)
        numbers, distinct = number_groups([key.take(pa.array(places)) for key in keys], len(places))
        number_of = np.zeros(cells.groups, np.int64)
        number_of[places] = numbers
    starts = cells.starts[picked]
    if partial_set.edges != scan.edges:
        starts = last_edges(starts, partial_set.edges)
    built = CellsBuilder.of_groups(number_of[group_of[picked]], distinct, starts, picked)
    for planned, position, condition in zip(partial_set.components, fed.components, fed.filters, strict=True):
        component: AnyLifted = cells.lifted[position]
        if condition is not None:
            component = masked(component, neutral(planned, len(cells)), _holds(cells, condition)[group_of])
        built.add(component)
    return built.build()


@compiled
def _with_bits(signature_of, have, rows):  # type: ignore[no-untyped-def]
    """Writes the cells whose signature has the bits; returns their number."""
    count = 0
    for cell in range(len(signature_of)):
        rows[count] = cell
        count += have[np.uint32(signature_of[cell])]
    return count
