"""The density of a union of residue classes: exact if possible, otherwise a repeatable estimate.

There are three methods, chosen by size. If the composite slide is short, its edges are marked in a bit set. Otherwise,
classes whose periods share no factor are independent (Chinese remainder theorem), and the rest is counted by
restricting classes to one another. Only if that recursion exceeds its budget, the density is estimated, with a bound on
the error, from edges drawn from every class, the same ones every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

import numpy as np

from windloom.slicing.drawn import fresh_edges, run_begins

#: Composite slides up to this many panes are counted by marking them.
BITSET_PANES = 1 << 20
#: Class restrictions examined before the count is estimated instead.
RECURSION_BUDGET = 8_000
#: Classes that may depend on each other before the count is estimated instead (each adds a level of recursion).
RECURSION_CLASSES = 60
#: Edges drawn for an estimate: from all classes together, and at least from each class.
DRAWN_EDGES = 1 << 18
SHORTEST_RUN = 32

Class = tuple[int, int]  # (period, residue), 0 <= residue < period


@dataclass(frozen=True, slots=True)
class Density:
    """Edges per tick, and a bound on the error of an estimate (three standard errors)."""

    value: Fraction
    exact: bool
    error: float = 0.0


class _BudgetSpentError(Exception):
    pass


@lru_cache(maxsize=65_536)
def union_density(classes: tuple[Class, ...]) -> Density:
    """The share of all ticks that lie in at least one class."""
    if not classes:
        return Density(Fraction(0), True)
    # The classes are shifted and scaled so that they share no common step: the same edges, counted in panes.
    first = classes[0][1]
    step = gcd(*(period for period, _ in classes), *(residue - first for _, residue in classes))
    panes = tuple((period // step, (residue - first) % period // step) for period, residue in classes)
    try:
        return Density(_exact(frozenset(panes), [RECURSION_BUDGET]) / step, True)
    except _BudgetSpentError:
        inside, error = _estimated(_drop_covered(frozenset(panes)))
    return Density(inside / step, False, error / step)


def _exact(classes: frozenset[Class], budget: list[int]) -> Fraction:
    budget[0] -= 1
    if budget[0] < 0:
        raise _BudgetSpentError
    needed = _drop_covered(classes)
    if not needed:
        return Fraction(0)
    if needed[0][0] == 1:
        return Fraction(1)
    if len(needed) == 1:
        return Fraction(1, needed[0][0])
    composite = lcm(*(period for period, _ in needed))
    if composite <= BITSET_PANES:
        marks = np.zeros(composite, dtype=np.bool_)
        for p, r in needed:
            marks[r::p] = True
        return Fraction(int(np.count_nonzero(marks)), composite)
    if len(needed) > RECURSION_CLASSES:
        raise _BudgetSpentError
    parts = _independent_parts(needed)
    if len(parts) > 1:
        missed = Fraction(1)
        for part in parts:
            missed *= 1 - _exact(frozenset(part), budget)
        return 1 - missed
    # Take one class from the rest: it adds its own edges, less those that the others already have.
    *rest, (period, residue) = needed
    others = frozenset(met for edge_class in rest if (met := _restrict(edge_class, period, residue)) is not None)
    return _exact(frozenset(rest), budget) + Fraction(1, period) * (1 - _exact(others, budget))


def _drop_covered(classes: frozenset[Class]) -> list[Class]:
    needed: list[Class] = []
    for period, residue in sorted(classes):
        if not any(period % p == 0 and residue % p == r for p, r in needed):
            needed.append((period, residue))
    return needed


def _independent_parts(classes: list[Class]) -> list[list[Class]]:
    """Groups of classes such that periods of different groups have no common factor."""
    parts: list[tuple[int, list[Class]]] = []
    for edge_class in classes:
        product, members, apart = edge_class[0], [edge_class], []
        for other_product, other_members in parts:
            if gcd(product, other_product) > 1:
                product, members = lcm(product, other_product), other_members + members
            else:
                apart.append((other_product, other_members))
        parts = [*apart, (product, members)]
    return [members for _, members in parts]


def _restrict(edge_class: Class, period: int, residue: int) -> Class | None:
    """The class restricted to `k·period + residue`, as a class of k; None if they never meet."""
    common = gcd(edge_class[0], period)
    distance, rest = divmod(edge_class[1] - residue, common)
    if rest:
        return None
    modulus = edge_class[0] // common
    if modulus == 1:
        return (1, 0)
    return (modulus, distance * pow(period // common, -1, modulus) % modulus)


def _estimated(classes: list[Class]) -> tuple[Fraction, float]:
    """The share of ticks in the union, and a bound on its error: three standard errors of the estimate.

    Each class in turn adds its own edges, less those that earlier classes hold; their share is estimated from a run of
    its edges.
    """
    shares = np.array([1.0 / period for period, _ in classes])
    lengths = np.maximum(SHORTEST_RUN, shares * (DRAWN_EDGES / shares.sum())).astype(np.int64)
    periods, residues = (np.array(column, np.int64) for column in zip(*classes, strict=True))
    fresh = fresh_edges(periods, residues, run_begins(classes), lengths) / lengths
    variance = float((shares**2 * fresh * (1 - fresh) / lengths).sum())
    value = Fraction(float((shares * fresh).sum())).limit_denominator(2**62)
    # The first class adds all of its edges, so the result is never less than the densest class.
    return value, 3 * variance**0.5
