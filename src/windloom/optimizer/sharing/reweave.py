"""Reweave, ours: Weave Share, then moves, chains of moves and mergers while they save; exhaustive for few windows.

Weave Share never undoes a merger. Here a bundle may leave its tree for a better one that has formed later, and a
whole group may leave by a chain of moves that pays off only at its end.
"""

from __future__ import annotations

from windloom.optimizer.sharing.exhaustive import cheapest_partition
from windloom.optimizer.sharing.problem import Groups, SharingProblem, Trees
from windloom.optimizer.sharing.search import Moving, improvements, merge_trees
from windloom.optimizer.sharing.weave_share import WeaveShare
from windloom.slicing.edges import TABLE_SETS

#: Rounds of moves, chains and mergers; moves that a chain may make without improvement.
ROUNDS = 8
CHAIN = 12
#: Work of one start: bundles times trees times moves. Beyond it a search ends early, always at the same place.
WORK = 40_000_000


class Reweave:
    name = "reweave"

    def choose(self, problem: SharingProblem) -> Trees:
        if len(problem.bundles) <= TABLE_SETS:
            return problem.trees(cheapest_partition(problem))
        woven = WeaveShare().choose(problem)
        moved = problem.trees(refined(problem, problem.bundles_of(woven)))
        return min((woven, moved), key=problem.cost)  # if costs are equal, what Weave Share found


def refined(problem: SharingProblem, groups: Groups) -> Groups:
    """Return the trees after moves, chains and mergers, repeated while they save anything."""
    for _ in range(ROUNDS):
        before = _cost(problem, groups)
        moving = Moving(problem, groups)
        most = max(1, WORK // (len(moving.home) * (len(groups) + 1)))
        moving.descend(min(most, 4 * len(moving.home)))
        for _ in improvements(moving, CHAIN):
            moving.descend(len(moving.home))
        groups = merge_trees(problem, moving.groups)
        if _cost(problem, groups) >= before * (1 - 1e-9):
            break
    return groups


def _cost(problem: SharingProblem, groups: Groups) -> float:
    return float(problem.model.tree_cost(problem.load(groups), problem.counter.rates(groups)).sum())
