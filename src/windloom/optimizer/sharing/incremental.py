"""Incremental: the plan that results when queries come one after the other (source A, section 5.2)."""

from __future__ import annotations

from windloom.errors import WindloomError
from windloom.optimizer.sharing.incremental_plan import IncrementalPlan
from windloom.optimizer.sharing.problem import SharingProblem, Trees

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
