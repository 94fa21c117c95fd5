"""Predicts the cost of a whole plan with the calibrated constants, including what its trees share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.model.query import Query
from windloom.optimizer.cost.calibrated import (
    CalibratedCost,
    Scanning,
    columns_of,
    scanning_cost,
    technique_cost,
)
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.omega import cost_name
from windloom.optimizer.cost.work import Demand, Work, evenly_spaced
from windloom.optimizer.intake.cost import NOTHING, scan_costs
from windloom.plan.costs import PlanSeconds, SetSeconds, TreeSeconds
from windloom.plan.physical import PartialSet, Plan
from windloom.slicing.edges import EdgeSet

Floats = NDArray[np.float64]


def estimate_plan(plan: Plan, constants: Constants) -> PlanSeconds:
    """Seconds per second of event time, with the statistics that the plan carries."""
    longest = max((one.statistics.round_length for one in plan.sets), default=1.0)
    scanning = {fed.number: cost for scan in plan.scans for fed, cost in scan_costs(plan, scan, constants)}
    sets = tuple(estimate_set(one, constants, scanning.get(one.number, NOTHING)) for one in plan.sets)
    return PlanSeconds(constants.seconds("job") / longest if sets else 0.0, sets, constants.source)


def estimate_set(one: PartialSet, constants: Constants, scanning: Scanning | None = None) -> SetSeconds:
    """`scanning` is the set's part of the cost of its scan; by default, the set has a scan of its own."""
    constants = constants.scaled(one.statistics.pace)
    scanning = scanning or scanning_cost(
        constants, one.statistics, one.edges.edges_per_second, one.slice_id, len(one.group_by), one.components
    )
    members = [[planned.query for planned in tree.queries] for tree in one.trees]
    edges = [tree.edges for tree in one.trees]
    answering = estimate_answering(one, members, edges, [tree.techniques for tree in one.trees], constants)
    own = _own_costs(one, constants)
    trees = tuple(
        TreeSeconds(float(own[i]), float(answering.answers[i]), tuple(float(each) for each in answering.techniques[i]))
        for i in range(len(one.trees))
    )
    return SetSeconds(scanning.scan, scanning.partials, scanning.merge, trees)


def _own_costs(one: PartialSet, constants: Constants) -> Floats:
    model = set_model(one, constants)
    own = model.own_cost(np.array([tree.fine_edges.edges_per_second for tree in one.trees]))
    # With marks, cells are merged once more, from edges and marks to edges.
    merging = model.own_cost(np.zeros(1))[0] - model.own_cost(np.full(1, np.inf))[0]
    return np.asarray(own + merging * np.array([bool(tree.marks.classes) for tree in one.trees]))


def set_model(one: PartialSet, constants: Constants) -> CalibratedCost:
    """The model for the costs that do not depend on techniques."""
    columns = columns_of(one.components)
    return CalibratedCost(constants, one.statistics, (), one.edges.edges_per_second, columns, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Answering:
    """Seconds per second for finding windows and writing answers, and for the technique of each component, by tree."""

    answers: Floats
    techniques: Floats

    @property
    def total(self) -> Floats:
        return np.asarray(self.answers + self.techniques.sum(axis=1))


def estimate_answering(
    one: PartialSet,
    trees: Sequence[Sequence[Query]],
    edges: Sequence[EdgeSet],
    techniques: Sequence[tuple[str, ...]],
    constants: Constants,
) -> Answering:
    """For any trees of the set's queries, all at once, so that a thousand trees are a few arrays."""
    statistics = one.statistics
    rates, regular = np.array([each.edges_per_second for each in edges]), evenly_spaced(edges)
    every = Work.of(
        Demand.of(([query.window for query in tree] for tree in trees), statistics), rates, statistics, regular
    )
    values = np.array([sum(len(query.aggregates) for query in tree) / len(tree) for tree in trees])
    answers = set_model(one, constants).answer_cost(every, values)
    costs = np.zeros((len(trees), len(one.components)))
    known: dict[object, Work] = {}
    for index, part in enumerate(one.components):
        asking = tuple(tuple(query for query in tree if part.component in query.components) for tree in trees)
        key = tuple(tuple(map(id, tree)) for tree in asking)
        if key not in known:  # many components are asked for by the same queries
            windows = ([query.window for query in tree] for tree in asking)
            known[key] = Work.of(Demand.of(windows, statistics), rates, statistics, regular)
        work = known[key]
        names = np.array([each[index] for each in techniques])
        for name in dict.fromkeys(each[index] for each in techniques):
            has = (names == name) & (work.queries > 0)
            if has.any():
                cost = technique_cost(constants, cost_name(str(name), part.family), part.family, work)
                costs[has, index] = part.card.parts(part) * cost[has]
    return Answering(answers, costs)
