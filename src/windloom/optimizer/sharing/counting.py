"""Edge counting: one interface, three methods, chosen by size.

| method   | counts                                              | chosen                                            |
|----------|-----------------------------------------------------|---------------------------------------------------|
| algebra  | inclusion and exclusion on residue classes; exact   | up to 12 bundles                                  |
| bit set  | all edges of one composite slide; exact             | else, where it has at most 4 million panes        |
| drawn    | edges drawn from every bundle; always the same ones | else                                              |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windloom.model.arrays import Floats
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.sharing.marks import drawn_marks, whole_marks
from windloom.slicing.algebra import TABLE_SETS, union_table
from windloom.slicing.edges import EdgeSet


class Forest(Protocol):
    """Trees while they are merged."""

    @property
    def rates(self) -> Floats: ...

    def unions(self, tree: int) -> Floats: ...

    def merge(self, left: int, right: int) -> None: ...


class EdgeCounter(Protocol):
    """Edges per second of trees of bundles."""

    @property
    def exact(self) -> bool: ...

    def forest(self, trees: Sequence[Sequence[int]]) -> Forest: ...

    def rates(self, trees: Sequence[Sequence[int]]) -> Floats: ...

    def toggled(self, tree: Sequence[int]) -> tuple[float, Floats]: ...


class Table:
    """Unions of all subsets, by algebra."""

    exact = True

    def __init__(self, sets: Sequence[EdgeSet]) -> None:
        self.unions = union_table(sets) * TICKS_PER_SECOND
        self._bits = 1 << np.arange(len(sets), dtype=np.int64)

    def places(self, trees: Sequence[Sequence[int]]) -> NDArray[np.int64]:
        return np.array([self._bits[list(tree)].sum() for tree in trees], np.int64)

    def forest(self, trees: Sequence[Sequence[int]]) -> TableForest:
        return TableForest(self.unions, self.places(trees))

    def rates(self, trees: Sequence[Sequence[int]]) -> Floats:
        return np.asarray(self.unions[self.places(trees)])

    def toggled(self, tree: Sequence[int]) -> tuple[float, Floats]:
        subset = self.places([tree])[0]
        return float(self.unions[subset]), np.asarray(self.unions[subset ^ self._bits])


class TableForest:
    def __init__(self, unions: Floats, places: NDArray[np.int64]) -> None:
        self._unions, self._places = unions, places

    @property
    def rates(self) -> Floats:
        return np.asarray(self._unions[self._places])

    def unions(self, tree: int) -> Floats:
        return np.asarray(self._unions[self._places | self._places[tree]])

    def merge(self, left: int, right: int) -> None:
        self._places[left] |= self._places[right]


def choose_counter(sets: Sequence[EdgeSet]) -> EdgeCounter:
    """The quickest exact method, or else the drawn one."""
    if len(sets) <= TABLE_SETS:
        return Table(sets)
    marks = whole_marks(sets)
    return drawn_marks(sets) if marks is None else marks
