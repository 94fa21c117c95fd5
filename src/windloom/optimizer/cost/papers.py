"""Ω: the operations of final aggregation per edge of a tree, for each technique.

P is the number of partials of a range: the range times the edges per second. Q counts the tree's queries.

| technique             | Ω                                                 | source                                   |
|-----------------------|---------------------------------------------------|------------------------------------------|
| recalculate           | Σ range/slide                                     | source C, Eq. 3 (Panes)                  |
| flat_fat              | Σ (⌊log2(P − 1)⌋ + (P − 1)/2^⌊log2 P⌋)            | source C, Eq. 4                          |
| b_int                 | the same                                          | source C, table 2: as FlatFAT            |
| flat_fit              | 3·Q                                               | source C, Eq. 5                          |
| slick_deque, inverse  | 2 · distinct ranges                               | source C, Eq. 6                          |
| slick_deque, deque    | 2 − 2/Pmax + Q + Σ_{i ≤ Pmax} 1/i!                | source C, Eq. 7                          |
| subtract_on_evict     | 2·Q                                               | source C, table 2: SlickDeque unshared   |
| two_stacks            | 2·Q + answers per edge                            | 3 of table 2, one of them per answer     |
| daba                  | 4·Q + answers per edge                            | 5 of table 2, one of them per answer     |
| prefix_ring           | 1 + answers per edge                              | ours: one addition, and one subtraction  |
|                       |                                                   | per answer                               |
| block_decomposition   | log2(partials of longest range) + answers per     | ours: one combination per level, and one |
|                       | edge                                              | per answer                               |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.families import Family
from windloom.model.aggregate import Property
from windloom.model.arrays import Floats, Ints
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.windows import Window
from windloom.plan.costs import PaperCosts, PaperTree
from windloom.plan.plan import Plan, Tree
from windloom.slicing.edges import EdgeSet, common_edges
from windloom.slicing.slicings import Slicing, find_slicing

#: Up to this many (tree, distinct range) pairs Eq. 4 is summed exactly; beyond, by the paper's quick log2(P − 1) + 1.
EXACT_PAIRS = 1 << 16


@dataclass(frozen=True, slots=True)
class Load:
    """The figures of the queries of one or many trees that Ω depends on: arrays with one entry per tree."""

    overlap: Floats  # Σ range/slide
    answers_per_second: Floats  # Σ 1/slide
    longest_seconds: Floats  # of the ranges
    queries: Floats  # how many
    log_seconds: Floats  # Σ log2 range
    distinct: NDArray[np.uint64]  # a row of bits per tree: which of the distinct ranges it has
    seconds: Floats  # the distinct ranges, ascending
    having: Floats  # a row per tree: how many queries have each; no columns if that would be too many numbers

    @classmethod
    def of(cls, trees: Iterable[Iterable[Window]]) -> Load:
        members = [list(tree) for tree in trees]
        windows = [window for tree in members for window in tree]
        ends = np.cumsum([len(tree) for tree in members])
        trees_of_positions = [range(end - len(tree), end) for tree, end in zip(members, ends.tolist(), strict=True)]
        return WindowColumns.of(windows, np.ones(len(windows))).load(trees_of_positions)

    def merged(self, tree: int) -> Load:
        """Return the load of each tree together with `tree`."""
        return Load(
            self.overlap + self.overlap[tree],
            self.answers_per_second + self.answers_per_second[tree],
            np.maximum(self.longest_seconds, self.longest_seconds[tree]),
            self.queries + self.queries[tree],
            self.log_seconds + self.log_seconds[tree],
            self.distinct | self.distinct[tree],
            self.seconds,
            self.having + self.having[tree],
        )

    def changed(self, change: Callable[[Any], Any]) -> Load:
        """Return the load whose columns with an entry per tree are changed: to one tree, or to all but one."""
        every: list[Any] = [getattr(self, each.name) for each in fields(self)]
        changed: list[Any] = [column if column is self.seconds else change(column) for column in every]
        return Load(*changed)

    def absorb(self, tree: int, other: int) -> None:
        """Merge `other` into `tree`."""
        self.overlap[tree] += self.overlap[other]
        self.answers_per_second[tree] += self.answers_per_second[other]
        self.longest_seconds[tree] = max(self.longest_seconds[tree], self.longest_seconds[other])
        self.queries[tree] += self.queries[other]
        self.log_seconds[tree] += self.log_seconds[other]
        self.distinct[tree] |= self.distinct[other]
        self.having[tree] += self.having[other]


@dataclass(frozen=True)
class WindowColumns:
    """Distinct windows and how many queries have each, for the loads of many trees without a loop over queries."""

    overlap: Floats
    answers_per_second: Floats
    seconds: Floats  # of the range
    queries: Floats
    range_place: Ints  # of the range, among the distinct ones
    ranges: Floats  # the distinct ranges in seconds, ascending

    @classmethod
    def of(cls, windows: Sequence[Window], counts: Sequence[int] | Ints | Floats) -> WindowColumns:
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
        """Return the load of each tree; trees are given as positions of windows.

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


