"""What `auto` chooses: the strategy and the techniques that the calibrated cost predicts to be fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from windloom.aggregates.registry import PlannedComponent
from windloom.errors import WindloomError
from windloom.kernels.families import Family
from windloom.kernels.techniques.registry import allowed, choose_technique
from windloom.model.query import Query
from windloom.model.windows import Window
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.papers import cost_name
from windloom.optimizer.cost.seconds import (
    CalibratedCost,
    ComponentDemand,
    columns_of,
    measured_name,
    scanning_cost,
    technique_cost,
    uneven,
)
from windloom.optimizer.cost.work import TERMS, Demand, Terms, Work
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import find_strategy
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import choose_slice_id
from windloom.slicing.slicings import Slicing
from windloom.statistics.set_statistics import Statistics

#: The strategies that search where one tree may not be best: the thorough one while bundles are few.
THOROUGH, QUICK = "reweave", "weave_share"
FEW_BUNDLES = 64
#: A search starts only if some plan could save a larger share of the set's cost than this.
WORTH_SEARCHING = 0.02
#: A technique replaces the usual one of the family if it is predicted to be faster by this share of the usual one's
#: time, and by this share of the time for writing the answers.
CLEARLY, NOTICEABLY = 0.2, 0.1
#: Never chosen by itself: if a rate or a number of groups is wrong, its cost has no bound.
RISKY = "recalculate"


def calibrated_problem(
    queries: Sequence[Query],
    components: tuple[PlannedComponent, ...],
    groupings: int,
    technique: str,
    slicing: Slicing,
    statistics: Statistics,
    constants: Constants,
) -> SharingProblem:
    """Return the sharing problem of the queries of a set, with costs predicted in seconds."""
    kinds: dict[tuple[Family, float], int] = {}
    for planned in components:
        asking = sum(planned.component in query.components for query in queries)
        if asking:
            key = (planned.family, asking / len(queries))
            kinds[key] = kinds.get(key, 0) + planned.aggregator.limbs(planned)
    return windows_problem(
        tuple(query.window for query in queries),
        components,
        tuple(
            ComponentDemand(family, parts, share, _cost_names(family, technique, constants))
            for (family, share), parts in kinds.items()
        ),
        slicing,
        statistics,
        constants,
        values=float(np.mean([len(query.aggregates) for query in queries])),
        groupings=groupings,
    )


def windows_problem(
    windows: tuple[Window, ...],
    components: tuple[PlannedComponent, ...],
    asked: tuple[ComponentDemand, ...],
    slicing: Slicing,
    statistics: Statistics,
    constants: Constants,
    *,
    values: float = 1.0,
    groupings: int = 0,
) -> SharingProblem:
    """Return the sharing problem of windows for the demanded components; an answer has `values` columns on average."""
    edges = EdgeSet.of(
        edge_class for each in set(windows) for edge_class in (*slicing.edges(each), *slicing.marks(each))
    )
    rate = edges.edges_per_second
    dense = replace(statistics, events_per_second=float("inf"))
    model = CalibratedCost(
        constants,
        statistics,
        asked,
        rate,
        columns_of(components),
        values,
        float((Demand.of([windows], statistics).rows / Demand.of([windows], dense).rows)[0]),
        any(slicing.marks(window) for window in set(windows)),
    )
    once = scanning_cost(constants, statistics, rate, choose_slice_id(edges), groupings, components).total
    return SharingProblem(windows, slicing, model, once)


def asked_by_all(planned: PlannedComponent, technique: str, constants: Constants) -> ComponentDemand:
    """Return the demand for a component that every query needs."""
    return ComponentDemand(
        planned.family, planned.aggregator.limbs(planned), 1.0, _cost_names(planned.family, technique, constants)
    )


def _cost_names(family: Family, technique: str, constants: Constants) -> tuple[str, ...]:
    if technique != "auto":
        return (cost_name(technique, family),)
    return contenders(constants, family)


@lru_cache(maxsize=64)
def contenders(constants: Constants, family: Family) -> tuple[str, ...]:
    """Return the cost names of techniques that are fastest in some case, the usual one first.

    The probes are trees of 1 to 4,096 queries whose windows cover 1 to 65,536 cells and move by a cell or by many.
    """
    usual = cost_name(choose_technique(family), family)
    names = []  # those with terms and constants
    for name in (cost_name(technique, family) for technique in allowed(family) if technique != RISKY):
        measured = measured_name(constants, name, family)
        if name in TERMS and {measured, uneven(measured)} <= set(constants.techniques.get(name, {})):
            names.append(name)
    if usual not in names:
        return (usual,)
    queries, length, slide = (
        axis.ravel() for axis in np.meshgrid(4.0 ** np.arange(7), 4.0 ** np.arange(9), 4.0 ** np.arange(6))
    )
    rows, length = queries / slide, np.maximum(length, slide)
    demand = Demand(queries, rows, rows * length, length, rows * np.log2(length))
    even, fastest = Work.of(demand, np.ones(len(queries)), Statistics(1e6)), set()
    for share in (0.0, 1.0):
        work = replace(even, uneven=np.full(len(queries), share))
        costs = np.array([technique_cost(constants, name, family, work) for name in names])
        fastest |= {names[i] for i in np.unique(costs.argmin(axis=0))} - {usual}
    return (usual, *sorted(fastest))


def choose_trees(problem: SharingProblem) -> tuple[str, Trees]:
    """Return a strategy and its trees: one tree for all, or what a search finds where that may be cheaper."""
    model = problem.model
    assert isinstance(model, CalibratedCost), "`auto` decides by predicted seconds"
    best, trees = "shared", find_strategy("shared").choose(problem)
    if len(problem.distinct[0]) == 1:  # equal windows cost least together
        return best, trees
    cost = problem.cost(trees)
    # A lower bound of the cost of any plan with two or more trees: at least one has fewer edges than the set and must
    # merge cells. Beyond that, queries read no cells at all and are answered by what writes answers fastest.
    none = np.full(len(problem.distinct[0]), 1e-9 * model.set_edges_per_second)
    each = model.tree_cost(problem.columns.load([[i] for i in range(len(none))]), none) - model.own_cost(none)
    charges = model.own_cost(none)[0] + model.own_cost(np.array([model.set_edges_per_second]))[0]
    if cost <= (problem.once + float(each.sum() + charges)) * (1 + WORTH_SEARCHING):
        return best, trees
    name = THOROUGH if len(problem.bundles) <= FEW_BUNDLES else QUICK
    try:
        searched = find_strategy(name).choose(problem)
    except WindloomError:
        return best, trees  # The search would take too much memory; nobody asked for it, so that is no reason to fail.
    return (name, searched) if problem.cost(searched) < cost * (1 - 1e-9) else (best, trees)


def choose_techniques(
    components: tuple[PlannedComponent, ...],
    queries: Sequence[Query],
    edges_per_second: float,
    statistics: Statistics,
    constants: Constants,
) -> tuple[str, ...]:
    """For each component of the set, the technique that is fastest for the queries of a tree that ask for it."""
    work: dict[tuple[Window, ...], tuple[Work, dict[str, Terms]]] = {}
    chosen = []
    for planned in components:
        asking = tuple(query.window for query in queries if planned.component in query.components)
        if not asking:
            chosen.append(choose_technique(planned.family))
            continue
        if asking not in work:
            own = Work.of(Demand.of([asking], statistics), np.array([edges_per_second]), statistics)
            work[asking] = own, {}
        family, (own, terms) = planned.family, work[asking]
        names, technique = contenders(constants, family), choose_technique(family)
        usual, *others = (float(technique_cost(constants, name, family, own, terms)[0]) for name in names)
        writing = float(own.rows[0]) * constants.seconds("row")
        if others and usual - min(others) >= max(CLEARLY * usual, NOTICEABLY * writing):
            fastest = names[1 + int(np.argmin(others))]
            technique = next(each for each in allowed(family) if cost_name(each, family) == fastest)
        chosen.append(technique)
    return tuple(chosen)
