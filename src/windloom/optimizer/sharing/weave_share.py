"""Weave Share (Guirguis et al., figure 2): merge the two trees that save most, until no merger saves anything.

Gains of all pairs are kept; a merger changes only the gains of one tree. Unions of edges are counted as bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.optimizer.cost.omega import Load
from windloom.optimizer.sharing.problem import SharingProblem, Trees

#: Savings smaller than rounding are not savings.
_TOLERANCE = 1e-9


class WeaveShare:
    name = "weave_share"

    def choose(self, problem: SharingProblem) -> Trees:
        bits, rate_of_bit = problem.bundle_marks()
        members = [list(bundle) for bundle in problem.bundles]
        load = Load.of([[problem.windows[i] for i in bundle] for bundle in members])
        # A sample of panes may miss edges that are rare; a tree has at least those of any of its bundles.
        known = np.array([problem.edge_sets[bundle[0]].edges_per_second for bundle in problem.bundles])
        rates = np.maximum(_count(bits) * rate_of_bit, known)
        cost = problem.model.tree_cost(load, rates)
        alive = np.ones(len(members), np.bool_)

        def gains_of(tree: int) -> NDArray[np.float64]:
            """What x and y cost apart, less what they cost together, for every other tree y."""
            union = np.maximum(_count(bits | bits[tree]) * rate_of_bit, np.maximum(known, known[tree]))
            gains: NDArray[np.float64] = cost[tree] + cost - problem.model.tree_cost(load.merged(tree), union)
            gains[~alive] = -np.inf
            gains[tree] = -np.inf
            return gains

        gains = np.array([gains_of(tree) for tree in range(len(members))])
        while True:
            left, right = divmod(int(np.argmax(gains)), len(members))
            if gains[left, right] <= _TOLERANCE * max(1.0, float(cost[alive].sum())):
                break
            members[left] += members[right]
            load.absorb(left, right)
            bits[left] |= bits[right]
            alive[right] = False
            known[left] = max(known[left], known[right])
            rate = np.maximum(_count(bits[left : left + 1]) * rate_of_bit, known[left])
            cost[left] = problem.model.tree_cost(load.only(left), rate)[0]
            gains[right, :] = gains[:, right] = -np.inf
            gains[left, :] = gains[:, left] = gains_of(left)
        return tuple(tuple(sorted(tree)) for tree, lives in zip(members, alive, strict=True) if lives)


def _count(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    count: NDArray[np.float64] = np.bitwise_count(bits).sum(axis=1, dtype=np.float64)
    return count
