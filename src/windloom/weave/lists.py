"""Lists of a block: per cell the distinct values with their counts, or of each register the largest rank.

Tuples are met in order of value, so that entries of a cell come in order and equal ones next to each other. The order
is found once per column and shared by all sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiled import compiled
from windloom.kernels.lists import Lists
from windloom.weave.cut import Cut, Read

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]


def count_values(cut: Cut, read: Read, ranks: Codes) -> Lists:
    """Lists of the kept cells; `ranks` are those of the argument."""
    rows, (room, codes, numbers, ends) = cut.in_order(read), _space(cut, read)
    _count_values(rows, ranks, cut.grid.cells, room, codes, numbers, ends)
    return _compact(cut.kept.cells, room, codes, numbers, ends)


def largest_ranks(cut: Cut, read: Read, ranks: Codes, packed: Ints, bits: int) -> Lists:
    """Lists of (register, largest rank); `packed` holds both by rank of the column, `bits` those of the latter."""
    rows, (room, codes, numbers, ends) = cut.in_order(read), _space(cut, read)
    _largest_ranks(rows, ranks, packed, bits, cut.grid.cells, room, codes, numbers, ends)
    return _compact(cut.kept.cells, room, codes, numbers, ends)


def most_frequent(lists: Lists, most: int) -> Lists:
    """At most so many entries per cell: those with the highest counts, of equals the smaller value."""
    if not len(lists.counts) or int(np.diff(lists.bounds).max(initial=0)) <= most:
        return lists
    bounds, codes, counts = np.zeros_like(lists.bounds), np.empty_like(lists.codes), np.empty_like(lists.counts)
    used = _most_frequent(lists.bounds, lists.codes, lists.counts, most, bounds, codes, counts)
    return Lists(bounds, codes[:used].copy(), counts[:used].copy())


def _space(cut: Cut, read: Read) -> tuple[Ints, Codes, Ints, Ints]:
    """Room for an entry per tuple: where each cell's begins, codes and counts, and where what it holds ends."""
    counts = cut.counts(read, read.argument)
    room = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=room[1:])
    entries = int(room[-1])
    return room, np.empty(entries, np.int32), np.empty(entries, np.int64), room[:-1].copy()


def _compact(kept: Ints, room: Ints, codes: Codes, numbers: Ints, ends: Ints) -> Lists:
    used = int((ends - room[:-1]).sum())
    lists = Lists(np.zeros(len(kept) + 1, np.int64), np.empty(used, np.int32), np.empty(used, np.int64))
    _copy_lists(kept, room, codes, numbers, ends, *lists)
    return lists


@compiled
def _count_values(rows, ranks, cells, room, codes, numbers, ends):  # type: ignore[no-untyped-def]
    for k in range(len(rows)):
        i = np.uint32(rows[k])
        cell = np.uint32(cells[i])
        end = ends[cell]
        if end > room[cell] and codes[end - 1] == ranks[i]:
            numbers[end - 1] += 1
        else:
            codes[end] = ranks[i]
            numbers[end] = 1
            ends[cell] = end + 1


@compiled
def _largest_ranks(rows, ranks, packed, bits, cells, room, codes, numbers, ends):  # type: ignore[no-untyped-def]
    low = (np.int64(1) << bits) - 1
    for k in range(len(rows)):
        i = np.uint32(rows[k])
        cell = np.uint32(cells[i])
        end = ends[cell]
        held = packed[ranks[i]]
        register = np.int32(held >> bits)
        # In order of (register, rank): the last of a register is its largest.
        if end > room[cell] and codes[end - 1] == register:
            numbers[end - 1] = held & low
        else:
            codes[end] = register
            numbers[end] = held & low
            ends[cell] = end + 1


@compiled
def _copy_lists(kept, room, codes, numbers, ends, to_bounds, to_codes, to_counts):  # type: ignore[no-untyped-def]
    used = 0
    for j in range(len(kept)):
        cell = kept[j]
        for entry in range(room[cell], ends[cell]):
            to_codes[used] = codes[entry]
            to_counts[used] = numbers[entry]
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
            # Entries are in order of value: of those with the least count, the first ones stay.
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
