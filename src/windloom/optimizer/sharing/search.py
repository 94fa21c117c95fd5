"""The greedy merge of Weave Share (figure 2): merges the two trees that save most, until no merger saves anything.

The gains of all pairs are kept. A merger changes the gains of one tree only: one row, which is recomputed. The best
gain of every row is remembered as a bound, and computed again only when it is the highest and out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windloom.model.arrays import Floats
from windloom.optimizer.cost.papers import Load
from windloom.optimizer.sharing.problem import Groups, SharingProblem

#: Savings smaller than this share of the cost are rounding, not savings.
TOLERANCE = 1e-9


def merge_trees(problem: SharingProblem, groups: Groups) -> Groups:
    """Return the trees of bundles, merged while that saves anything."""
    return Merging(problem, groups).run()


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
        """Return what merging a tree with every other saves: their costs apart less their cost together (Eq. 5)."""
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
        self.costs[left] = self._model.tree_cost(
            self._load.changed(lambda column: column[left : left + 1]), self._forest.rates[left : left + 1]
        )[0]
        self.costs[right] = 0.0

    def run(self) -> Groups:
        """Merge the two trees that save most, until no merger saves anything; return the trees that are left."""
        pairs = np.array([self.gains_of(tree) for tree in range(len(self.alive))])
        best, is_current = pairs.max(axis=1), np.ones(len(pairs), np.bool_)
        while True:
            left = int(np.argmax(best))
            if not is_current[left]:
                best[left], is_current[left] = pairs[left].max(), True
                continue
            if best[left] <= self.no_gain:
                return self.groups
            right = int(np.argmax(pairs[left]))
            self.merge(left, right)
            before = np.maximum(pairs[:, left], pairs[:, right])
            pairs[right, :] = pairs[:, right] = -np.inf
            now = self.gains_of(left)
            pairs[left, :] = pairs[:, left] = now
            # A row whose best was with one of the two keeps it as a bound, unless the new gain is better still.
            is_current &= before < best
            better = now >= best
            best[better] = now[better]
            is_current |= better
            best[left], is_current[left] = now.max(), True
            best[right], is_current[right] = -np.inf, True

    @property
    def groups(self) -> Groups:
        return [sorted(member) for member, lives in zip(self._members, self.alive, strict=True) if lives]


# Moves between trees: what every bundle would save by moving to another tree, or to one of its own.
#
# A move changes two trees; only these are recounted, against all bundles at once.


@dataclass(frozen=True, slots=True)
class Move:
    bundle: int
    source: int
    target: int
    gain: float


class Moving:
    """Trees of bundles, and what each move of a bundle to another tree would save.

    `home[b]` is the tree of bundle b; there is always an empty tree to move to, which costs nothing.
    """

    def __init__(self, problem: SharingProblem, groups: Groups) -> None:
        self._problem = problem
        bundles = len(problem.bundles)
        self._counts_ranges = problem.columns.counts_ranges(bundles)
        self._alone = problem.load([[bundle] for bundle in range(bundles)], self._counts_ranges)
        rates = problem.counter.rates([[bundle] for bundle in range(bundles)])
        self._cost_alone = problem.model.tree_cost(self._alone, rates)
        self.home = np.zeros(bundles, np.int64)
        self._members = [set(group) for group in groups] + [set()]
        self._costs = np.zeros(len(groups) + 1)
        self._with = np.zeros((bundles, len(groups) + 1))  # cost of each tree with each bundle that it lacks
        self._without = np.zeros(bundles)  # cost of the bundle's tree without it
        for tree in range(len(self._members)):
            self._count(tree)

    @property
    def groups(self) -> Groups:
        return sorted(sorted(tree) for tree in self._members if tree)

    @property
    def cost(self) -> float:
        return float(self._costs.sum())

    def best(self, allowed: NDArray[np.bool_] | None = None) -> Move | None:
        """Return the move that saves most, among the bundles allowed to move; the saving may be negative."""
        gains = (self._costs[self.home] - self._without)[:, None] + self._costs[None, :] - self._with
        gains[np.arange(len(self.home)), self.home] = -np.inf
        if allowed is not None:
            gains[~allowed] = -np.inf
        bundle, target = divmod(int(np.argmax(gains)), gains.shape[1])
        if gains[bundle, target] == -np.inf:
            return None
        return Move(bundle, int(self.home[bundle]), target, float(gains[bundle, target]))

    def apply(self, move: Move) -> None:
        self._members[move.source].remove(move.bundle)
        self._members[move.target].add(move.bundle)
        if all(self._members):  # there is always one empty tree
            self._members.append(set())
            self._costs = np.append(self._costs, 0.0)
            self._with = np.hstack([self._with, np.zeros((len(self.home), 1))])
            self._count(len(self._members) - 1)
        self._count(move.source)
        self._count(move.target)

    def state(self) -> tuple[Any, ...]:
        """Return a copy of everything that `apply` changes."""
        arrays = (self.home, self._costs, self._with, self._without)
        return ([set(tree) for tree in self._members], *(array.copy() for array in arrays))

    def restore(self, state: tuple[Any, ...]) -> None:
        self._members, self.home, self._costs, self._with, self._without = state

    def descend(self, most: int) -> int:
        """Make moves while they save anything, the best first; returns how many it made."""
        for done in range(most):
            move = self.best()
            if move is None or move.gain <= TOLERANCE * self.cost:
                return done
            self.apply(move)
        return most

    def _count(self, tree: int) -> None:
        members = sorted(self._members[tree])
        if not members:
            self._costs[tree] = 0.0
            self._with[:, tree] = self._cost_alone
            return
        inside = np.zeros(len(self.home), np.bool_)
        inside[members] = True
        self.home[members] = tree
        rate, rates = self._problem.counter.toggled(members)
        load = self._problem.load([members], self._counts_ranges)
        self._costs[tree] = self._problem.model.tree_cost(load, np.array([rate]))[0]
        if len(members) == 1:
            rates[members] = rate  # the tree would be empty, and costs nothing
        toggled = self._problem.model.tree_cost(_toggled(load, self._alone, inside), rates)
        self._with[:, tree] = toggled
        self._without[members] = toggled[members] if len(members) > 1 else 0.0


def _toggled(tree: Load, alone: Load, inside: NDArray[np.bool_]) -> Load:
    """Return the load of the tree with each bundle that it lacks, and without each that it has."""
    sign = np.where(inside, -1.0, 1.0)
    longest = np.maximum(tree.longest_seconds[0], alone.longest_seconds)
    members = alone.longest_seconds[inside]
    if np.count_nonzero(members == tree.longest_seconds[0]) == 1 and len(members) > 1:
        longest[inside & (alone.longest_seconds == tree.longest_seconds[0])] = np.partition(members, -2)[-2]
    ranges = alone.distinct | tree.distinct[0]
    once, twice = np.zeros_like(tree.distinct[0]), np.zeros_like(tree.distinct[0])
    for row in alone.distinct[inside]:
        twice |= once & row
        once |= row
    ranges[inside] = tree.distinct[0] & ~(alone.distinct[inside] & ~twice)
    return Load(
        np.maximum(tree.overlap + sign * alone.overlap, 0.0),
        np.maximum(tree.answers_per_second + sign * alone.answers_per_second, 0.0),
        longest,
        tree.queries + sign * alone.queries,
        tree.log_seconds + sign * alone.log_seconds,
        ranges,
        tree.seconds,
        tree.having + sign[:, None] * alone.having,
    )


def improvements(moving: Moving, length: int) -> Iterator[float]:
    """Yield the saving of each chain of moves (Kernighan and Lin): every bundle at most once, the best move next.

    A chain ends where its sum was best, and is given up when it has not been better for `length` moves. Swaps, and
    groups that leave a tree together, are chains.
    """
    while True:
        free = np.ones(len(moving.home), np.bool_)
        total, best, best_state, since = 0.0, TOLERANCE * moving.cost, moving.state(), 0
        improved = False
        while since < length and (move := moving.best(free)) is not None:
            moving.apply(move)
            free[move.bundle] = False
            total, since = total + move.gain, since + 1
            if total > best:
                best, best_state, since, improved = total, moving.state(), 0, True
        moving.restore(best_state)
        if not improved:
            return
        yield best
