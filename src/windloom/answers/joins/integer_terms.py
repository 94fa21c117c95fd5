"""Terms of a slice matrix that are sums of products of integers in 64 bits: folded together, for all joins."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.answers.joins.joined_rows import JoinedRows
from windloom.answers.joins.terms import FactorTerms, Term, Terms, restricted
from windloom.kernels.families import AddInt
from windloom.kernels.folds.bands import Band, Lanes, add_cell_products, entries_of
from windloom.kernels.folds.slice_matrix import CellSide
from windloom.kernels.simd import LANES
from windloom.model.arrays import Ints, Positions

#: Each thread gets at least this many pairs of groups.
PAIRS_PER_THREAD = 1 << 12
#: A band with more entries is made by one thread: each would need as much memory.
MOST_DIVIDED = 1 << 20
#: An entry of the matrix stays below this.
LIMIT = 1 << 62
#: An entry below this fits into 32 bits.
NARROW = 1 << 31

Pairs = tuple[Positions, Positions]


class WholeTerms:
    """Sums among `terms` that certainly fit into 64 bits; equal ones, such as counts without NULLs, are made once.

    An entry adds up at most one pair of cells for each of `matches` pairs of groups, because a group has one cell in a
    slice. Sums are made `LANES` at a time; `fixed` is the side whose cells are taken one at a time.
    """

    def __init__(
        self, terms: Iterable[Term], known: Terms, relations: tuple[JoinedRows, JoinedRows], fixed: int, matches: int
    ) -> None:
        columns = _TermColumns(relations[fixed]), _TermColumns(relations[1 - fixed])
        self._sums: dict[Term, tuple[int, int]] = {}
        for term in terms:
            if not isinstance(term, FactorTerms) or known.is_float(term.of):
                continue
            places = columns[0].place(term), columns[1].place(term)
            if places[0] is None or places[1] is None:
                continue
            if max(1, matches) * columns[0].sizes[places[0]] * columns[1].sizes[places[1]] < LIMIT:
                self._sums[term] = places[0], places[1]
        order = list(dict.fromkeys(self._sums.values()))
        self._lots: list[tuple[Lanes, bool]] = []  # the columns of each walk, and whether 32 bits suffice for them
        for first in range(0, len(order), LANES):
            walk = order[first : first + LANES]
            walk += walk[:1] * (LANES - len(walk))  # lanes left over repeat the first
            narrow = all(columns[side].sizes[at[side]] < NARROW for at in walk for side in (0, 1))
            of_fixed, of_moving = (tuple(columns[side].kept[at[side]] for at in walk) for side in (0, 1))
            self._lots.append(((of_fixed, of_moving), narrow))
        self._places = {
            term: divmod(order.index(pair_of_columns), LANES) for term, pair_of_columns in self._sums.items()
        }

    def __contains__(self, term: Term) -> bool:
        return term in self._sums

    def folded(
        self,
        blocks: Iterable[Pairs],
        sides: tuple[CellSide, CellSide],
        band: Band,
        groups: NDArray[np.int32],
        count: int,
        pool: Executor | None,
        threads: int,
    ) -> IntegerSums:
        """Return every term over the band and `count` groups, from pairs of groups of the fixed and the moving side."""
        entries = count * len(band) * band.width
        sums = [np.zeros(entries * LANES, np.int64) for _ in self._lots]

        def add(part_of_pairs: Pairs, into: Sequence[Ints]) -> Sequence[Ints]:
            for (columns, narrow), out in zip(self._lots, into, strict=True):
                add_cell_products(part_of_pairs, *sides, band, groups, columns, out, narrow=narrow)
            return into

        for pairs in blocks if self._lots else ():
            length = len(pairs[0])
            is_divided = pool is not None and entries <= MOST_DIVIDED
            parts = max(1, min(threads, length // PAIRS_PER_THREAD)) if is_divided else 1
            cuts = [length * part // parts for part in range(parts + 1)]
            pieces = [(pairs[0][lo:hi], pairs[1][lo:hi]) for lo, hi in itertools.pairwise(cuts)]
            if pool is None or parts == 1:
                add(pieces[0], sums)
                continue
            # Threads add into sums of their own: pairs of different groups may meet in one entry.
            others = [[np.zeros_like(out) for out in sums] for _ in pieces[1:]]
            for partial_sums in list(pool.map(add, pieces, [sums, *others]))[1:]:
                for out, more in zip(sums, partial_sums, strict=True):
                    out += more
        return IntegerSums(sums, self._places, band, count)


@dataclass(frozen=True, slots=True)
class IntegerSums:
    """Terms over the band of some slices; `places` has the walk and the lane of each."""

    sums: list[Ints]
    places: dict[Term, tuple[int, int]]
    band: Band
    groups: int

    def matrices(self, rows: tuple[int, int], columns: tuple[int, int]) -> dict[Term, AddInt]:
        """Return every term over slices `first : last` of the fixed and of the moving side."""
        by_lane: dict[tuple[int, int], AddInt] = {}
        for walk, lane in self.places.values():
            if (walk, lane) not in by_lane:
                by_lane[walk, lane] = AddInt(entries_of(self.sums[walk], lane, self.groups, self.band, rows, columns))
        return {term: by_lane[place] for term, place in self.places.items()}


class _TermColumns:
    """The different columns of integers that terms need of a side, and the largest magnitude of each."""

    def __init__(self, relation: JoinedRows) -> None:
        self._relation = relation
        self.kept: list[Ints] = []
        self.sizes: list[int] = []

    def place(self, term: FactorTerms) -> int | None:
        """Return the index of the column of a term, or None if the numbers need more than 64 bits."""
        numbers = self._relation.held(FactorTerms(restricted(term.of, self._relation.sides)))
        if not isinstance(numbers, AddInt):
            return None
        for index, column in enumerate(self.kept):
            if numbers.value is column or np.array_equal(numbers.value, column):
                return index
        self.kept.append(numbers.value)
        self.sizes.append(max(-int(numbers.value.min()), int(numbers.value.max())) if len(numbers.value) else 0)
        return len(self.kept) - 1
