"""A relation: groups with rows by end, and terms over these rows; of one side, or folded from several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.rounds.joins.held import Held, held_by_side
from windloom.rounds.joins.rows import FoldTypes, SideRows
from windloom.rounds.joins.terms import Term

#: A grouping column: its side, and its place among the grouping columns of the side.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows of the join of some `sides`. Rows `bounds[g] : bounds[g + 1]` belong to group g, and ascend by end."""

    sides: frozenset[int]
    columns: dict[Place, pa.Array]  # what is left of the groups' keys, by group; groups are distinct
    bounds: NDArray[np.int64]
    ends: NDArray[np.int32]
    held: Callable[[Term], Held]

    @property
    def groups(self) -> int:
        return len(self.bounds) - 1


def relation_of(number: int, side: SideRows, types: FoldTypes) -> Relation:
    """Return the relation of one side alone."""
    values_by_term: dict[Term, Held] = {}

    def term(wanted: Term) -> Held:
        if wanted not in values_by_term:
            values_by_term[wanted] = held_by_side(wanted, side.combined, types.sides[number])
        return values_by_term[wanted]

    columns = {(number, index): key for index, key in enumerate(side.keys)}
    return Relation(frozenset([number]), columns, side.bounds, side.ends, term)
