"""The slices of a block: the finest slice of every tuple, and for each slicing the slices that contain them.

Also moves the values of tuples into another order, in which every value goes to the place of its tuple.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.model.arrays import Codes, Ints
from windloom.slicing.edges import EdgeSet

Number = TypeVar("Number", bound=np.generic)


def moved(values: NDArray[Number], places: Codes) -> NDArray[Number]:
    """Return the values at their new places, written in order of tuples: places of frequent ones stay in the caches."""
    out = np.empty_like(values)
    if values.ndim == 1:
        _move(values, places, out)
    else:
        out[places] = values
    return out


@compiled
def _move(values, places, out):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        out[np.uint32(places[i])] = values[i]


@compiled
def count_sort(rows, every, numbers, count, out):  # type: ignore[no-untyped-def]
    """Sort the chosen rows by their numbers, which are below `count`; those with equal numbers stay in their order."""
    places = np.zeros(count + 1, np.int64)
    for k in range(len(out)):
        places[numbers[np.uint32(k if every else rows[k])] + 1] += 1
    for number in range(count):
        places[number + 1] += places[number]
    for k in range(len(out)):
        i = np.uint32(k if every else rows[k])
        out[places[numbers[i]]] = i
        places[numbers[i]] += 1


@compiled
def places_by_code(rows, codes, count):  # type: ignore[no-untyped-def]
    """Return the places of tuples in order of their codes, which are below `count`; those of a code in order of `rows`.

    If `rows` is empty, all tuples are meant, in the order in which they come.
    """
    places = np.empty(len(codes), np.int32)
    following = np.zeros(count + 1, np.int32)
    for i in range(len(codes)):
        following[codes[i] + 1] += 1
    for code in range(count):
        following[code + 1] += following[code]
    for k in range(len(codes)):
        row = np.int64(rows[k]) if len(rows) else k
        own = np.uint32(codes[row])
        places[row] = following[own]
        following[own] += 1
    return places


#: If more than one tuple in this many is earlier than its predecessor, ticks are sorted before they are sliced.
ORDERED_SHARE = 16


@dataclass(frozen=True, slots=True)
class SliceStarts:
    """The slices of one edge set: `of_fine` maps every finest slice to its slice, `starts` are their starts."""

    of_fine: Codes
    starts: Ints


class Slices:
    """The finest slices of a block, between the edges of all its sets; only those that hold a tuple.

    `of_tuple` numbers them in order of time.
    """

    def __init__(self, ticks: Ints, edges: EdgeSet) -> None:
        self._slicings: dict[EdgeSet, SliceStarts] = {}
        periods = np.array([edge_class.period for edge_class in edges.classes], np.int64)
        residues = np.array([edge_class.residue for edge_class in edges.classes], np.int64)
        runs, starts, order = np.empty(len(ticks), np.int32), np.empty(len(ticks), np.int64), np.empty(0, np.int64)
        if _count_steps_back(ticks) > len(ticks) // ORDERED_SHARE:
            order = np.argsort(ticks, kind="stable")
        count = _slice_runs(ticks, order, periods, residues, runs, starts)
        self.of_tuple, self.starts, self.is_ordered = runs, starts[:count].copy(), not len(order)
        if self.is_ordered and not (self.starts[1:] > self.starts[:-1]).all():
            # A slice that tuples return to has several runs.
            self.starts, numbers = np.unique(self.starts, return_inverse=True)
            _renumber(runs, numbers.astype(np.int32))
            self.is_ordered = False

    def slicing(self, edges: EdgeSet) -> SliceStarts:
        """Return the slices of fewer edges."""
        if edges not in self._slicings:
            starts = edges.last_edge(self.starts)
            is_new = np.ones(len(starts), np.bool_)
            is_new[1:] = starts[1:] != starts[:-1]
            self._slicings[edges] = SliceStarts((np.cumsum(is_new) - 1).astype(np.int32), starts[is_new])
        return self._slicings[edges]

    def moved(self, places: Codes) -> Slices:
        """Return the slices of these tuples in another order, in which those of every group come in order of slice."""
        slices = copy(self)
        slices.__dict__.pop("rows", None)
        slices.of_tuple, slices.is_ordered = moved(self.of_tuple, places), True
        return slices

    @cached_property
    def rows(self) -> Codes:
        """The tuples in order of their slices; empty if they come in that order."""
        if self.is_ordered:
            return np.empty(0, np.int32)
        rows = np.empty(len(self.of_tuple), np.int32)
        count_sort(np.empty(0, np.int32), True, self.of_tuple, len(self.starts), rows)
        return rows


@compiled
def _count_steps_back(ticks):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(1, len(ticks)):
        count += ticks[i] < ticks[i - 1]
    return count


@compiled
def _slice_runs(ticks, order, periods, residues, runs, starts):  # type: ignore[no-untyped-def]
    """Number the runs of tuples in one slice; a slice is looked up only when a tick leaves the last one."""
    count = 0
    begin = np.int64(1)
    end = np.int64(0)
    for k in range(len(ticks)):
        i = order[k] if len(order) else k
        tick = ticks[i]
        if tick < begin or tick >= end:
            begin = np.int64(-(2**63))
            end = np.int64(2**63 - 1)
            for j in range(len(periods)):
                edge = tick - (tick - residues[j]) % periods[j]
                begin = max(begin, edge)
                end = min(end, edge + periods[j])
            starts[count] = begin
            count += 1
        runs[i] = count - 1
    return count


@compiled
def _renumber(runs, number):  # type: ignore[no-untyped-def]
    for i in range(len(runs)):
        runs[i] = number[runs[i]]
