"""The papers' cost: a tree reads every event of its stream, and combines Ω times at every edge (Weave Share, Eq. 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.model.query import Query
from windloom.optimizer.cost.omega import Load, cost_name, omega
from windloom.plan.costs import PaperCosts, PaperTree
from windloom.plan.physical import Plan, PlannedComponent, Tree
from windloom.slicing.edges import EdgeSet, common_edges
from windloom.slicing.registry import Slicing, find_slicing


@dataclass(frozen=True, slots=True)
class PaperCost:
    """λ + E·Ω, with Ω of all the techniques (as Ω names them) that answer the queries.

    A tree that is given partials reads `tree_charge` of them per second instead of all λ events.
    """

    techniques: tuple[str, ...]
    events_per_second: float
    tree_charge: float | None = None
    name: str = "paper"
    unit: str = "operations per second"

    def tree_cost(self, load: Load, edges_per_second: NDArray[np.float64]) -> NDArray[np.float64]:
        charge = self.events_per_second if self.tree_charge is None else self.tree_charge
        return charge + edges_per_second * omega(self.techniques, load, edges_per_second)


def paper_costs(plan: Plan) -> PaperCosts:
    """The papers' costs of a plan, which may have been chosen by another cost."""
    slicing, trees = find_slicing(plan.slicing), {}
    for partial_set in plan.sets:
        for tree in partial_set.trees:
            queries = [planned.query for planned in tree.queries]
            names = costed_techniques(partial_set.components, tree.techniques, queries)
            load = Load.of([[query.window for query in queries]])
            operations = float(omega(names, load, np.array([tree.edges_per_second]))[0])
            rate = partial_set.statistics.pace * tree.edges_per_second
            trees[partial_set.number, tree.number] = PaperTree(rate, operations, weaveability_of(tree, slicing))
    return PaperCosts(
        sum(len(partial_set.trees) * partial_set.statistics.stream_rate for partial_set in plan.sets), trees
    )


def weaveability_of(tree: Tree, slicing: Slicing) -> float:
    """Common edges of a tree's queries, as a share of all their edges (Weave Share, Eq. 4)."""
    windows = [planned.query.window for planned in tree.queries]
    edges = {window: EdgeSet.of(slicing.edges(window)) for window in set(windows)}
    return common_edges([edges[window] for window in windows], tree.edges)


def costed_techniques(
    components: Iterable[PlannedComponent], techniques: Iterable[str], queries: Sequence[Query]
) -> tuple[str, ...]:
    """Cost names of the techniques that answer something, or of all if none does: COUNT(*) is kept in any case."""
    pairs = list(zip(components, techniques, strict=True))
    asked = [
        (planned, name) for planned, name in pairs if any(planned.component in query.components for query in queries)
    ]
    return tuple(cost_name(name, planned.family) for planned, name in asked or pairs)
