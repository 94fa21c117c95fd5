"""The predicted cost of answers in one round: a pass over the cells, and every window that is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.estimate import estimate_set
from windloom.plan.physical import Plan


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """The cost of queries that are answered together: seconds to read their cells once, and per window of one query."""

    passing: float
    window: float

    def seconds(self, windows: float) -> float:
        return self.passing + self.window * windows


def tree_costs(plan: Plan, constants: Constants) -> dict[tuple[int, int], AnswerCost]:
    """Costs by set and tree. A round twice as long reads the same kept cells and reports twice as many windows."""
    costs = {}
    for partial_set in plan.sets:
        length = partial_set.statistics.round_seconds
        once, twice = (
            [
                tree.total * seconds / partial_set.statistics.pace
                for tree in estimate_set(
                    replace(partial_set, statistics=replace(partial_set.statistics, round_seconds=seconds)), constants
                ).trees
            ]
            for seconds in (length, 2 * length)
        )
        for tree, short, long in zip(partial_set.trees, once, twice, strict=True):
            ends = sum(length * TICKS_PER_SECOND / planned.query.window.slide_ticks for planned in tree.queries)
            each = max(0.0, long - short)
            costs[partial_set.number, tree.number] = AnswerCost(max(0.0, short - each), each / ends)
    return costs


def joint_cost(costs: Mapping[tuple[int, int], AnswerCost], trees: Sequence[tuple[int, int]]) -> AnswerCost:
    """The cost of queries that read these trees; if there are several trees, their rows are folded with each other."""
    tree_costs = [costs[tree] for tree in trees]
    folding = 2 if len(tree_costs) > 1 else 1
    return AnswerCost(
        sum(answer_cost.passing for answer_cost in tree_costs),
        folding * sum(answer_cost.window for answer_cost in tree_costs),
    )
