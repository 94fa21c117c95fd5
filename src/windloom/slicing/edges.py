"""The exact edges of any set of windows, as residue classes: the composite slide is never enumerated.

An edge class is every tick t with t ≡ residue (mod period). The edges of a tree are a union of such classes;
its edge rate is the density of that union. Weaveability and plan cost (Weave Share, Eq. 1–4) follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from windloom.model.arrays import Ints
from windloom.model.time import TICKS_PER_SECOND
from windloom.slicing.density import Density, compiled, first_held, union_density


@dataclass(frozen=True, slots=True, order=True)
class EdgeClass:
    """All ticks `k·period + residue`."""

    period: int
    residue: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "residue", self.residue % self.period)

    def covers(self, other: EdgeClass) -> bool:
        """Return whether every edge of `other` is also an edge of this class."""
        return other.period % self.period == 0 and other.residue % self.period == self.residue


@dataclass(frozen=True)
class EdgeSet:
    """The union of edge classes, without classes that another one covers; sorted, so equal sets compare equal.

    >>> EdgeSet.of([EdgeClass(4), EdgeClass(2), EdgeClass(6, 3)]).classes
    (EdgeClass(period=2, residue=0), EdgeClass(period=6, residue=3))
    """

    classes: tuple[EdgeClass, ...]

    @classmethod
    def of(cls, classes: Iterable[EdgeClass]) -> EdgeSet:
        return cls(_without_covered(tuple(sorted(set(classes)))))

    def union(self, other: EdgeSet) -> EdgeSet:
        return self if self == other else EdgeSet.of(self.classes + other.classes)

    @cached_property
    def composite_slide(self) -> int:
        """The number of ticks after which the edges repeat; it may be astronomically large."""
        return lcm(*(edge_class.period for edge_class in self.classes))

    @cached_property
    def pane(self) -> EdgeClass:
        """The coarsest regular class that holds every edge."""
        first = self.classes[0].residue
        step = gcd(
            *(edge_class.period for edge_class in self.classes),
            *(edge_class.residue - first for edge_class in self.classes),
        )
        return EdgeClass(step, first)

    @cached_property
    def density(self) -> Density:
        """Edges per tick."""
        return union_density(tuple((edge_class.period, edge_class.residue) for edge_class in self.classes))

    @cached_property
    def edges_per_second(self) -> float:
        return float(self.density.value) * TICKS_PER_SECOND

    @property
    def count_per_composite(self) -> int | None:
        """Edges in one composite slide; None if the density is not exact."""
        return int(self.density.value * self.composite_slide) if self.density.exact else None

    def last_edge(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each tick, the latest edge at or before it: the start of the slice that holds the tick."""
        best = np.full(len(ticks), np.iinfo(np.int64).min, dtype=np.int64)
        for edge_class in self.classes:
            np.maximum(best, ticks - (ticks - edge_class.residue) % edge_class.period, out=best)
        return best


def weaveability(left: EdgeSet, right: EdgeSet) -> float:
    """Return common edges as a share of all edges of the two sets (Weave Share, Eq. 4)."""
    both = left.union(right).density.value
    return float((left.density.value + right.density.value - both) / both)


def common_edges(members: Sequence[EdgeSet], union: EdgeSet) -> float:
    """Return the weaveability of any number of sets, whose union is given: 1 if all edges are the same."""
    if len(members) == 1:
        return 1.0
    rate = union.edges_per_second
    return (sum(edge_set.edges_per_second for edge_set in members) - rate) / (rate * (len(members) - 1))


@lru_cache(maxsize=65_536)
def _without_covered(classes: tuple[EdgeClass, ...]) -> tuple[EdgeClass, ...]:
    needed: list[EdgeClass] = []
    by_period: dict[int, set[int]] = {}
    for edge_class in classes:  # ascending periods: only a shorter period can cover a longer one
        covered = any(
            edge_class.period % period == 0 and edge_class.residue % period in residues
            for period, residues in by_period.items()
        )
        if not covered:
            needed.append(edge_class)
            by_period.setdefault(edge_class.period, set()).add(edge_class.residue)
    return tuple(needed)


# Edges of every union of a few edge sets at once, by inclusion and exclusion on residue classes (F1, source C, Eq. 2).
#
# F1 as printed sums ±1/lcm over all groups of slides. An edge class also has a residue: a group of classes meets in one
# class of period lcm if all residues agree modulo the gcds (Chinese remainder theorem), and nowhere otherwise.

#: Up to this many edge sets have a table, of 4,096 unions.
TABLE_SETS = 12
#: Classes that meet less often than once in this many panes are left out: they are below rounding errors.
LONGEST = 1 << 62


def union_table(sets: Sequence[EdgeSet]) -> NDArray[np.float64]:
    """Return edges per tick of the union of every subset of `sets`; subset S is the entry at the sum of 2^i, i in S.

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
    """Return every class intersected with every class of one more set, whose subset is `bit`."""
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
