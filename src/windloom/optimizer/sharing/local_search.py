"""Local Search (source A, section 6): from No Share, makes the best move of one query, a bounded number of times."""

from __future__ import annotations

from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.search import Moving, merge_trees

#: Moves per merger of Weave Share on the same queries: the paper's LS-NS 10x, its best variant.
MOVES_PER_MERGER = 10


class LocalSearch:
    name = "local_search"

    def choose(self, problem: SharingProblem) -> Trees:
        problem.require_memory(tables=4)
        alone = [[bundle] for bundle in range(len(problem.bundles))]
        mergers = len(alone) - len(merge_trees(problem, alone))
        moving = Moving(problem, alone)
        moving.descend(MOVES_PER_MERGER * mergers)
        return problem.trees(moving.groups)
