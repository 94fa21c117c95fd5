"""The loads of many trees at once, from columns of distinct windows, without a loop over queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windloom.model.arrays import Floats, Ints
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.windows import Window
from windloom.optimizer.cost.omega import EXACT_PAIRS, Load


@dataclass(frozen=True)
class WindowColumns:
    """Distinct windows and how many queries have each."""

    overlap: Floats
    answers_per_second: Floats
    seconds: Floats  # of the range
    queries: Floats
    range_place: Ints  # of the range, among the distinct ones
    ranges: Floats  # the distinct ranges in seconds, ascending

    @classmethod
    def of(cls, windows: Sequence[Window], counts: Sequence[int] | Ints) -> WindowColumns:
        ticks = np.array([window.range_ticks for window in windows], np.int64)
        slides = np.array([window.slide_ticks for window in windows], np.int64)
        distinct, range_index = np.unique(ticks, return_inverse=True)
        return cls(
            ticks / slides,
            TICKS_PER_SECOND / slides,
            ticks / TICKS_PER_SECOND,
            np.asarray(counts, np.float64),
            range_index.astype(np.int64),
            distinct / TICKS_PER_SECOND,
        )

    def load(self, trees: Sequence[Sequence[int] | Ints], exact: bool | None = None) -> Load:
        """The load of each tree; trees are given as positions of windows.

        `exact` says whether queries are counted range by range, as Eq. 4 needs. All candidates that are compared must
        agree on it.
        """
        members = np.concatenate([np.asarray(tree, np.int64) for tree in trees])
        tree = np.repeat(np.arange(len(trees)), [len(tree) for tree in trees])
        if exact is None:
            exact = self.counts_ranges(len(trees))

        def summed(column: Floats) -> Floats:
            return np.bincount(tree, column[members] * self.queries[members], len(trees)).astype(np.float64)

        longest = np.zeros(len(trees))
        np.maximum.at(longest, tree, self.seconds[members])
        words = -(-len(self.ranges) // 64)
        present = np.zeros((len(trees), words), np.uint64)
        range_index = self.range_place[members]
        np.bitwise_or.at(present, (tree, range_index // 64), np.uint64(1) << (range_index % 64).astype(np.uint64))
        having = np.zeros((len(trees), len(self.ranges) if exact else 0))
        if exact:
            np.add.at(having, (tree, range_index), self.queries[members])
        return Load(
            summed(self.overlap),
            summed(self.answers_per_second),
            longest,
            summed(np.ones_like(self.queries)),
            summed(np.log2(self.seconds)),
            present,
            self.ranges,
            having,
        )

    def counts_ranges(self, trees: int) -> bool:
        return trees * len(self.ranges) <= EXACT_PAIRS
