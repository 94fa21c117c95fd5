"""A slice matrix straight from tuples in order of the join key: the same entries, without cells of either side.

Only one side may have groups of the result. It is the fixed one: each of its tuples meets what the tuples of the other
side add up to, slice by slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windloom.answers.joins.integer_terms import LIMIT, MOST_DIVIDED, NARROW, IntegerSums
from windloom.answers.joins.joined_rows import Place, number_keys
from windloom.answers.joins.matrix import MatrixWindow, Sums, TooManyGroupsError, band_of
from windloom.answers.joins.terms import FactorTerms, PresenceTerm, Term, Terms
from windloom.kernels.folds.bands import LaneColumns, TupleSide, add_tuple_products, tuples_between
from windloom.kernels.simd import LANES
from windloom.model.aggregate import Component
from windloom.model.arrays import Ints
from windloom.plan.plan import PlannedJoin
from windloom.weave.sorted_tuples import KeyedSides

#: Each thread walks at least this many pairs of tuples and slices.
_LEAST_WALKED = 1 << 16
#: Parts that the keys are divided into for each thread, so that none waits for another for long.
_PARTS_PER_THREAD = 4


class TupleMatrix:
    """The matches of two sides, slice by slice; used like a `Matrix`.

    `planned` is one of the joins, `components` what all of them need of each side; `ranges` are the longest windows.
    Raises TooManyGroupsError if cells have to be made after all.
    """

    def __init__(
        self,
        planned: PlannedJoin,
        sides: KeyedSides,
        components: Sequence[tuple[Component, ...]],
        ranges: tuple[int, int],
    ) -> None:
        keyed_sides = sides.of(planned)
        assert keyed_sides is not None
        self._keyed, self._ranges, join = keyed_sides, ranges, planned.join
        self.ticks = [keyed.starts for keyed in self._keyed]
        grouped = [sides.grouped(planned.tuples[side], planned.sides[side].set) for side in (0, 1)]
        # The keys of both sides that are equal, by number.
        (link,) = planned.join.links
        keys = [sides.keys(planned.tuples[side], planned.sides[side].set) for side in (0, 1)]
        safe = [pair.null_safe for pair in link.keys]
        left, right, count = number_keys([keys[0]], [keys[1]], safe, (len(keys[0]), len(keys[1])))
        partner = np.full(count, -1, np.int64)
        partner[right[right >= 0]] = np.flatnonzero(right >= 0)
        first = np.flatnonzero((left >= 0) & (partner[left] >= 0))
        self._pairs = (first, partner[left[first]])
        tuples = [
            np.diff(keyed.bounds)[keys_of_side] for keyed, keys_of_side in zip(self._keyed, self._pairs, strict=True)
        ]
        pairs = float((grouped[0].groups[self._pairs[0]] * 1.0) @ grouped[1].groups[self._pairs[1]])
        self.matches = int(min(2.0**62, pairs))
        self._meeting = float((tuples[0] * 1.0) @ tuples[1])
        self._most = [int(count.max(initial=0)) for count in tuples]
        # The side without groups of the result moves; if neither has any, that with more tuples does.
        counts = [each.count for each in grouped]
        self.fixed = int(counts[1] > 1 or (counts[0] == 1 and len(self._keyed[1]) < len(self._keyed[0])))
        if counts[1 - self.fixed] > 1:
            raise TooManyGroupsError
        self.groups = counts[self.fixed] if len(self._pairs[0]) else 0
        self._numbers = grouped[self.fixed].of_out
        self.columns: dict[Place, pa.Array] = {
            (side, position): sides.group_column(
                planned.tuples[side], planned.sides[side].set, join.sides[side].group_by[position]
            )
            for side, position in join.groups
        }
        self._places = [
            [sides.column(planned.tuples[side], planned.sides[side].set, component) for component in components[side]]
            for side in (0, 1)
        ]
        self._cursors = [(keyed.bounds[:-1].copy(), keyed.bounds[:-1].copy()) for keyed in self._keyed]

    def wanting(self, terms: Sequence[Term], known: Terms) -> TupleTerms:
        """Return the terms, prepared to be folded."""
        return TupleTerms(terms, self._places, self.fixed, self._fits)

    def _fits(self, columns: tuple[int, int]) -> bool:
        """Return whether sums of products of two columns surely fit 64 bits, and those of a slice and key 32."""
        sizes = [keyed.sizes[column - 1] if column else 1 for keyed, column in zip(self._keyed, columns, strict=True)]
        moving = 1 - self.fixed
        return max(1.0, self._meeting) * sizes[0] * sizes[1] < LIMIT and self._most[moving] * sizes[moving] < NARROW

    def sums(
        self, wanted: TupleTerms, first: tuple[int, int], last: tuple[int, int], pool: Executor | None, threads: int
    ) -> Sums:
        """Return sums over the slices `first : last` of both sides. Successive calls must move forward in time."""
        band = band_of(self.ticks, self._ranges, self.fixed, first, last)
        sides = []
        for side, keyed in enumerate(self._keyed):
            tuples_between(keyed.bounds, keyed.records, first[side], last[side], *self._cursors[side])
            sides.append(TupleSide(*self._cursors[side], keyed.records, first[side], last[side] - first[side]))
        both, pairs = (sides[self.fixed], sides[1 - self.fixed]), (self._pairs[self.fixed], self._pairs[1 - self.fixed])
        entries = self.groups * len(band) * band.width
        walked = len(self._keyed[self.fixed]) * band.width
        is_divided = pool is not None and entries <= MOST_DIVIDED and walked >= _LEAST_WALKED * threads
        workers = threads if is_divided else 1
        parts = _PARTS_PER_THREAD * workers if workers > 1 else 1
        cuts = [len(pairs[0]) * part // parts for part in range(parts + 1)]
        pieces = [(pairs[0][lo:hi], pairs[1][lo:hi]) for lo, hi in pairwise(cuts)]
        every = [[np.zeros(entries * LANES, np.int64) for _ in wanted.lots] for _ in range(workers)]
        waiting = iter(pieces)

        def add(into: Sequence[Ints]) -> None:
            for part_of_pairs in waiting:
                for factors, out in zip(wanted.lots, into, strict=True):
                    add_tuple_products(part_of_pairs, *both, band, self._numbers, factors, out)

        if pool is None or workers == 1:
            add(every[0])
        else:
            list(pool.map(add, every))
        sums = every[0]
        for partial_sums in every[1:]:
            for out, more in zip(sums, partial_sums, strict=True):
                out += more
        return Sums(IntegerSums(sums, wanted.places, band, self.groups), first)

    def values(
        self, wanted: TupleTerms, sums: Sums, first: tuple[int, int], last: tuple[int, int], pool: Executor | None
    ) -> MatrixWindow:
        """Return every term over the slices `first : last` of both sides, of which `sums` have been made."""
        fixed, moving = self.fixed, 1 - self.fixed
        shape = (self.groups, last[fixed] - first[fixed], last[moving] - first[moving])
        rows, columns = ((first[side] - sums.first[side], last[side] - sums.first[side]) for side in (fixed, moving))
        whole = sums.whole.matrices(rows, columns)
        return MatrixWindow({**whole, **dict.fromkeys(wanted.known)}, shape, first, fixed)


class TupleTerms:
    """Terms to fold from tuples, four in a walk. Each is a sum, or says that there is a value, which always holds.

    `of_components` has the column of records for every component of both sides. Raises TooManyGroupsError if a term is
    of another kind, or if a sum may not fit: cells are folded then.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        of_components: Sequence[Sequence[int]],
        fixed: int,
        fits: Callable[[tuple[int, int]], bool],
    ) -> None:
        self.known = [term for term in terms if isinstance(term, PresenceTerm)]
        columns: dict[Term, tuple[int, int]] = {}
        for term in terms:
            if isinstance(term, FactorTerms):
                (_, left), (_, right) = term.of
                columns[term] = of_components[0][left], of_components[1][right]
        if len(self.known) + len(columns) < len(terms) or not all(map(fits, columns.values())):
            raise TooManyGroupsError
        order = list(dict.fromkeys(columns.values()))
        self.places = {term: divmod(order.index(pair_of_columns), LANES) for term, pair_of_columns in columns.items()}
        self.lots: list[tuple[LaneColumns, LaneColumns]] = []
        for first in range(0, len(order), LANES):
            walk = order[first : first + LANES]
            walk += walk[:1] * (LANES - len(walk))  # a lane that is left over repeats the first
            fixed_columns, moving_columns = (tuple(each[side] for each in walk) for side in (fixed, 1 - fixed))
            self.lots.append((fixed_columns, moving_columns))
