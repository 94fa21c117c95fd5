"""Weave Share (Guirguis et al., figure 2): merge the two trees that save most, until no merger saves anything."""

from __future__ import annotations

from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.search import merge_trees


class WeaveShare:
    name = "weave_share"

    def choose(self, problem: SharingProblem) -> Trees:
        problem.require_memory()
        return problem.trees(merge_trees(problem, [[bundle] for bundle in range(len(problem.bundles))]))
