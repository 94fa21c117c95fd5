"""The lists of a block: per cell, the distinct values with their counts, or the largest rank of each register.

Tuples are visited in order of value, so the entries of a cell come in order, and equal ones are adjacent. The order
is found once per column and shared by all sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.lists.cells import Lists
from windloom.weave.cut import Cut, Read

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]


def count_values(cut: Cut, read: Read, ranks: Codes) -> Lists:
    """The lists of the kept cells; `ranks` are those of the argument."""
    rows, room = cut.in_order(read), _Room(cut, read)
    _count_values(rows, ranks, cut.grid.cells, room.held, room.codes, room.counts)
    return room.lists()


def largest_ranks(cut: Cut, read: Read, ranks: Codes, packed: Ints, bits: int) -> Lists:
    """Lists of (register, largest rank); `packed` holds both by rank of the column, in `bits` bits for the latter."""
    rows, room = cut.in_order(read), _Room(cut, read)
    _largest_ranks(rows, ranks, packed, bits, cut.grid.cells, room.held, room.codes, room.counts)
    return room.lists()


class _Room:
    """Space for one entry per tuple, in the order of the kept cells.

    For each cell of the grid, `held` has the place of its next entry and the code of its last one, side by side: both
    are read for every tuple, in random order.
    """

    def __init__(self, cut: Cut, read: Read) -> None:
        self._kept = cut.kept.cells
        counts = cut.counts(read, read.argument)[self._kept]
        self._bounds = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=self._bounds[1:])
        entries = int(self._bounds[-1])
        self.held = np.full((len(cut.grid), 2), -1, np.int32)
        self.held[self._kept, 0] = self._bounds[:-1]
        self.codes, self.counts = np.empty(entries, np.int32), np.empty(entries, np.int32)

    def lists(self) -> Lists:
        used = int((self.held[self._kept, 0] - self._bounds[:-1]).sum())
        lists = Lists(np.zeros(len(self._kept) + 1, np.int64), np.empty(used, np.int32), np.empty(used, np.int64))
        _copy_lists(self._kept, self._bounds, self.held, self.codes, self.counts, *lists)
        return lists


def most_frequent(lists: Lists, most: int) -> Lists:
    """At most this many entries per cell: those with the highest counts; among equals, the smaller values."""
    if not len(lists.counts) or int(np.diff(lists.bounds).max(initial=0)) <= most:
        return lists
    bounds, codes, counts = np.zeros_like(lists.bounds), np.empty_like(lists.codes), np.empty_like(lists.counts)
    used = _most_frequent(lists.bounds, lists.codes, lists.counts, most, bounds, codes, counts)
    return Lists(bounds, codes[:used].copy(), counts[:used].copy())


@compiled
def _count_values(rows, ranks, cells, held, codes, counts):  # type: ignore[no-untyped-def]
    for k in range(len(rows)):
        i = np.uint32(rows[k])
        cell = np.uint32(cells[i])
        end = np.uint32(held[cell, 0])
        if held[cell, 1] == ranks[i]:
            counts[end - 1] += 1
        else:
            codes[end] = ranks[i]
            counts[end] = 1
            held[cell, 0] = end + 1
            held[cell, 1] = ranks[i]


@compiled
def _largest_ranks(rows, ranks, packed, bits, cells, held, codes, counts):  # type: ignore[no-untyped-def]
    low = (np.int64(1) << bits) - 1
    for k in range(len(rows)):
        i = np.uint32(rows[k])
        cell = np.uint32(cells[i])
        end = np.uint32(held[cell, 0])
        value = packed[np.uint32(ranks[i])]
        register = np.int32(value >> bits)
        # In order of (register, rank), so the last one of a register is the largest.
        if held[cell, 1] == register:
            counts[end - 1] = value & low
        else:
            codes[end] = register
            counts[end] = value & low
            held[cell, 0] = end + 1
            held[cell, 1] = register


@compiled
def _copy_lists(kept, bounds, held, codes, counts, to_bounds, to_codes, to_counts):  # type: ignore[no-untyped-def]
    used = 0
    for j in range(len(kept)):
        for entry in range(bounds[j], held[kept[j], 0]):
            to_codes[used] = codes[entry]
            to_counts[used] = counts[entry]
            used += 1
        to_bounds[j + 1] = used


@compiled
def _most_frequent(bounds, codes, counts, most, to_bounds, to_codes, to_counts):  # type: ignore[no-untyped-def]
    used = 0
    for cell in range(len(bounds) - 1):
        own = counts[bounds[cell] : bounds[cell + 1]]
        least = np.int64(0)
        equals = np.int64(len(own))
        if len(own) > most:
            least = np.sort(own)[len(own) - most]
            # Entries are in order of value: among those with the least count, the first ones stay.
            equals = most
            for entry in range(len(own)):
                equals -= own[entry] > least
        for entry in range(bounds[cell], bounds[cell + 1]):
            if counts[entry] > least or (counts[entry] == least and equals > 0):
                equals -= counts[entry] == least
                to_codes[used] = codes[entry]
                to_counts[used] = counts[entry]
                used += 1
        to_bounds[cell + 1] = used
    return used
