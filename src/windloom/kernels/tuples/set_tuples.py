"""The tuples of one set in the grid of its slices and groups, from which an aggregator makes the cells of the set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.kernels.lists.lists import Lists
from windloom.kernels.tuples.columns import Column
from windloom.kernels.tuples.grid import Grid, NonEmptyCells, take_values
from windloom.kernels.tuples.signatures import Bits
from windloom.kernels.tuples.tuples import Tuples
from windloom.model.arrays import Codes, Ints

Number = TypeVar("Number", bound=np.generic)

#: The first arguments of every update kernel: the cell of every tuple, the chosen tuples, whether all are chosen.
Where = tuple[Codes, Codes, bool]


@dataclass(frozen=True, slots=True)
class ComponentInput:
    """The input of a component: the positions of its columns, and the signature bit of its FILTER."""

    argument: int | None = None
    by: int | None = None  # a column, or TICK
    filter: int | None = None
    others: tuple[int, ...] = ()  # the columns of what else a pick takes


@dataclass(frozen=True, slots=True)
class SetTuples:
    """The tuples with the bits `own`, and the cells that hold any of them, in order of group and slice."""

    tuples: Tuples
    grid: Grid
    own: Bits
    kept: NonEmptyCells
    _counts: dict[int, Ints] = field(default_factory=dict)

    def argument(self, read: ComponentInput) -> Column:
        assert read.argument is not None
        return self.tuples.column(read.argument)

    def where(self, read: ComponentInput, known: int | None) -> Where:
        """Return the tuples that count for a component; with `known`, those that have a value in that column."""
        chosen = self.tuples.chosen(self._bits(read), known)
        return self.grid.cells, chosen.rows, chosen.every

    def counts(self, read: ComponentInput, known: int | None) -> Ints:
        """Return the number of these tuples in each cell of the grid."""
        return self.tuples.counts(self.grid, self._bits(read), known)

    def kept_counts(self, read: ComponentInput, known: int | None) -> Ints:
        """Return the number of these tuples in each kept cell, shared by components that count the same tuples."""
        counts = self.counts(read, known)
        if id(counts) not in self._counts:  # the tuples hold on to it
            self._counts[id(counts)] = self.taken(counts)
        return self._counts[id(counts)]

    def counts_all(self, read: ComponentInput, known: int | None) -> bool:
        """Return whether all tuples of the set count: then every kept cell has at least one."""
        return self.tuples.chosen(self._bits(read), known) is self.tuples.chosen(self.own)

    def zeros(self, kind: type[Number]) -> NDArray[Number]:
        """Return a zero for every cell of the grid."""
        return np.zeros(len(self.grid), kind)

    def taken(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return the values of the kept cells, from values of every cell of the grid."""
        if self.kept.is_all:
            return values
        out = np.empty(len(self.kept.cells), values.dtype)
        take_values(values, self.kept.cells, out)
        return out

    def _bits(self, read: ComponentInput) -> Bits:
        return self.own if read.filter is None else tuple(sorted({*self.own, read.filter}))


# The lists of a block: per cell, the distinct values with their counts, or the largest rank of each register.
#
# The values of each cell are gathered side by side, while tuples are visited in the order in which they came: cells of
# one slice are near each other in memory. Then each cell is listed by itself. A few values are sorted; many are counted
# in a table with an entry for every code, and bits above it lead to the entries in use, in order.

#: Up to this many values of a cell are sorted by insertion.
FEW_VALUES = 24

