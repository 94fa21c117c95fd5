"""The density of a union of residue classes: exact if possible, otherwise a repeatable estimate.

There are three methods, chosen by size. If the composite slide is short, its edges are marked in a bit set. Otherwise,
classes whose periods share no factor are independent (Chinese remainder theorem), and the rest is counted by
restricting classes to one another. Only if that recursion exceeds its budget, the density is estimated, with a bound on
the error, from edges drawn from every class, the same ones every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import Any

import numba
import numpy as np

from windloom.model.arrays import Ints

# Edges drawn from edge classes, one run per class, and the other classes that hold them.
#
# A sample of ticks seldom or never hits rare edges; a sample of the edges of every class is good for rare and frequent
# ones alike (Karp and Luby's estimate of a union). A run consists of neighbouring edges of its class, from a fixed
# random one on: `residue + (begin + i)·period`. Another class holds every m-th of them, and the Chinese remainder
# theorem gives the first, so nothing is tested edge by edge, and no tick is ever computed.


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function compiled like a kernel; this folder cannot import the kernels."""
    fast: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return fast


def run_begins(classes: Sequence[tuple[int, int]]) -> Ints:
    """Return the position at which the run of each class begins, which depends on the class alone."""
    # Splitmix64 on period and residue: neighbouring classes begin far from each other.
    with np.errstate(over="ignore"):
        mixed = np.array([period for period, _ in classes], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed += np.array([residue for _, residue in classes], np.uint64) * np.uint64(0xD1B54A32D192ED03)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(24)).astype(np.int64)


@compiled
def _times(left: int, right: int, modulus: int) -> int:
    """Return left·right mod modulus, all below it, in 64 bits."""
    if modulus < 1 << 31:
        return left * right % modulus
    total = 0
    while right:
        if right & 1:
            total = (total + left) % modulus
        left = (left + left) % modulus
        right >>= 1
    return total


@compiled
def first_held(period: int, residue: int, begin: int, other: int, other_residue: int) -> tuple[int, int]:
    """Return the first edge of the run that the other class holds, and the distance to the next; (-1, 0) if none."""
    common, rest, left, right = period, other, 1, 0  # left·period + …·other = common
    while rest:
        quotient = common // rest
        common, rest = rest, common - quotient * rest
        left, right = right, left - quotient * right
    distance = other_residue - residue
    if distance % common:
        return -1, 0
    every = other // common
    if every == 1:
        return 0, 1
    first = _times(distance // common % every, left % every, every)
    return (first - begin) % every, every


@compiled
def fresh_edges(periods: Ints, residues: Ints, begins: Ints, lengths: Ints) -> Ints:
    """Return, for each class, the number of edges of its run that no earlier class holds."""
    fresh = np.zeros(len(periods), np.int64)
    for own in range(len(periods)):
        length = lengths[own]
        held = np.zeros(length, np.bool_)
        for other in range(own):
            first, every = first_held(periods[own], residues[own], begins[own], periods[other], residues[other])
            if first >= 0:
                held[first:length:every] = True
        for i in range(length):
            fresh[own] += not held[i]
    return fresh


@compiled
def holders(periods: Ints, residues: Ints, begins: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Return (class, edge) for every edge of a run and class that holds it; edges are numbered run after run."""
    room = max(16, int(2 * lengths.sum()))
    classes, edges, count = np.empty(room, np.int64), np.empty(room, np.int64), 0
    start = 0
    for own in range(len(periods)):
        length = lengths[own]
        for other in range(len(periods)):
            first, every = first_held(periods[own], residues[own], begins[own], periods[other], residues[other])
            if first < 0 or first >= length:
                continue
            hits = (length - 1 - first) // every + 1
            while count + hits > room:
                more_classes, more_edges = np.empty(2 * room, np.int64), np.empty(2 * room, np.int64)
                more_classes[:count], more_edges[:count] = classes[:count], edges[:count]
                classes, edges, room = more_classes, more_edges, 2 * room
            for i in range(hits):
                classes[count] = other
                edges[count] = start + first + i * every
                count += 1
        start += length
    return classes[:count].copy(), edges[:count].copy()


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
    """Return the share of all ticks that lie in at least one class."""
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
    """Return groups of classes such that periods of different groups have no common factor."""
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
    """Return the class restricted to `k·period + residue`, as a class of k; None if they never meet."""
    common = gcd(edge_class[0], period)
    distance, rest = divmod(edge_class[1] - residue, common)
    if rest:
        return None
    modulus = edge_class[0] // common
    if modulus == 1:
        return (1, 0)
    return (modulus, distance * pow(period // common, -1, modulus) % modulus)


def _estimated(classes: list[Class]) -> tuple[Fraction, float]:
    """Return the share of ticks in the union, and a bound on its error: three standard errors of the estimate.

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
