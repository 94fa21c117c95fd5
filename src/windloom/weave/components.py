"""Components of a set from tuples: what each kind keeps per cell, as the native partials would have it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.kernels.families import LOWEST, AddFloat, AddInt, MaxInt, Moments
from windloom.model.aggregate import ComponentKind, Family
from windloom.model.approximate import MOST_ENTRIES, PACKED_RANK_BITS, REGISTERS
from windloom.model.types import TypeKind
from windloom.plan.physical import PlannedComponent
from windloom.plan.woven import WovenComponent
from windloom.rounds.lift import AnyLifted, Lifted, lift, without_unused
from windloom.rounds.listed import Listed
from windloom.weave.block import Bits, Block, Chosen
from windloom.weave.columns import Column
from windloom.weave.grid import Grid, Kept
from windloom.weave.lists import count_values, largest_ranks, most_frequent
from windloom.weave.updates import (
    add_floats,
    add_squares,
    count_rows,
    keep_largest,
    keep_smallest,
    pick_rows,
    sum_floats,
    sum_halves,
    sum_integers,
    sum_limbs,
)

Ints = NDArray[np.int64]

_NOTHING_KNOWN = np.empty(0, np.bool_)


@dataclass(frozen=True, slots=True)
class Cut:
    """A set's tuples in its grid: those with the bits `own`, and the cells that hold any of them."""

    block: Block
    grid: Grid
    own: Bits
    kept: Kept

    def component(self, planned: PlannedComponent, read: WovenComponent) -> AnyLifted:
        """One component over the kept cells."""
        bits = self.own if read.filter is None else tuple(sorted({*self.own, read.filter}))
        kind = planned.component.kind
        if planned.family.is_list:
            return self._list(planned, read, bits)
        if kind.is_pick:
            return self._pick(planned, read, bits)
        if kind in (ComponentKind.COUNT_STAR, ComponentKind.COUNT):
            return Lifted((AddInt(self._taken(self.block.counts(self.grid, bits, read.argument))),))
        assert read.argument is not None
        column, chosen = self.block.column(read.argument), self.block.chosen(bits, read.argument)
        counts = self.block.counts(self.grid, bits, read.argument)
        if kind is ComponentKind.MOMENTS:
            return self._moments(column, chosen, counts)
        valid = self._taken(counts)
        some = None if (valid > 0).all() else AddInt(valid)
        if planned.family is Family.MAX_INT:
            return self._extremum(column, chosen, some, lowest=kind.is_lowest)
        return Lifted(self._sum(planned, column, chosen), some)

    def _taken(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Of the kept cells, in their order."""
        return values[self.kept.cells]

    def _sum(self, planned: PlannedComponent, column: Column, chosen: Chosen) -> tuple[AddInt | AddFloat, ...]:
        argument = planned.argument_type
        assert argument is not None
        where = self.grid.cells, chosen.rows, chosen.every
        if argument.kind is TypeKind.FLOAT:
            high, low = np.zeros(len(self.grid)), np.zeros(len(self.grid))
            sum_floats(*where, column.floats, high, low)
            return (AddFloat(self._taken(high), self._taken(low)),)
        if argument.kind is TypeKind.DECIMAL:
            parts = [np.zeros(len(self.grid), np.int64) for _ in range(4)]
            sum_limbs(*where, column.limbs, *parts)
        elif len(planned.fields) == 1:
            parts = [np.zeros(len(self.grid), np.int64)]
            sum_integers(*where, column.integers, *parts)
        else:
            parts = [np.zeros(len(self.grid), np.int64) for _ in range(2)]
            sum_halves(*where, column.integers, *parts)
        return tuple(AddInt(self._taken(part)) for part in parts)

    def _extremum(self, column: Column, chosen: Chosen, valid: AddInt | None, *, lowest: bool) -> Lifted:
        largest = np.full(len(self.grid), LOWEST)
        update = keep_smallest if lowest else keep_largest
        update(self.grid.cells, chosen.rows, chosen.every, column.keys, largest)
        keys = MaxInt(self._taken(largest))
        if not column.is_ranked:
            return Lifted((keys,), valid)
        return without_unused(Lifted((keys,), valid, column.ranked.dictionary))

    def _moments(self, column: Column, chosen: Chosen, counts: Ints) -> Lifted:
        where = self.grid.cells, chosen.rows, chosen.every
        mean, square = np.zeros(len(self.grid)), np.zeros(len(self.grid))
        add_floats(*where, column.floats, mean)
        with np.errstate(invalid="ignore"):
            mean /= np.maximum(counts, 1)
        add_squares(*where, column.floats, mean, square)
        moments = (counts.astype(np.float64), mean, square)
        return Lifted((Moments(*(self._taken(one) for one in moments)),))

    def _pick(self, planned: PlannedComponent, read: WovenComponent, bits: Bits) -> AnyLifted:
        assert read.argument is not None
        assert read.by is not None
        by, value = self.block.column(read.by), self.block.column(read.argument)
        chosen = self.block.chosen(bits, read.by)
        picked = np.full(len(self.grid), -1, np.int64)
        known = _NOTHING_KNOWN if value.valid is None else value.valid
        lowest = planned.component.kind.is_lowest
        keys = by.equal_keys
        pick_rows(self.grid.cells, chosen.rows, chosen.every, keys, known, value.keys, lowest, picked)
        rows = self._taken(picked)
        places = pa.array(rows, mask=rows < 0)
        return lift(planned, [by.column.take(places), value.column.take(places)])

    def _list(self, planned: PlannedComponent, read: WovenComponent, bits: Bits) -> Listed:
        assert read.argument is not None
        kind, ranked = planned.component.kind, self.block.column(read.argument).ranked
        rows = self.block.in_order(bits, read.argument)
        counts = np.zeros(len(self.grid), np.int64)
        count_rows(self.grid.cells, rows, False, counts)
        where = self.grid.cells, counts, self.kept.cells
        if kind is ComponentKind.REGISTERS:
            packed = np.array(ranked.dictionary.to_numpy(zero_copy_only=False), np.int64)
            lists = largest_ranks(rows, ranked.ranks, packed, PACKED_RANK_BITS, *where)
            return Listed(kind, lists, pa.array(np.arange(REGISTERS))).without_unused()
        lists = count_values(rows, ranked.ranks, *where)
        if kind is ComponentKind.TOP_FREQUENCIES:
            lists = most_frequent(lists, MOST_ENTRIES)
        return Listed(kind, lists, ranked.dictionary).without_unused()
