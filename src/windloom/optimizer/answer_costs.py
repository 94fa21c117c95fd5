"""The predicted cost of answers in one round: a pass over the cells, and every window that is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.estimate import estimate_set
from windloom.plan.physical import PartialSet, Plan


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """The cost of queries that are answered together: seconds to read their cells once, and per window of one query."""

    passing: float
    window: float

    def seconds(self, windows: float) -> float:
        return self.passing + self.window * windows


def tree_costs(plan: Plan, constants: Constants) -> dict[tuple[int, int], AnswerCost]:
    """Costs by set and tree. A round twice as long reads the same kept cells and reports twice as many windows."""
    found = {}
    for partial_set in plan.sets:
        length = partial_set.statistics.round_seconds
        once, twice = (_round_seconds(partial_set, times * length, constants) for times in (1, 2))
        for tree, short, long in zip(partial_set.trees, once, twice, strict=True):
            ends = sum(length * TICKS_PER_SECOND / planned.query.window.slide_ticks for planned in tree.queries)
            each = max(0.0, long - short)
            found[partial_set.number, tree.number] = AnswerCost(max(0.0, short - each), each / ends)
    return found


def joint_cost(costs: Mapping[tuple[int, int], AnswerCost], trees: Sequence[tuple[int, int]]) -> AnswerCost:
    """The cost of queries that read these trees; if there are several trees, their rows are folded with each other."""
    own = [costs[tree] for tree in trees]
    folding = 2 if len(own) > 1 else 1
    return AnswerCost(
        sum(answer_cost.passing for answer_cost in own), folding * sum(answer_cost.window for answer_cost in own)
    )


def _round_seconds(partial_set: PartialSet, length: float, constants: Constants) -> list[float]:
    """Seconds that a round of this length takes to answer each tree."""
    longer = replace(partial_set, statistics=replace(partial_set.statistics, round_seconds=length))
    return [tree.total * length / partial_set.statistics.pace for tree in estimate_set(longer, constants).trees]
