"""Projected tuples, and the parts that the sets made from them share: columns, slices, groupings, grids, choices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from windloom.kernels.compiling import compiled
from windloom.kernels.tuples.columns import Column, MovedColumn
from windloom.kernels.tuples.grid import Grid, SessionGrid, TupleGroups, group_tuples, is_small, multiplied
from windloom.kernels.tuples.signatures import (
    MOST_SIGNATURES,
    SIGNATURE_BITS,
    TUPLES_PER_SIGNATURE,
    Bits,
    CodedWord,
    Signatures,
    number_signatures,
)
from windloom.kernels.tuples.slices import Slices, places_by_code
from windloom.kernels.tuples.updates import RankedPairs, ascending_pairs, count_rows, rank_pairs
from windloom.model.arrays import Codes, Ints, Mask
from windloom.slicing.edges import EdgeSet

Made = TypeVar("Made")
Given = ParamSpec("Given")

#: The pairs of all tuples are ranked for sets with at least one cell per this many tuples.
CELLS_PER_PAIR = 32

#: Used instead of the position of a column: the event time of the tuple.
TICK = -1


@dataclass(frozen=True, slots=True)
class ChosenTuples:
    """Some tuples of a block: those in `rows`, in ascending order, or all."""

    rows: Codes
    every: bool

    def count(self, tuples: int) -> int:
        return tuples if self.every else len(self.rows)


_EVERY = ChosenTuples(np.empty(0, np.int32), True)


def _shared(make: Callable[Concatenate[Tuples, Given], Made]) -> Callable[Concatenate[Tuples, Given], Made]:
    """Return a method whose result is computed once per choice of arguments; threads that ask at the same time wait."""

    @wraps(make)
    def result(tuples: Tuples, /, *args: Given.args, **kwargs: Given.kwargs) -> Made:
        return tuples._once((make.__name__, *args, *kwargs.items()), lambda: make(tuples, *args, **kwargs))

    return result


class Tuples:
    """Tuples as columns; each has a tick.

    `place` is the column that is sliced, the tick or a position. `words` are the columns of the signature. A part that
    several sets need is computed when the first one asks for it.
    """

    def __init__(
        self, tick: Column, place: Column, words: Sequence[Column], columns: Sequence[Column], edges: EdgeSet
    ) -> None:
        self.tick, self._place, self._words, self._columns, self._edges = tick, place, words, columns, edges
        self.has_signature = bool(words)  # whether there is any predicate or FILTER
        self._results: dict[Hashable, object] = {}
        self._locks: dict[Hashable, Lock] = {}
        self._lock = Lock()

    @classmethod
    def of(cls, table: pa.Table, words: int, edges: EdgeSet, *, has_positions: bool = False) -> Tuples:
        """Return the tuples of a table with columns `tick`, position (if any), `s0…` (the signature), then others."""
        columns = [Column(column) for column in table.columns]
        tick, place = columns[0], columns[1 if has_positions else 0]
        rest = columns[2 if has_positions else 1 :]
        return cls(tick, place, rest[:words], rest[words:], edges)

    @_shared
    def since(self, tick: int) -> Tuples:
        """Return only tuples at that tick or later."""
        wanted = self.tick.integers >= tick
        if wanted.all():
            return self
        mask = pa.array(wanted)
        return self._mapped(lambda column: Column(column.column.filter(mask)))

    @_shared
    def by(self, position: int) -> Tuples:
        """Return these tuples in order of a column's values, and for each value in order of their slices.

        This is for groupings that have the column: all tuples of a cell and of its neighbours are near each other.
        """
        coded = self.column(position).coded
        places = places_by_code(self.slices.rows, coded.codes, len(coded.dictionary))
        tuples = self._mapped(lambda column: MovedColumn(column, places))
        tuples._results["slices"] = self.slices.moved(places)
        return tuples

    def _mapped(self, change: Callable[[Column], Column]) -> Tuples:
        """Return tuples whose columns are changed; one that has several roles is changed once."""
        every = [self.tick, self._place, *self._words, *self._columns]
        columns = {id(column): change(column) for column in every}
        words, others = ([columns[id(column)] for column in each] for each in (self._words, self._columns))
        return Tuples(columns[id(self.tick)], columns[id(self._place)], words, others, self._edges)

    def __len__(self) -> int:
        return len(self.tick)

    def column(self, position: int) -> Column:
        return self.tick if position == TICK else self._columns[position]

    def word(self, number: int) -> Ints:
        return self._words[number].integers

    @property
    def slices(self) -> Slices:
        return self._once("slices", lambda: Slices(self._place.integers, self._edges))

    @_shared
    def grid(self, groups: tuple[int, ...], edges: EdgeSet) -> Grid:
        """Return the cells of a grouping (positions of columns) and a slicing."""
        grid = Grid.of(self.slices, self.slices.slicing(edges), self.grouping(groups))
        assert grid is not None
        return grid

    @_shared
    def signed_grid(self, groups: tuple[int, ...], edges: EdgeSet, most: int) -> Grid | None:
        """Return the cells of a grouping and a slicing, divided by signature; None if there are more than `most`."""
        signatures, grouping = self.signatures(), self.grouping(groups)
        if signatures is None or not is_small(grouping.count * len(signatures), len(self)):
            return None
        divided = multiplied(grouping, signatures.codes, len(signatures))
        return Grid.of(self.slices, self.slices.slicing(edges), divided, most)

    def signatures(self, most: int | None = None) -> Signatures | None:
        """Return the distinct signatures; None if there are too many. The first result is kept."""

        def make() -> Signatures | None:
            fewer = min(MOST_SIGNATURES, len(self) // TUPLES_PER_SIGNATURE) if most is None else most
            words = [
                CodedWord(column.coded.codes, np.array(column.coded.dictionary.to_numpy(), np.int64))
                if column.comes_coded
                else column.integers
                for column in self._words
            ]
            return number_signatures(words, fewer)

        return self._once("signatures", make)

    @property
    def known_signatures(self) -> Signatures | None:
        """The distinct signatures, if they were asked for before."""
        return self.signatures() if "signatures" in self._results else None

    def count(self, bits: Bits) -> int:
        """Return the number of tuples that have all these bits."""
        known = self.known_signatures
        return self.chosen(bits).count(len(self)) if known is None else known.count(bits)

    @_shared
    def sessions(self, groups: tuple[int, ...], gap: int, bits: Bits) -> Grid:
        """Return the cells of a grouping over the tuples with these bits, divided by pauses longer than the gap."""
        chosen = self.chosen(bits)
        return SessionGrid(self.tick.integers, gap, self.grouping(groups), chosen.rows, chosen.every)

    @_shared
    def grouping(self, groups: tuple[int, ...]) -> TupleGroups:
        """Return the group of every tuple, by columns."""
        return group_tuples([self.column(position).coded for position in groups], len(self))

    def chosen(self, bits: Bits, known: int | None = None) -> ChosenTuples:
        """Return the tuples that have all these bits of the signature and, with `known`, a value in that column."""
        if known is not None and self.column(known).valid is None:
            known = None
        return self._choose(bits, known)

    def pairs(self, by: int, value: int, cells: int) -> RankedPairs | None:
        """Return the pairs of two columns in order, if that is cheap for a set with `cells` cells.

        Otherwise it takes less time to sort what each cell has picked.
        """
        by_column, other = self.column(by), self.column(value)
        if cells * CELLS_PER_PAIR < len(self):
            return None
        ascending = self._once(("ascending", by), lambda: ascending_pairs(by_column))
        # Ranks of floats are not as fine as the values: they do not distinguish 0.0 from -0.0.
        if ascending is not None or pa.types.is_floating(other.type) or pa.types.is_null(other.type):
            return ascending
        chosen = self.chosen((), by)
        return self._once(("pairs", by, value), lambda: rank_pairs(by_column, other, chosen.rows, chosen.every))

    def counts(self, grid: Grid, bits: Bits, known: int | None = None) -> Ints:
        """Return the number of chosen tuples in each cell of a grid."""
        chosen = self.chosen(bits, known)

        def make() -> Ints:
            count = np.zeros(len(grid), np.int64)
            count_rows(grid.cells, chosen.rows, chosen.every, count)
            return count

        return self._once(("counts", id(grid), id(chosen)), make)

    @_shared
    def _choose(self, bits: Bits, known: int | None) -> ChosenTuples:
        if known is None and not bits:
            return _EVERY
        if known is not None:
            mask = self.column(known).valid
            assert mask is not None
            before = self.chosen(bits)
        else:
            mask, before = self._has(bits[-1]), self.chosen(bits[:-1])
        rows = np.empty(before.count(len(self)), np.int32)
        return ChosenTuples(rows[: _where(before.rows, before.every, mask, rows)], False)

    @_shared
    def _has(self, bit: int) -> Mask:
        """Return a mask of the tuples that have a bit: in bytes, so that it stays in the caches in random access."""
        mask = np.empty(len(self), np.bool_)
        _test(self.word(bit // SIGNATURE_BITS), np.int64(1 << bit % SIGNATURE_BITS), mask)
        return mask

    def _once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        if key not in self._results:
            with self._lock:
                lock = self._locks.setdefault(key, Lock())
            with lock:
                if key not in self._results:
                    self._results[key] = make()
        return self._results[key]  # type: ignore[return-value]


@compiled
def _test(word, bit, mask):  # type: ignore[no-untyped-def]
    for i in range(len(word)):
        mask[i] = (word[i] & bit) != 0


@compiled
def _where(rows, every, mask, kept):  # type: ignore[no-untyped-def]
    """Write the rows, in their order, for which the mask holds; return their number."""
    count = 0
    for k in range(len(mask) if every else len(rows)):
        i = np.int32(k) if every else rows[k]
        kept[count] = i
        count += mask[np.uint32(i)]
    return count
