"""Edges drawn from edge classes, one run per class, and the other classes that hold them.

A sample of ticks seldom or never hits rare edges; a sample of the edges of every class is good for rare and frequent
ones alike (Karp and Luby's estimate of a union). A run consists of neighbouring edges of its class, from a fixed random
one on: `residue + (begin + i)·period`. Another class holds every m-th of them, and the Chinese remainder theorem gives
the first, so nothing is tested edge by edge, and no tick is ever computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np

from windloom.model.arrays import Ints


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled like a kernel; this folder cannot import the kernels."""
    fast: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return fast


def run_begins(classes: Sequence[tuple[int, int]]) -> Ints:
    """The position at which the run of each class begins, which depends on the class alone."""
    # Splitmix64 on period and residue: neighbouring classes begin far from each other.
    with np.errstate(over="ignore"):
        mixed = np.array([period for period, _ in classes], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed += np.array([residue for _, residue in classes], np.uint64) * np.uint64(0xD1B54A32D192ED03)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(24)).astype(np.int64)


@compiled
def _times(left: int, right: int, modulus: int) -> int:
    """left·right mod modulus, all below it, in 64 bits."""
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
    """The first edge of the run that the other class holds and the distance to the next; (-1, 0) if it holds none."""
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
    """For each class, the number of edges of its run that no earlier class holds."""
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
    """(class, edge) for every edge of every run and every class that holds it; edges are numbered run after run."""
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
