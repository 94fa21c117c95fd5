"""Exhaustive: the cheapest of all partitions, for few windows.

The best plan of a set of bundles consists of a tree with the first of them and the best plan of the rest. So the search
goes through all subsets of all subsets, 3^n trees, instead of all partitions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.kernels.compiling import compiled
from windloom.optimizer.sharing.edge_counting import EdgeTable
from windloom.optimizer.sharing.problem import Groups, SharingProblem, Trees
from windloom.slicing.edges import TABLE_SETS


class Exhaustive:
    name = "exhaustive"

    def choose(self, problem: SharingProblem) -> Trees:
        if len(problem.bundles) > TABLE_SETS:
            raise WindloomError(
                f"the strategy 'exhaustive' takes at most {TABLE_SETS} windows with edges of their own",
                f"there are {len(problem.bundles):,}",
                "use 'reweave', which is exhaustive where it can be",
            )
        return problem.trees(cheapest_partition(problem))


def cheapest_partition(problem: SharingProblem) -> Groups:
    """Return the cheapest partition of the bundles, which must be few."""
    bundles = len(problem.bundles)
    subsets = [[i for i in range(bundles) if subset >> i & 1] for subset in range(1, 1 << bundles)]
    rates = EdgeTable(problem.bundle_edges).rates(subsets)
    costs = np.concatenate([[0.0], problem.model.tree_cost(problem.load(subsets), rates)])
    trees, left = _best_trees(costs), (1 << bundles) - 1
    groups = []
    while left:
        groups.append(subsets[trees[left] - 1])
        left ^= int(trees[left])
    return groups


@compiled
def _best_trees(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """For every set of bundles, the tree of its lowest bundle in its cheapest plan."""
    best, trees = np.zeros(len(costs)), np.zeros(len(costs), np.int64)
    for whole in range(1, len(costs)):
        lowest = whole & -whole
        best[whole] = np.inf
        others = whole ^ lowest
        rest = others
        while True:  # every subset of the others joins the lowest
            tree = lowest | (others ^ rest)
            cost = costs[tree] + best[rest]
            if cost < best[whole]:
                best[whole], trees[whole] = cost, tree
            if rest == 0:
                break
            rest = (rest - 1) & others
    return trees
