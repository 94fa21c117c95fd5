"""Edges of every union of a few edge sets at once, by inclusion and exclusion on residue classes (F1, source C, Eq. 2).

F1 as printed sums ±1/lcm over all groups of slides. An edge class has a residue too: a group of classes meets in one
class of period lcm if all residues agree modulo the gcds (Chinese remainder theorem), and nowhere otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from windloom.slicing.density import Class
from windloom.slicing.edges import EdgeSet

#: Edge sets up to this many have a table: 4,096 unions.
TABLE_SETS = 12


def meet(one: Class, other: Class) -> Class | None:
    """The class of ticks in both, or None where they never meet.

    >>> meet((9, 3), (6, 0))
    (18, 12)
    >>> meet((4, 1), (6, 0)) is None
    True
    """
    (period, residue), (other_period, other_residue) = one, other
    common = gcd(period, other_period)
    distance, rest = divmod(other_residue - residue, common)
    if rest:
        return None
    modulus = other_period // common
    steps = distance * pow(period // common, -1, modulus) % modulus if modulus > 1 else 0
    return period * modulus, residue + period * steps


def union_table(sets: Sequence[EdgeSet]) -> NDArray[np.float64]:
    """Edges per tick of the union of every subset of `sets`; subset S is the entry at the sum of 2^i, i in S.

    Classes of one set must not meet each other, as those of one window never do.

    >>> from windloom.slicing.edges import EdgeClass
    >>> union_table([EdgeSet((EdgeClass(2),)), EdgeSet((EdgeClass(3),))])
    array([0.        , 0.5       , 0.33333333, 0.66666667])
    """
    common: list[list[Class]] = [[(1, 0)]]
    for edges in sets:
        classes = [(one.period, one.residue) for one in edges.classes]
        common += [
            [met for one in held for other in classes if (met := meet(one, other)) is not None] for held in common
        ]
    table = np.array([sum(1.0 / period for period, _ in held) for held in common])
    sizes = np.bitwise_count(np.arange(len(table), dtype=np.uint64)).astype(np.int64)
    table *= np.where(sizes % 2, 1.0, -1.0)
    table[0] = 0.0
    shaped = table.reshape((2,) * len(sets))
    for axis in range(len(sets)):  # the sum over all subsets of each subset
        np.add.accumulate(shaped, axis=axis, out=shaped)
    return table
