"""The predicted cost of answering queries from the cells of a set, for any trees of these queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windloom.model.arrays import Floats
from windloom.model.query import Query
from windloom.optimizer.cost.calibrated import CalibratedCost, columns_of, technique_cost
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.omega import cost_name
from windloom.optimizer.cost.work import Demand, Work, evenly_spaced
from windloom.plan.physical import PartialSet
from windloom.slicing.edges import EdgeSet


def set_model(partial_set: PartialSet, constants: Constants) -> CalibratedCost:
    """The model for the costs that do not depend on techniques."""
    columns = columns_of(partial_set.components)
    return CalibratedCost(constants, partial_set.statistics, (), partial_set.edges.edges_per_second, columns, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Answering:
    """Seconds per second for finding windows and writing answers, and for the technique of each component, by tree."""

    answers: Floats
    techniques: Floats

    @property
    def total(self) -> Floats:
        return np.asarray(self.answers + self.techniques.sum(axis=1))


def estimate_answering(
    partial_set: PartialSet,
    trees: Sequence[Sequence[Query]],
    edges: Sequence[EdgeSet],
    techniques: Sequence[tuple[str, ...]],
    constants: Constants,
) -> Answering:
    """Predict the cost of answering any trees of the set's queries; arrays hold all trees, so a thousand are cheap.

    A tree may have no queries that are answered.
    """
    statistics = partial_set.statistics
    rates, regular = np.array([each.edges_per_second for each in edges]), evenly_spaced(edges)
    every = Work.of(
        Demand.of(([query.window for query in tree] for tree in trees), statistics), rates, statistics, regular
    )
    values = np.array([sum(len(query.aggregates) for query in tree) / max(1, len(tree)) for tree in trees])
    answers = set_model(partial_set, constants).answer_cost(every, values)
    costs = np.zeros((len(trees), len(partial_set.components)))
    work_of: dict[object, Work] = {}
    predicted: dict[object, Floats] = {}
    for index, planned in enumerate(partial_set.components):
        asking = tuple(tuple(query for query in tree if planned.component in query.components) for tree in trees)
        key = tuple(tuple(map(id, tree)) for tree in asking)
        if key not in work_of:  # many components are asked for by the same queries
            windows = ([query.window for query in tree] for tree in asking)
            work_of[key] = Work.of(Demand.of(windows, statistics), rates, statistics, regular)
        work = work_of[key]
        names = np.array([each[index] for each in techniques])
        for name in dict.fromkeys(each[index] for each in techniques):
            has = (names == name) & (work.queries > 0)
            if has.any():
                named = cost_name(str(name), planned.family), planned.family.name, planned.family.costs_like
                if (*named, key) not in predicted:  # and by the same technique
                    predicted[*named, key] = technique_cost(constants, named[0], planned.family, work)
                costs[has, index] = planned.card.limbs(planned) * predicted[*named, key][has]
    return Answering(answers, costs)
