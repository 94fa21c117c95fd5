"""The problem that a sharing strategy solves: queries in bundles that stay together, and the costs of trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.model.windows import Window
from windloom.optimizer.cost.papers import Load, PaperCost, WindowColumns
from windloom.optimizer.cost.seconds import CostModel
from windloom.optimizer.sharing.edge_counting import EdgeCounter, choose_counter
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slicings import Slicing

#: A partition of the queries, by position; each inner tuple is a tree.
Trees = tuple[tuple[int, ...], ...]
#: A partition of the bundles.
Groups = list[list[int]]

#: Up to this many distinct windows, a window is a bundle of its own unless bundling equal edges is free.
FEW_WINDOWS = 512
#: The memory that a search may take, in bytes.
MEMORY_LIMIT = 4 << 30


@dataclass(frozen=True)
class SharingProblem:
    """Queries of one partial set, where they cut the stream, and what trees of them cost.

    `once` is what a plan costs however many trees it has.
    """

    windows: tuple[Window, ...]
    slicing: Slicing
    model: CostModel
    once: float = 0.0
    memory_limit: int = MEMORY_LIMIT

    @cached_property
    def distinct(self) -> tuple[tuple[Window, ...], NDArray[np.int64]]:
        """The distinct windows in order, and which of them every query has."""
        objects = dict(zip(map(id, self.windows), self.windows, strict=True))
        windows = sorted(set(objects.values()))
        index_of = {window: i for i, window in enumerate(windows)}
        # Looked up by object: many queries may share a window, and hashing a million windows takes longer than the
        # search.
        index_of_id = {key: index_of[window] for key, window in objects.items()}
        places = map(index_of_id.__getitem__, map(id, self.windows))
        return tuple(windows), np.fromiter(places, np.int64, len(self.windows))

    @cached_property
    def columns(self) -> WindowColumns:
        windows, window_of = self.distinct
        return WindowColumns.of(windows, np.bincount(window_of, minlength=len(windows)))

    @cached_property
    def edge_sets(self) -> tuple[EdgeSet, ...]:
        """The edges of the distinct windows."""
        return tuple(EdgeSet.of(self.slicing.edges(window)) for window in self.distinct[0])

    @cached_property
    def bundles(self) -> tuple[tuple[int, ...], ...]:
        """Distinct windows that stay together, by place: those with equal edges, or each alone.

        Equal windows cost least together in any case. So do windows with equal edges where costs add up: then a plan
        that keeps them apart is no cheaper than one that moves them to the tree of fewer edges, and merging them saves
        as much as a merger can save, so that the greedy merge begins with them anyway. Where costs do not add up, they
        are bundled only if windows are many.
        """
        members: dict[EdgeSet, list[int]] = {}
        for place, edges in enumerate(self.edge_sets):
            members.setdefault(edges, []).append(place)
        by_edges = [members[edges] for edges in sorted(members, key=lambda edges: edges.classes)]
        if len(self.distinct[0]) > FEW_WINDOWS or self._adds_up(by_edges):
            return tuple(map(tuple, by_edges))
        return tuple((place,) for place in range(len(self.distinct[0])))

    def _adds_up(self, bundles: list[list[int]]) -> bool:
        """Return whether windows together cost what they cost apart at equal edges, less a charge per tree saved."""
        several = [bundle for bundle in bundles if len(bundle) > 1]
        if not several:
            return True
        several.append([place for bundle in bundles for place in bundle])  # and across bundles
        rates = np.array([self.edge_sets[bundle[0]].edges_per_second for bundle in several])
        lengths = np.array([len(bundle) for bundle in several])
        exact = self.columns.counts_ranges(int(lengths.sum()))
        apart = self.columns.load([[place] for bundle in several for place in bundle], exact)
        together = self.columns.load(several, exact)
        saved = []
        for factor in (1.0, 3.7):  # a tree may have more edges than the bundle
            alone = self.model.tree_cost(apart, np.repeat(rates * factor, lengths))
            whole = self.model.tree_cost(together, rates * factor)
            summed = np.add.reduceat(alone, np.cumsum(lengths) - lengths)
            saved.append((summed - whole) / (lengths - 1))
        return bool(np.allclose(saved, saved[0][0], rtol=1e-9, atol=1e-9 * float(np.abs(saved[0]).max())))

    @cached_property
    def bundle_edges(self) -> tuple[EdgeSet, ...]:
        return tuple(self.edge_sets[bundle[0]] for bundle in self.bundles)

    @cached_property
    def counter(self) -> EdgeCounter:
        return choose_counter(self.bundle_edges)

    def load(self, groups: Sequence[Sequence[int]], exact: bool | None = None) -> Load:
        """Return the load of trees of bundles."""
        bundles = [np.array(bundle, np.int64) for bundle in self.bundles]
        return self.columns.load([np.concatenate([bundles[i] for i in group]) for group in groups], exact)

    def trees(self, groups: Iterable[Iterable[int]]) -> Trees:
        """Return the trees of queries that correspond to trees of bundles."""
        tree_of_window = np.empty(len(self.distinct[0]), np.int64)
        count = 0
        for count, group in enumerate(groups, 1):
            for bundle in group:
                tree_of_window[list(self.bundles[bundle])] = count
        tree = tree_of_window[self.distinct[1]]
        order = np.argsort(tree, kind="stable")
        bounds = np.searchsorted(tree[order], np.arange(2, count + 1))
        return tuple(sorted(tuple(part.tolist()) for part in np.split(order, bounds)))

    def bundles_of(self, trees: Trees) -> Groups:
        """Return the bundles that have a query in each tree; a bundle that the trees divide is in several."""
        bundle_of_window = np.empty(len(self.distinct[0]), np.int64)
        for number, bundle in enumerate(self.bundles):
            bundle_of_window[list(bundle)] = number
        bundle_of = bundle_of_window[self.distinct[1]]
        return [np.unique(bundle_of[list(tree)]).tolist() for tree in trees]

    def cost(self, trees: Trees) -> float:
        """Return the cost of a plan, in the unit of the model (Weave Share, Eq. 3)."""
        return self.once + float(self.tree_costs(trees).sum())

    def tree_cost(self, tree: Iterable[int]) -> float:
        return float(self.tree_costs([tuple(tree)])[0])

    def tree_costs(self, trees: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Return the cost of each tree, with its edges counted as exactly as possible."""
        counts = (Counter(self.distinct[1][list(tree)].tolist()) for tree in trees)
        return np.array([self._tree_cost(tuple(sorted(counted.items()))) for counted in counts])

    @cached_property
    def _tree_cost(self) -> Callable[[tuple[tuple[int, int], ...]], float]:
        @lru_cache(maxsize=65_536)  # a plan without sharing has the same tree many times
        def cost(counted: tuple[tuple[int, int], ...]) -> float:
            windows = [self.distinct[0][place] for place, _ in counted]
            load = WindowColumns.of(windows, [count for _, count in counted]).load([range(len(windows))])
            rate = self.union(self.edge_sets[place] for place, _ in counted).edges_per_second
            return float(self.model.tree_cost(load, np.array([rate]))[0])

        return cost

    @staticmethod
    def union(sets: Iterable[EdgeSet]) -> EdgeSet:
        return EdgeSet.of({edge_class for edges in sets for edge_class in edges.classes})

    def one_scan(self) -> SharingProblem:
        """Return the problem if the stream is read once and trees are given its partials (TriWeave, source C, 3.1.1).

        A tree then reads every partial of the union of all edges instead of every event. Only the papers' model
        reads the stream once per tree; problems with other models stay as they are.
        """
        if not isinstance(self.model, PaperCost):
            return self
        model = replace(self.model, tree_charge=self.union(self.bundle_edges).edges_per_second)
        problem = replace(self, model=model, once=self.model.events_per_second)
        # Another charge per tree changes neither the bundles nor their edges.
        known = ("distinct", "columns", "edge_sets", "bundles", "counter")
        problem.__dict__.update({name: getattr(self, name) for name in known})
        return problem

    def require_memory(self, tables: int = 1) -> None:
        """Refuses a search whose tables, with an entry for each pair of bundles, would take too much memory."""
        bundles = len(self.bundles)
        needed = 8 * tables * bundles * bundles + 8 * bundles * (len(self.columns.ranges) // 64 + 8) * 3
        if needed > self.memory_limit:
            raise WindloomError(
                f"a plan of {bundles:,} windows with edges of their own takes {needed >> 20:,} MiB to find",
                f"{self.memory_limit >> 20:,} MiB are allowed, and the search keeps what every pair of windows saves",
                "allow more memory, or use the strategy 'shared' or 'insert_then_weave'",
            )
