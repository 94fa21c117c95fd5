"""Predicts the cost of a whole plan with the calibrated constants, including what its trees share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.optimizer.answering import estimate_answering, set_model
from windloom.optimizer.cost.calibrated import Scanning, set_scanning
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.intake.cost import NOTHING, scan_costs
from windloom.optimizer.joins.folds import fold_seconds
from windloom.plan.costs import PlanSeconds, SetSeconds, TreeSeconds
from windloom.plan.physical import PartialSet, Plan


def estimate_plan(plan: Plan, constants: Constants) -> PlanSeconds:
    """Seconds per second of event time, with the statistics that the plan carries."""
    longest = max((partial_set.statistics.round_length for partial_set in plan.sets), default=1.0)
    scanning = {fed.number: cost for scan in plan.scans for fed, cost in scan_costs(plan, scan, constants)}
    idle = idle_sides(plan)
    sets = tuple(
        estimate_set(partial_set, constants, scanning.get(partial_set.number, NOTHING), idle)
        for partial_set in plan.sets
    )
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
    """The cost of a set; `scanning` is its part of the cost of its scan, by default that of a scan of its own.

    `idle` are sides that are not answered.
    """
    constants = constants.scaled(partial_set.statistics.pace)
    scanning = scanning or set_scanning(constants, partial_set)
    return SetSeconds(
        scanning.scan, scanning.partials, scanning.merge, tuple(_tree_seconds(partial_set, constants, idle))
    )


def estimate_trees(partial_set: PartialSet, constants: Constants, idle: frozenset[str] = frozenset()) -> float:
    """Seconds per second that the trees of a set take, without making the cells of the set."""
    constants = constants.scaled(partial_set.statistics.pace)
    return sum(tree.total for tree in _tree_seconds(partial_set, constants, idle))


def _tree_seconds(partial_set: PartialSet, constants: Constants, idle: frozenset[str]) -> Iterator[TreeSeconds]:
    members = [[planned.query for planned in tree.queries if planned.name not in idle] for tree in partial_set.trees]
    edges = [tree.edges for tree in partial_set.trees]
    answering = estimate_answering(
        partial_set, members, edges, [tree.techniques for tree in partial_set.trees], constants
    )
    model = set_model(partial_set, constants)
    making = model.own_cost(np.array([tree.fine_edges.edges_per_second for tree in partial_set.trees]))
    # With marks, cells are merged once more, from edges and marks to edges.
    merging = model.own_cost(np.zeros(1))[0] - model.own_cost(np.full(1, np.inf))[0]
    making = making + merging * np.array([bool(tree.marks.classes) for tree in partial_set.trees])
    for seconds, answers, techniques in zip(
        making.tolist(), answering.answers.tolist(), answering.techniques.tolist(), strict=True
    ):
        yield TreeSeconds(seconds, answers, tuple(techniques))
