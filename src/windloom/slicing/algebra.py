"""Edges of every union of a few edge sets at once, by inclusion and exclusion on residue classes (F1, source C, Eq. 2).

F1 as printed sums ±1/lcm over all groups of slides. An edge class also has a residue: a group of classes meets in one
class of period lcm if all residues agree modulo the gcds (Chinese remainder theorem), and nowhere otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windloom.model.arrays import Ints
from windloom.slicing.drawn import compiled, first_held
from windloom.slicing.edges import EdgeSet

#: Up to this many edge sets have a table, of 4,096 unions.
TABLE_SETS = 12
#: Classes that meet less often than once in this many panes are left out: they are below rounding errors.
LONGEST = 1 << 62


def union_table(sets: Sequence[EdgeSet]) -> NDArray[np.float64]:
    """Edges per tick of the union of every subset of `sets`; subset S is the entry at the sum of 2^i, i in S.

    Classes of one set must not meet each other, as those of one window never do.

    >>> from windloom.slicing.edges import EdgeClass
    >>> union_table([EdgeSet((EdgeClass(2),)), EdgeSet((EdgeClass(3),))])
    array([0.        , 0.5       , 0.33333333, 0.66666667])
    """
    pane = EdgeSet(tuple(sorted({edge_class for edges in sets for edge_class in edges.classes}))).pane
    subsets, periods, residues = np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64)
    for i, edges in enumerate(sets):
        own_periods = np.array([edge_class.period // pane.period for edge_class in edges.classes], np.int64)
        own_residues = np.array(
            [(edge_class.residue - pane.residue) // pane.period for edge_class in edges.classes], np.int64
        )
        met = _meet(subsets, periods, residues, own_periods, own_residues % own_periods, 1 << i)
        subsets, periods, residues = (
            np.concatenate(both) for both in zip((subsets, periods, residues), met, strict=True)
        )
    table = np.bincount(subsets, 1.0 / periods, 1 << len(sets)).astype(np.float64)
    sizes = np.bitwise_count(np.arange(len(table), dtype=np.uint64)).astype(np.int64)
    table *= np.where(sizes % 2, 1.0, -1.0)
    table[0] = 0.0
    shaped = table.reshape((2,) * len(sets))
    for axis in range(len(sets)):  # the sum over all subsets of each subset
        np.add.accumulate(shaped, axis=axis, out=shaped)
    return np.asarray(table / pane.period)


@compiled
def _meet(
    subsets: Ints, periods: Ints, residues: Ints, own_periods: Ints, own_residues: Ints, bit: int
) -> tuple[Ints, Ints, Ints]:
    """Every class intersected with every class of one more set, whose subset is `bit`."""
    room = len(subsets) * len(own_periods)
    met_subsets, met_periods, met_residues = (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )
    count = 0
    for i in range(len(subsets)):
        for own in range(len(own_periods)):
            first, every = first_held(periods[i], residues[i], 0, own_periods[own], own_residues[own])
            if first < 0 or every > LONGEST // periods[i]:
                continue
            met_subsets[count] = subsets[i] | bit
            met_periods[count] = periods[i] * every
            met_residues[count] = residues[i] + periods[i] * first
            count += 1
    return met_subsets[:count].copy(), met_periods[:count].copy(), met_residues[:count].copy()
