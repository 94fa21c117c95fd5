"""Incremental: the plan that is there when queries came one after the other (source A, section 5.2)."""

from __future__ import annotations

from windloom.optimizer.sharing.incremental_plan import IncrementalPlan
from windloom.optimizer.sharing.problem import SharingProblem, Trees

#: Share by which a plan may cost more than a full plan is expected to, before it is planned anew.
DEFAULT_TOLERANCE = 0.1


class Incremental:
    name = "incremental"

    def __init__(self, epsilon: float = DEFAULT_TOLERANCE) -> None:
        self._epsilon = epsilon

    def choose(self, problem: SharingProblem) -> Trees:
        plan = IncrementalPlan(problem.slicing, problem.model, self._epsilon)
        # In order of the windows: the order in which queries came does not matter.
        queries = sorted(range(len(problem.windows)), key=problem.windows.__getitem__)
        for query in queries:
            plan.add(problem.windows[query])
        return tuple(sorted(tuple(sorted(queries[i] for i in tree)) for tree in plan.trees.values()))