def cost_name(technique: str, family: Family) -> str:
    """Return the name of the technique in Ω, which distinguishes the two forms of SlickDeque.

    >>> from windloom.kernels.families import MAX_INT
    >>> cost_name("slick_deque", MAX_INT)
    'slick_deque_non_inv'
    """
    if technique != "slick_deque":
        return technique
    return "slick_deque_inv" if Property.INVERTIBLE in family.has else "slick_deque_non_inv"


def omega(techniques: Iterable[str], load: Load, edges_per_second: Floats) -> Floats:
    """Σ of Ω over the techniques (by their `cost_name`) a tree runs."""
    total = np.zeros_like(edges_per_second)
    for technique in sorted(set(techniques)):
        total = total + _omega_of(technique, load, edges_per_second)
    return total


def _omega_of(technique: str, load: Load, edges_per_second: Floats) -> Floats:
    answers_per_edge: Floats = load.answers_per_second / edges_per_second
    match technique:
        case "recalculate":
            return load.overlap
        case "prefix_ring":
            return 1 + answers_per_edge
        case "block_decomposition":
            partials = np.maximum(2.0, load.longest_seconds * edges_per_second)
            return np.asarray(np.log2(partials) + answers_per_edge)
        case "flat_fat" | "b_int":
            if not load.having.shape[1]:
                return np.asarray(load.log_seconds + load.queries * (np.log2(edges_per_second) + 1))
            covered = np.maximum(2.0, load.seconds[None, :] * edges_per_second[:, None])
            each = np.floor(np.log2(covered - 1)) + (covered - 1) / 2 ** np.floor(np.log2(covered))
            each[load.seconds[None, :] * edges_per_second[:, None] <= 1] = 0.0
            return np.asarray((load.having * each).sum(axis=1))
        case "running_counts" | "two_stacks":
            return 2 * load.queries + answers_per_edge
        case "flat_fit":
            return 3 * load.queries
        case "subtract_on_evict":
            return 2 * load.queries
        case "daba":
            return 4 * load.queries + answers_per_edge
        case "slick_deque_inv":
            return np.asarray(2 * np.bitwise_count(load.distinct).sum(axis=1, dtype=np.float64))
        case "slick_deque_non_inv":
            partials = np.maximum(1.0, load.longest_seconds * edges_per_second)
            inverses = _INVERSE_FACTORIALS[np.minimum(partials, 18).astype(np.int64) - 1]
            return np.asarray(2 - 2 / partials + load.queries + inverses)
    raise KeyError(technique)


#: Σ 1/i! for i = 1 …; terms after the first dozen add nothing.
_INVERSE_FACTORIALS = np.cumsum([1 / factorial(i) for i in range(1, 19)])


# The papers' cost: a tree reads every event of its stream, and combines Ω times at every edge (Weave Share, Eq. 1).


@dataclass(frozen=True, slots=True)
class PaperCost:
    """λ + E·Ω, with Ω of all the techniques (as Ω names them) that answer the queries.

    A tree that is given partials reads `tree_charge` of them per second instead of all λ events.
    """

    techniques: tuple[str, ...]
    events_per_second: float
    tree_charge: float | None = None
    unit: str = "operations per second"

    def tree_cost(self, load: Load, edges_per_second: NDArray[np.float64]) -> NDArray[np.float64]:
        charge = self.events_per_second if self.tree_charge is None else self.tree_charge
        return charge + edges_per_second * omega(self.techniques, load, edges_per_second)


def paper_costs(plan: Plan) -> PaperCosts:
    """Return the papers' costs of a plan, which may have been chosen by another cost."""
    slicing, trees = find_slicing(plan.slicing), {}
    for partial_set in plan.sets:
        for tree in partial_set.trees:
            queries = [planned.query for planned in tree.queries]
            names = costed_techniques(partial_set.components, tree.techniques, queries)
            load = Load.of([[query.window for query in queries]])
            operations = float(omega(names, load, np.array([tree.edges_per_second]))[0])
            rate = partial_set.statistics.pace * tree.edges_per_second
            trees[partial_set.number, tree.number] = PaperTree(rate, operations, weaveability_of(tree, slicing))
    return PaperCosts(
        sum(len(partial_set.trees) * partial_set.statistics.stream_rate for partial_set in plan.sets), trees
    )


def weaveability_of(tree: Tree, slicing: Slicing) -> float:
    """Common edges of a tree's queries, as a share of all their edges (Weave Share, Eq. 4)."""
    windows = [planned.query.window for planned in tree.queries]
    edges = {window: EdgeSet.of(slicing.edges(window)) for window in set(windows)}
    return common_edges([edges[window] for window in windows], tree.edges)


def costed_techniques(
    components: Iterable[PlannedComponent], techniques: Iterable[str], queries: Sequence[Query]
) -> tuple[str, ...]:
    """Cost names of the techniques that answer something, or of all if none does: COUNT(*) is kept in any case."""
    pairs = list(zip(components, techniques, strict=True))
    asked = [
        (planned, name) for planned, name in pairs if any(planned.component in query.components for query in queries)
    ]
    return tuple(cost_name(name, planned.family) for planned, name in asked or pairs)
