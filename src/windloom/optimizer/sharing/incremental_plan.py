"""Incremental Weave Share (source A, section 5.2): a plan that follows queries as they come and go.

A new query starts as a tree of its own and is merged while that saves; a tree that lost a query is tried with all
others. Edges are not recounted: what the query adds to a tree, or took from it, is judged by a sample of its edges.
When the plan costs more than ε above what a full plan is expected to cost, a full plan takes its place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.model.windows import Window
from windloom.optimizer.cost.papers import Load, WindowColumns
from windloom.optimizer.cost.seconds import CostModel
from windloom.optimizer.sharing.edge_counting import EdgeSample, class_rows
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.search import TOLERANCE
from windloom.optimizer.sharing.weave_share import WeaveShare
from windloom.slicing.edges import EdgeClass
from windloom.slicing.slicings import Slicing

# The smallest change from the trees of one plan to those of another: a number for each new tree.


def keep_numbers(old: Mapping[int, Collection[int]], new: Sequence[Collection[int]], fresh: int) -> list[int]:
    """Return a number per new tree, so that as few queries as possible change theirs; `fresh` and above are unused.

    >>> keep_numbers({4: [1, 2, 3], 7: [5]}, [[5, 3], [1, 2], [9]], fresh=8)
    [7, 4, 8]
    """
    from scipy.optimize import linear_sum_assignment  # takes 0.4 s to import, and most plans do without

    numbers = list(old)
    home = {query: column for column, number in enumerate(numbers) for query in old[number]}
    common = np.zeros((len(new), len(numbers)))
    for row, tree in enumerate(new):
        for query in tree:
            if query in home:
                common[row, home[query]] += 1
    number_of_row = {
        row: numbers[column]
        for row, column in zip(*linear_sum_assignment(common, maximize=True), strict=True)
        if common[row, column] > 0
    }
    numbers_of_new = []
    for row in range(len(new)):
        numbers_of_new.append(number_of_row.get(row, fresh))
        fresh += row not in number_of_row
    return numbers_of_new


# The plan-cost curve (source A, section 5.2): what full plans cost by number of queries, and what to expect next.


class PlanCurve:
    """Extrapolates along the slope of the last two full plans; the first is joined to no queries at no cost.

    >>> curve = PlanCurve()
    >>> curve.add(10, 500.0)
    >>> curve.expected(12)
    600.0
    >>> curve.add(14, 580.0)
    >>> curve.expected(15)
    600.0
    """

    def __init__(self) -> None:
        self._before = (0, 0.0)
        self._last = (0, 0.0)

    def add(self, queries: int, cost: float) -> None:
        """Records the cost of a full plan of this many queries."""
        if queries != self._last[0]:
            self._before = self._last
        self._last = (queries, cost)

    def expected(self, queries: int) -> float:
        """Return the expected cost of a full plan of this many queries, never negative."""
        (n0, c0), (n1, c1) = self._before, self._last
        if n1 == n0:
            return c1
        return max(0.0, c1 + (c1 - c0) / (n1 - n0) * (queries - n1))


@dataclass(frozen=True, slots=True)
class PlanChange:
    """Queries that changed trees: the number of the tree before and after, None if there is none."""

    moved: Mapping[int, tuple[int | None, int | None]]
    cost: float
    expected: float  # of a full plan
    replanned: bool


@dataclass(frozen=True, slots=True)
class FullPlan:
    """A full plan of the queries that existed when it was begun."""

    queries: tuple[int, ...]
    trees: Trees  # positions in `queries`


def check_tolerance(epsilon: object) -> float:
    """Return the tolerance of an incremental plan; raise unless it is a number, and not below zero."""
    if isinstance(epsilon, (int, float)) and not isinstance(epsilon, bool) and epsilon >= 0:
        return float(epsilon)
    shown = f"{epsilon:g}" if isinstance(epsilon, float) else repr(epsilon)
    raise WindloomError(
        f"the tolerance of an incremental plan cannot be {shown}",
        "it is the share by which the plan may cost more than a full one is expected to",
        "give 0 (always make a full plan), a positive number, or infinity (never)",
    )


class IncrementalPlan:
    """Queries by number, trees by number. With `in_background`, a full plan is only requested (`wants_full_plan`):
    the caller makes it with `full_plan`, in another thread if it likes, and hands it to `adopt` between two rounds.
    """

    def __init__(
        self,
        slicing: Slicing,
        model: CostModel,
        epsilon: float,
        choose: Callable[[SharingProblem], Trees] | None = None,
        in_background: bool = False,
    ) -> None:
        self._slicing, self._model, self._epsilon = slicing, model, check_tolerance(epsilon)
        self._choose, self._in_background = choose or WeaveShare().choose, in_background
        self.windows: dict[int, Window] = {}
        #: The number of the query that is added next.
        self.next_query = self._next_tree = 0
        self._members: list[set[int]] = []
        self._numbers: list[int] = []
        self._classes: list[Counter[EdgeClass]] = []
        self._rows: list[NDArray[np.int64]] = []  # the classes as rows, for samples
        self._rates = np.zeros(0)
        self._unions = np.zeros((0, 0))  # edges per second of every two trees together
        self._curve = PlanCurve()
        self._load: Load | None = None  # of the trees; None, as the cost, until it is asked for again
        self._cost: float | None = None
        self.wants_full_plan = False
        self.full_plans = 0

    @classmethod
    def of(
        cls,
        problem: SharingProblem,
        trees: Trees,
        epsilon: float,
        choose: Callable[[SharingProblem], Trees] | None = None,
        in_background: bool = False,
    ) -> IncrementalPlan:
        """Return a plan that continues from a full plan; the numbers of queries are their positions."""
        plan = cls(problem.slicing, problem.model, epsilon, choose, in_background)
        plan.windows = dict(enumerate(problem.windows))
        plan.next_query = len(problem.windows)
        plan._take(FullPlan(tuple(range(len(problem.windows))), trees), problem)
        return plan

    @property
    def trees(self) -> dict[int, tuple[int, ...]]:
        """Queries of each tree, by number."""
        return {
            number: tuple(sorted(members)) for number, members in sorted(zip(self._numbers, self._members, strict=True))
        }

    @property
    def cost(self) -> float:
        if self._cost is None:
            self._cost = float(self._model.tree_cost(self._loads(), self._rates).sum()) if self._members else 0.0
        return self._cost

    @property
    def expected(self) -> float:
        return self._curve.expected(len(self.windows))

    def add(self, window: Window) -> PlanChange:
        """Adds a query; its number is the next one."""
        before = self._tree_numbers()
        query, self.next_query = self.next_query, self.next_query + 1
        self.windows[query] = window
        classes = self._slicing.edges(window)
        sample = EdgeSample.of(classes)
        rate = float(sample.weights.sum())
        unions = self._rates + sample.missing(self._rows) if self._members else np.zeros(0)
        self._members.append({query})
        self._classes.append(Counter(classes))
        self._rows.append(class_rows(classes))
        self._load = self._cost = None
        self._numbers.append(self._next_tree)
        self._next_tree += 1
        self._rates = np.append(self._rates, rate)
        grown = np.full((len(self._rates), len(self._rates)), rate)
        grown[:-1, :-1] = self._unions
        grown[-1, :-1] = grown[:-1, -1] = unions
        self._unions = grown
        self._merge_from(len(self._members) - 1)
        return self._settle(before)

    def remove(self, query: int) -> PlanChange:
        """Removes a query; a tree that has lost its last query is removed too."""
        if query not in self.windows:
            raise WindloomError(
                f"the plan has no query {query}", f"it has {len(self.windows)}", "remove a query that was added"
            )
        before = self._tree_numbers()
        tree = next(i for i, members in enumerate(self._members) if query in members)
        window = self.windows.pop(query)
        self._members[tree].remove(query)
        classes = self._slicing.edges(window)
        self._classes[tree] -= Counter(classes)
        self._rows[tree] = class_rows(self._classes[tree])
        self._load = self._cost = None
        if not self._members[tree]:
            self._drop(tree)
        else:
            sample = EdgeSample.of(classes)
            missing = sample.missing(self._rows, tree)
            self._rates[tree] -= missing[tree]
            unions = self._unions[tree] - missing
            self._unions[tree, :] = self._unions[:, tree] = unions
            self._merge_from(tree)
        return self._settle(before)

    def full_plan(self) -> FullPlan:
        """Return a full plan of the present queries; changes nothing, so it may run beside rounds."""
        queries = tuple(self.windows)
        return FullPlan(queries, self._choose(self._problem(queries)))

    def adopt(self, plan: FullPlan) -> PlanChange:
        """Adopts a full plan, with the queries that were added and without those removed since it was begun."""
        before = self._tree_numbers()
        came = {query: self.windows[query] for query in self.windows if query not in set(plan.queries)}
        remaining = [[plan.queries[i] for i in tree if plan.queries[i] in self.windows] for tree in plan.trees]
        self.windows = {query: self.windows[query] for tree in remaining for query in tree}
        queries = tuple(sorted(self.windows))
        position_of = {query: i for i, query in enumerate(queries)}
        trees = tuple(tuple(position_of[query] for query in tree) for tree in remaining if tree)
        if queries:
            self._take(FullPlan(queries, trees), self._problem(queries))
        for query, window in came.items():
            following, self.next_query = self.next_query, query
            tolerance, self._epsilon = self._epsilon, math.inf
            self.add(window)
            self.next_query, self._epsilon = following, tolerance
        self.wants_full_plan = False
        return self._change(before, replanned=True)

    def _problem(self, queries: tuple[int, ...]) -> SharingProblem:
        return SharingProblem(tuple(self.windows[query] for query in queries), self._slicing, self._model)

    def _take(self, plan: FullPlan, problem: SharingProblem) -> None:
        trees = [[plan.queries[i] for i in tree] for tree in plan.trees]
        self._numbers = keep_numbers(self.trees, trees, self._next_tree)
        self._next_tree = max([self._next_tree, *(number + 1 for number in self._numbers)])
        self._members = [set(tree) for tree in trees]
        self._classes = [
            Counter(edge_class for q in tree for edge_class in self._slicing.edges(self.windows[q])) for tree in trees
        ]
        self._rows = [class_rows(classes) for classes in self._classes]
        self._load = self._cost = None
        forest = problem.counter.forest(problem.bundles_of(plan.trees))
        self._rates = forest.rates.copy()
        self._unions = np.array([forest.unions(tree) for tree in range(len(trees))])
        self._curve.add(len(self.windows), self.cost)
        self.full_plans += 1

    def _loads(self) -> Load:
        if self._load is None:
            queries = list(self.windows)
            position_of = {query: i for i, query in enumerate(queries)}
            columns = WindowColumns.of(list(self.windows.values()), np.ones(len(queries), np.int64))
            self._load = columns.load([[position_of[query] for query in members] for members in self._members])
        return self._load

    def _merge_from(self, tree: int) -> None:
        """Merges the tree with the one that saves most, and continues with the result, while that saves."""
        while len(self._members) > 1:
            load = self._loads()
            costs = self._model.tree_cost(load, self._rates)
            gains = costs + costs[tree] - self._model.tree_cost(load.merged(tree), self._unions[tree])
            gains[tree] = -np.inf
            best = int(np.argmax(gains))
            if gains[best] <= TOLERANCE * float(costs.sum()):
                return
            tree = self._merge(tree, best)

    def _merge(self, first: int, second: int) -> int:
        """Merges the smaller tree into the larger one, so that few queries move, and returns its place."""
        small, large = sorted((first, second), key=lambda tree: (len(self._members[tree]), tree))
        sample = EdgeSample.of(self._classes[small])
        share = self._rates[small] / max(float(sample.weights.sum()), 1e-300)
        unions = self._unions[large] + share * sample.missing(self._rows, large)
        unions[small] = self._unions[large, small]
        self._rates[large] = self._unions[large, small]
        unions = np.maximum(unions, np.maximum(self._rates, self._rates[large]))
        self._unions[large, :] = self._unions[:, large] = unions
        self._members[large] |= self._members[small]
        self._classes[large] += self._classes[small]
        self._rows[large] = class_rows(self._classes[large])
        load = self._loads()
        load.absorb(large, small)
        self._drop(small)
        self._load = load.changed(lambda column: np.delete(column, small, 0))
        return large - (small < large)

    def _drop(self, tree: int) -> None:
        del self._members[tree], self._classes[tree], self._rows[tree], self._numbers[tree]
        self._load = self._cost = None
        self._rates = np.delete(self._rates, tree)
        self._unions = np.delete(np.delete(self._unions, tree, 0), tree, 1)

    def _settle(self, before: dict[int, int]) -> PlanChange:
        """Make or request a full plan if this one is no longer good enough."""
        is_worse = self._epsilon == 0 or self.cost > self.expected * (1 + self._epsilon)
        if not self.windows or math.isinf(self._epsilon) or not is_worse:
            return self._change(before, replanned=False)
        if self._in_background:
            self.wants_full_plan = True
            return self._change(before, replanned=False)
        queries = tuple(self.windows)
        problem = self._problem(queries)
        self._take(FullPlan(queries, self._choose(problem)), problem)
        return self._change(before, replanned=True)

    def _tree_numbers(self) -> dict[int, int]:
        return {
            query: number for number, members in zip(self._numbers, self._members, strict=True) for query in members
        }

    def _change(self, before: dict[int, int], replanned: bool) -> PlanChange:
        after = self._tree_numbers()
        changed = sorted({query for query, _ in before.items() ^ after.items()})
        moved = {query: (before.get(query), after.get(query)) for query in changed}
        return PlanChange(moved, self.cost, self.expected, replanned)


# Incremental: the plan that results when queries come one after the other (source A, section 5.2).

#: The share by which a plan may cost more than a full plan is expected to, before a full plan is made.
DEFAULT_TOLERANCE = 0.1
#: At most this many queries are added one after the other.
MOST_QUERIES = 5_000


class Incremental:
    name = "incremental"

    def __init__(self, epsilon: float = DEFAULT_TOLERANCE) -> None:
        self._epsilon = epsilon

    def choose(self, problem: SharingProblem) -> Trees:
        if len(problem.windows) > MOST_QUERIES:
            raise WindloomError(
                f"the strategy 'incremental' takes at most {MOST_QUERIES:,} queries at once",
                f"there are {len(problem.windows):,}, and each is put into the plan by itself",
                "use 'weave_share', and continue from its plan with IncrementalPlan",
            )
        plan = IncrementalPlan(problem.slicing, problem.model, self._epsilon)
        # In order of the windows, so that the order of the queries does not matter.
        queries = sorted(range(len(problem.windows)), key=problem.windows.__getitem__)
        for query in queries:
            plan.add(problem.windows[query])
        return tuple(sorted(tuple(sorted(queries[i] for i in tree)) for tree in plan.trees.values()))
