"""The greedy merge of Weave Share (figure 2): merges the two trees that save most, until no merger saves anything.

The gains of all pairs are kept. A merger changes the gains of one tree only: one row, which is recomputed. The best
gain of every row is remembered as a bound, and computed again only when it is the highest and out of date.
"""

from __future__ import annotations

import numpy as np

from windloom.model.arrays import Floats
from windloom.optimizer.sharing.problem import Groups, SharingProblem

#: Savings smaller than this share of the cost are rounding, not savings.
TOLERANCE = 1e-9


def merge_trees(problem: SharingProblem, groups: Groups) -> Groups:
    """Trees of bundles, merged while that saves anything."""
    return Gains(Merging(problem, groups)).run()


class Merging:
    """Trees while they are merged: which still exist, and what each costs."""

    def __init__(self, problem: SharingProblem, groups: Groups) -> None:
        self._model = problem.model
        self._members = [list(group) for group in groups]
        self._forest = problem.counter.forest(groups)
        self._load = problem.load(groups)
        self.costs = self._model.tree_cost(self._load, self._forest.rates)
        self.alive = np.ones(len(groups), np.bool_)

    @property
    def no_gain(self) -> float:
        """Savings up to this are rounding errors."""
        return TOLERANCE * float(self.costs[self.alive].sum())

    def gains_of(self, tree: int) -> Floats:
        """The saving of merging tree x with every other tree y: their costs apart less their cost together (Eq. 5)."""
        together = self._model.tree_cost(self._load.merged(tree), self._forest.unions(tree))
        gains: Floats = self.costs[tree] + self.costs - together
        gains[~self.alive] = -np.inf
        gains[tree] = -np.inf
        return gains

    def merge(self, left: int, right: int) -> None:
        self._members[left] += self._members[right]
        self._load.absorb(left, right)
        self._forest.merge(left, right)
        self.alive[right] = False
        self.costs[left] = self._model.tree_cost(self._load.only(left), self._forest.rates[left : left + 1])[0]
        self.costs[right] = 0.0

    @property
    def groups(self) -> Groups:
        return [sorted(member) for member, lives in zip(self._members, self.alive, strict=True) if lives]


class Gains:
    """What every pair of trees would save, and for every tree a bound of its best saving."""

    def __init__(self, merging: Merging) -> None:
        self._merging = merging
        self._pairs = np.empty((len(merging.alive), len(merging.alive)))
        for tree in range(len(merging.alive)):
            self._pairs[tree] = merging.gains_of(tree)
        self._best = self._pairs.max(axis=1)
        self._current = np.ones(len(self._pairs), np.bool_)

    def run(self) -> Groups:
        while True:
            left = int(np.argmax(self._best))
            if not self._current[left]:
                self._best[left], self._current[left] = self._pairs[left].max(), True
                continue
            if self._best[left] <= self._merging.no_gain:
                return self._merging.groups
            right = int(np.argmax(self._pairs[left]))
            self._merging.merge(left, right)
            before = np.maximum(self._pairs[:, left], self._pairs[:, right])
            self._pairs[right, :] = self._pairs[:, right] = -np.inf
            now = self._merging.gains_of(left)
            self._pairs[left, :] = self._pairs[:, left] = now
            # A row whose best was with one of the two keeps it as a bound, unless the new gain is better still.
            self._current &= before < self._best
            better = now >= self._best
            self._best[better] = now[better]
            self._current |= better
            self._best[left], self._current[left] = now.max(), True
            self._best[right], self._current[right] = -np.inf, True
