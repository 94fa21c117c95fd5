"""Predicts the cost of a whole plan with the calibrated constants, including what its trees share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.seconds import Scanning, estimate_answering, set_model, set_scanning
from windloom.optimizer.intake.cost import NOTHING, scan_costs
from windloom.optimizer.joins.plan import fold_seconds
from windloom.plan.costs import PlanSeconds, SetSeconds, TreeSeconds
from windloom.plan.plan import PartialSet, Plan


def estimate_plan(plan: Plan, constants: Constants) -> PlanSeconds:
    """Return seconds per second of event time, with the statistics that the plan carries."""
    longest = max((partial_set.statistics.round_length for partial_set in plan.sets), default=1.0)
    scanning = {fed.number: cost for scan in plan.scans for fed, cost in scan_costs(plan, scan, constants)}
    idle = idle_sides(plan)
    sets = tuple(estimate_set(each, constants, scanning.get(each.number, NOTHING), idle) for each in plan.sets)
    folds = fold_seconds(plan.joins, plan.sets, constants)
    return PlanSeconds(constants.seconds("job") / longest if sets else 0.0, sets, constants.source, folds)


def idle_sides(plan: Plan) -> frozenset[str]:
    """Sides of joins that are never answered, because matrices are made from their cells."""
    by_matrix = {side.name for join in plan.joins if join.fold == SliceMatrix.name for side in join.sides}
    by_rows = {side.name for join in plan.joins if join.fold != SliceMatrix.name for side in join.sides}
    return frozenset(by_matrix - by_rows)


def estimate_set(
    partial_set: PartialSet, constants: Constants, scanning: Scanning | None = None, idle: frozenset[str] = frozenset()
) -> SetSeconds:
    """Return the cost of a set; `scanning` is its part of the cost of its scan, by default that of a scan of its own.

    `idle` are sides that are not answered.
    """
    constants = constants.scaled(partial_set.statistics.pace)
    scanning = scanning or set_scanning(constants, partial_set)
    trees = tuple(_tree_seconds(partial_set, constants, idle))
    return SetSeconds(scanning.scan, scanning.partials, scanning.merge, trees)


def estimate_trees(partial_set: PartialSet, constants: Constants, idle: frozenset[str] = frozenset()) -> float:
    """Return seconds per second that the trees of a set take, without making the cells of the set."""
    constants = constants.scaled(partial_set.statistics.pace)
    return sum(tree.total for tree in _tree_seconds(partial_set, constants, idle))


def _tree_seconds(partial_set: PartialSet, constants: Constants, idle: frozenset[str]) -> Iterator[TreeSeconds]:
    members = [[planned.query for planned in tree.queries if planned.name not in idle] for tree in partial_set.trees]
    edges = [tree.edges for tree in partial_set.trees]
    techniques = [tree.techniques for tree in partial_set.trees]
    answering = estimate_answering(partial_set, members, edges, techniques, constants)
    model = set_model(partial_set, constants)
    making = model.own_cost(np.array([tree.fine_edges.edges_per_second for tree in partial_set.trees]))
    # With marks, cells are merged once more, from edges and marks to edges.
    merging = model.own_cost(np.zeros(1))[0] - model.own_cost(np.full(1, np.inf))[0]
    making = making + merging * np.array([bool(tree.marks.classes) for tree in partial_set.trees])
    columns = (making.tolist(), answering.answers.tolist(), map(tuple, answering.techniques.tolist()))
    yield from map(TreeSeconds, *columns)


# The predicted cost of answers in one round: a pass over the cells, and every window that is reported.


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
    """Return the cost of queries that read these trees; if these are several, their rows are folded with each other."""
    tree_costs = [costs[tree] for tree in trees]
    folding = 2 if len(tree_costs) > 1 else 1
    return AnswerCost(
        sum(answer_cost.passing for answer_cost in tree_costs),
        folding * sum(answer_cost.window for answer_cost in tree_costs),
    )
