"""The tuples of one set in the grid of its slices and groups, from which a card makes the cells of the set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from windloom.model.arrays import Codes, Ints
from windloom.weave.columns import Column
from windloom.weave.grid import Grid, Kept, take_values
from windloom.weave.signatures import Bits
from windloom.weave.tuples import Tuples

Number = TypeVar("Number", bound=np.generic)

#: The first arguments of every update kernel: the cell of every tuple, the chosen tuples, whether all are chosen.
Where = tuple[Codes, Codes, bool]


@dataclass(frozen=True, slots=True)
class Read:
    """The input of a component: the positions of its columns, and the signature bit of its FILTER."""

    argument: int | None = None
    by: int | None = None  # a column, or TICK
    filter: int | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The tuples with the bits `own`, and the cells that hold any of them, in order of group and slice."""

    tuples: Tuples
    grid: Grid
    own: Bits
    kept: Kept
    _counts: dict[int, Ints] = field(default_factory=dict)

    def argument(self, read: Read) -> Column:
        assert read.argument is not None
        return self.tuples.column(read.argument)

    def where(self, read: Read, known: int | None) -> Where:
        """The tuples that count for a component; with `known`, those that have a value in that column."""
        chosen = self.tuples.chosen(self._bits(read), known)
        return self.grid.cells, chosen.rows, chosen.every

    def counts(self, read: Read, known: int | None) -> Ints:
        """The number of these tuples in each cell of the grid."""
        return self.tuples.counts(self.grid, self._bits(read), known)

    def kept_counts(self, read: Read, known: int | None) -> Ints:
        """The number of these tuples in each kept cell; components that count the same tuples share the counts."""
        counts = self.counts(read, known)
        if id(counts) not in self._counts:  # the tuples hold on to it
            self._counts[id(counts)] = self.taken(counts)
        return self._counts[id(counts)]

    def counts_all(self, read: Read, known: int | None) -> bool:
        """Whether all tuples of the set count: then every kept cell has at least one."""
        return self.tuples.chosen(self._bits(read), known) is self.tuples.chosen(self.own)

    def zeros(self, kind: type[Number]) -> NDArray[Number]:
        """A zero for every cell of the grid."""
        return np.zeros(len(self.grid), kind)

    def taken(self, values: NDArray[Number]) -> NDArray[Number]:
        """The values of the kept cells, from values of every cell of the grid."""
        if self.kept.is_all:
            return values
        out = np.empty(len(self.kept.cells), values.dtype)
        take_values(values, self.kept.cells, out)
        return out

    def _bits(self, read: Read) -> Bits:
        return self.own if read.filter is None else tuple(sorted({*self.own, read.filter}))
