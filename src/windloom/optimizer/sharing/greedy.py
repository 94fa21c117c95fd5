"""The greedy merge of Weave Share (figure 2): the two trees that save most, until no merger saves anything.

Gains of all pairs are kept. A merger changes the gains of one tree only: one row, counted anew. Of every row the best
gain is remembered as a bound, and looked up again only when it comes to the top and is out of date.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.optimizer.sharing.problem import Groups, SharingProblem

#: Savings smaller than rounding are not savings.
TOLERANCE = 1e-9

Floats = NDArray[np.float64]


def merge_trees(problem: SharingProblem, groups: Groups) -> Groups:
    """Trees of bundles, merged while that saves anything."""
    return Merging(problem, groups).run()


class Merging:
    """Trees under merger: who is alive, what each costs, what every pair would save."""

    def __init__(self, problem: SharingProblem, groups: Groups) -> None:
        problem.require_memory()
        self._model = problem.model
        self._members = [list(group) for group in groups]
        self._forest = problem.counter.forest(groups)
        self._load = problem.load(groups)
        self.costs = self._model.tree_cost(self._load, self._forest.rates)
        self._alive = np.ones(len(groups), np.bool_)
        self.mergers = 0

    def run(self) -> Groups:
        trees = len(self._members)
        self._gains = np.empty((trees, trees))
        for tree in range(trees):
            self._gains[tree] = self.gains_of(tree)
        self._best = self._gains.max(axis=1)
        self._current = np.ones(trees, np.bool_)
        while True:
            left = self._top()
            if self._best[left] <= TOLERANCE * float(self.costs[self._alive].sum()):
                return self.groups
            self.merge(left, int(np.argmax(self._gains[left])))

    def gains_of(self, tree: int) -> Floats:
        """What x and y cost apart, less what they cost together, for every other tree y (Eq. 5)."""
        together = self._model.tree_cost(self._load.merged(tree), self._forest.unions(tree))
        gains: Floats = self.costs[tree] + self.costs - together
        gains[~self._alive] = -np.inf
        gains[tree] = -np.inf
        return gains

    def merge(self, left: int, right: int) -> None:
        self._members[left] += self._members[right]
        self._load.absorb(left, right)
        self._forest.merge(left, right)
        self._alive[right] = False
        self.costs[left] = self._model.tree_cost(self._load.only(left), self._forest.rates[left : left + 1])[0]
        self.costs[right] = 0.0
        self.mergers += 1
        self._renew(left, right)

    def _renew(self, left: int, right: int) -> None:
        before = np.maximum(self._gains[:, left], self._gains[:, right])
        self._gains[right, :] = self._gains[:, right] = -np.inf
        now = self.gains_of(left)
        self._gains[left, :] = self._gains[:, left] = now
        # A row whose best was with one of the two keeps it as a bound, unless the new gain is better still.
        self._current &= before < self._best
        better = now >= self._best
        self._best[better] = now[better]
        self._current |= better
        self._best[left], self._current[left] = now.max(), True
        self._best[right], self._current[right] = -np.inf, True

    def _top(self) -> int:
        while True:
            row = int(np.argmax(self._best))
            if self._current[row]:
                return row
            self._best[row], self._current[row] = self._gains[row].max(), True

    @property
    def groups(self) -> Groups:
        return [sorted(one) for one, lives in zip(self._members, self._alive, strict=True) if lives]