#: The place of the only bit of a word, by the six highest bits of its product with this number (de Bruijn).
_DE_BRUIJN = 0x03F79D71B4CB0A89
_PLACES = np.zeros(64, np.int64)
for _bit in range(64):
    _PLACES[(_DE_BRUIJN << _bit & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit


def list_values(set_tuples: SetTuples, read: ComponentInput, values: Codes | Ints, codes: int, bits: int = -1) -> Lists:
    """Return the lists of the kept cells: how often each of the `codes` values of the argument occurs.

    With `bits`, a value holds a code and, in that many of its lowest bits, a number, of which the largest is kept.
    """
    cells = set_tuples.kept.cells
    bounds = np.zeros(len(cells) + 1, np.int64)
    np.cumsum(set_tuples.counts(read, read.argument)[cells], out=bounds[1:])
    entries = int(bounds[-1])
    places = np.empty(len(set_tuples.grid), np.int64)
    places[cells] = bounds[:-1]
    gathered = np.empty(entries, np.int32)
    _gather(*set_tuples.where(read, read.argument), values, places, gathered)
    lists = Lists(np.zeros(len(cells) + 1, np.int64), np.empty(entries, np.int32), np.empty(entries, np.int64))
    used = _list_cells(bounds, gathered, codes, bits, *lists)
    if 2 * used > entries:
        return Lists(lists.bounds, lists.codes[:used], lists.counts[:used])
    return Lists(lists.bounds, lists.codes[:used].copy(), lists.counts[:used].copy())


def most_frequent(lists: Lists, most: int) -> Lists:
    """Return at most this many entries per cell: those with the highest counts; among equals, the smaller values."""
    if not len(lists.counts) or int(np.diff(lists.bounds).max(initial=0)) <= most:
        return lists
    bounds, codes, counts = np.zeros_like(lists.bounds), np.empty_like(lists.codes), np.empty_like(lists.counts)
    used = _most_frequent(lists.bounds, lists.codes, lists.counts, most, bounds, codes, counts)
    return Lists(bounds, codes[:used].copy(), counts[:used].copy())


@compiled
def _gather(cells, rows, every, values, places, gathered):  # type: ignore[no-untyped-def]
    """Write the values of the chosen tuples cell by cell; `places` holds the place of the next one of each cell."""
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        cell = np.uint32(cells[i])
        gathered[places[cell]] = values[i]
        places[cell] += 1


@compiled
def _list_cells(bounds, gathered, codes, bits, to_bounds, to_codes, to_counts):  # type: ignore[no-untyped-def]
    """List the values of every cell; with `bits`, a value is a code and a number, of which the largest stays."""
    table = np.zeros(codes, np.int32)
    words = np.zeros((codes >> 6) + 1, np.uint64)
    tops = np.zeros((codes >> 12) + 1, np.uint64)
    used = np.int64(0)
    for cell in range(len(bounds) - 1):
        values = gathered[bounds[cell] : bounds[cell + 1]]
        if len(values) <= FEW_VALUES:
            used = _list_few(values, bits, used, to_codes, to_counts)
        else:
            _enter(values, bits, table, words, tops)
            used = _list_table(table, words, tops, used, to_codes, to_counts)
        to_bounds[cell + 1] = used
    return used


@compiled
def _list_few(values, bits, used, to_codes, to_counts):  # type: ignore[no-untyped-def]
    for i in range(1, len(values)):
        value = values[i]
        k = i
        while k > 0 and values[k - 1] > value:
            values[k] = values[k - 1]
            k -= 1
        values[k] = value
    first = used
    for i in range(len(values)):
        code = values[i] if bits < 0 else values[i] >> bits
        number = np.int64(1) if bits < 0 else np.int64(values[i]) & ((1 << bits) - 1)
        if used == first or to_codes[used - 1] != code:
            to_codes[used] = code
            to_counts[used] = number
            used += 1
        else:  # in order of (code, number), so the last number is the largest
            to_counts[used - 1] = to_counts[used - 1] + 1 if bits < 0 else number
    return used


@compiled
def _enter(values, bits, table, words, tops):  # type: ignore[no-untyped-def]
    """Enter values into the table. A zero entry is not in use, because counts and ranks begin at 1."""
    one = np.uint64(1)
    for i in range(len(values)):
        code = np.uint32(values[i] if bits < 0 else values[i] >> bits)
        before = table[code]
        if before == 0:
            words[code >> 6] |= one << np.uint64(code & 63)
            tops[code >> 12] |= one << np.uint64(code >> 6 & 63)
        number = np.int32(before + 1) if bits < 0 else np.int32(values[i] & ((1 << bits) - 1))
        table[code] = max(before, number)


@compiled
def _list_table(table, words, tops, used, to_codes, to_counts):  # type: ignore[no-untyped-def]
    """List the entries in use, in order of code, and empties the table."""
    for top in range(len(tops)):
        used_words = tops[top]
        tops[top] = 0
        while used_words:
            word = (top << 6) + _lowest(used_words)
            used_words &= used_words - np.uint64(1)
            bits = words[word]
            words[word] = 0
            while bits:
                code = (word << 6) + _lowest(bits)
                bits &= bits - np.uint64(1)
                to_codes[used] = code
                to_counts[used] = table[code]
                table[code] = 0
                used += 1
    return used


@compiled
def _lowest(bits):  # type: ignore[no-untyped-def]
    """Return the place of the lowest bit."""
    alone = bits & (~bits + np.uint64(1))
    return _PLACES[(alone * np.uint64(_DE_BRUIJN)) >> np.uint64(58)]


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
