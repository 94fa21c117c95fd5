"""The tuples of one set in the grid of its slices and groups: what a card makes the set's cells from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from windloom.weave.columns import Column
from windloom.weave.grid import Grid, Kept
from windloom.weave.tuples import Bits, Codes, Ints, Tuples

Number = TypeVar("Number", bound=np.generic)

#: The cell of every tuple; the chosen tuples; whether all tuples are chosen: what every update kernel takes first.
Where = tuple[Codes, Codes, bool]


@dataclass(frozen=True, slots=True)
class Read:
    """Where a component finds what it reads: positions of columns, and the signature bit of its FILTER."""

    argument: int | None = None
    by: int | None = None  # a column, or TICK
    filter: int | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Tuples with the bits `own`, and the cells that hold any of them, in order of group and slice."""

    tuples: Tuples
    grid: Grid
    own: Bits
    kept: Kept

    def argument(self, read: Read) -> Column:
        assert read.argument is not None
        return self.tuples.column(read.argument)

    def where(self, read: Read, known: int | None) -> Where:
        """Tuples that count for a component: with `known`, those that have a value in that column."""
        chosen = self.tuples.chosen(self._bits(read), known)
        return self.grid.cells, chosen.rows, chosen.every

    def counts(self, read: Read, known: int | None) -> Ints:
        """How many of these each cell of the grid has."""
        return self.tuples.counts(self.grid, self._bits(read), known)

    def in_order(self, read: Read) -> Codes:
        """Tuples that have an argument, in its order."""
        assert read.argument is not None
        return self.tuples.in_order(self._bits(read), read.argument)

    def zeros(self, kind: type[Number]) -> NDArray[Number]:
        """A number for every cell of the grid."""
        return np.zeros(len(self.grid), kind)

    def taken(self, values: NDArray[Number]) -> NDArray[Number]:
        """Of values for every cell of the grid, those of the kept cells."""
        found: NDArray[Number] = values[self.kept.cells]
        return found

    def _bits(self, read: Read) -> Bits:
        return self.own if read.filter is None else tuple(sorted({*self.own, read.filter}))
