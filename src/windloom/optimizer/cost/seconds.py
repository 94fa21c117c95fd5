"""The calibrated cost: seconds of work per second of event time, as this runtime spends them on this machine.

A set is scanned once, on the union of its trees' edges (as in TriWeave), so scanning, fetching partials and
sorting them costs the same however its queries form trees. The cost of a tree itself is merging the set's cells into
slices of its own, unless it has all edges of the set. Then come finding windows, the techniques, and writing answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.families import Family
from windloom.model.arrays import Floats
from windloom.model.query import Query
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.papers import Load, cost_name
from windloom.optimizer.cost.work import TERMS, Demand, Terms, Work, evenly_spaced
from windloom.plan.plan import PartialSet
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import GreatestSlice, LookupSlice, PaneSlice, SliceId, choose_slice_id
from windloom.statistics.set_statistics import Statistics


@dataclass(frozen=True, slots=True)
class ComponentDemand:
    """Components of one kind: how many, the share of the queries that ask for them, and the techniques that apply."""

    family: Family
    parts: int  # combined independently of each other
    share: float  # of the queries
    techniques: tuple[str, ...]  # cost names


@dataclass(frozen=True, slots=True)
class CalibratedCost:
    """The costs of one set; every tree uses the technique that is cheapest for it."""

    constants: Constants
    statistics: Statistics
    asked: tuple[ComponentDemand, ...]
    set_edges_per_second: float
    columns: int  # of all components of the set
    values: float  # columns of an answer, on average
    answered: float  # share of windows that hold something
    has_marks: bool = False
    unit: str = "seconds per second"

    def tree_cost(self, load: Load, edges_per_second: Floats) -> Floats:
        work = Work.of(Demand.of_load(load, self.statistics, self.answered), edges_per_second, self.statistics)
        cost = self.own_cost(edges_per_second) + self.answer_cost(work, self.values)
        parts: dict[float, tuple[Work, dict[str, Terms]]] = {}
        for asked in self.asked:
            if asked.share not in parts:
                parts[asked.share] = work.share(asked.share), {}
            part, terms = parts[asked.share]
            each = [technique_cost(self.constants, name, asked.family, part, terms) for name in asked.techniques]
            cost = cost + asked.parts * (np.minimum.reduce(each) if len(each) > 1 else each[0])
        return cost

    def own_cost(self, edges_per_second: Floats) -> Floats:
        """Return what each tree costs before it answers anything."""
        cells = self.statistics.cells_per_second(np.array([self.set_edges_per_second]))[0] * self.statistics.readings
        merging = cells * (self.constants.seconds("coarsen") + self.columns * self.constants.seconds("coarsen_column"))
        is_coarser = edges_per_second < self.set_edges_per_second * (1 - 1e-9)
        # With marks, cells are merged twice: first to edges and marks, then to edges.
        times = is_coarser.astype(np.float64) + (1.0 if self.has_marks else 0.0)
        return np.asarray(times * merging + self.constants.seconds("tree") / self.statistics.round_seconds)

    def answer_cost(self, work: Work, values: Floats | float) -> Floats:
        """Return the cost of finding windows and writing answers."""
        terms = answer_terms(work, values, self.statistics)
        return np.asarray(sum(amount * self.constants.seconds(name) for name, amount in terms.items()))


def answer_terms(work: Work, values: Floats | float, statistics: Statistics) -> dict[str, Floats]:
    """Per second of event time; `values` are the columns of an answer."""
    # A window that does not move evenly is searched for, which takes longer the more cells it moves by.
    moves = np.log2(1 + work.cells * work.queries / np.maximum(work.rows, 1e-300))
    return {
        "row": work.rows,
        "row_value": work.rows * values,
        "row_uneven": work.rows * work.uneven,
        "row_move": work.rows * work.uneven * moves,
        "row_unequal": work.rows * work.unequal,
        "query": work.queries * values / statistics.round_seconds,
        "lane": work.queries * (statistics.groups / statistics.round_seconds),
    }


def technique_cost(
    constants: Constants, technique: str, family: Family, work: Work, known: dict[str, Terms] | None = None
) -> Floats:
    """Return seconds per second to combine one part of one component by a technique (given by its cost name).

    `known` keeps the terms of this work by technique, for further families.
    """
    name = measured_name(constants, technique, family)
    evenly, unevenly = constants.of(technique, name), constants.of(technique, uneven(name))
    terms = None if known is None else known.get(technique)
    if terms is None:
        terms = TERMS[technique](work)
        if known is not None:
            known[technique] = terms
    total: Floats | float = 0.0
    for name, amount in terms.items():
        even, odd = evenly.get(name, 0.0), unevenly.get(name, 0.0)
        total = total + amount * (1e-9 * (even + work.uneven * (odd - even)))
    return np.asarray(total)


def measured_name(constants: Constants, technique: str, family: Family) -> str:
    """Return the family whose constants apply: itself or, if it was not measured, the one that it names."""
    is_known = family.costs_like is None or family.name in constants.techniques.get(technique, {})
    return family.name if is_known else str(family.costs_like)


def uneven(family: str) -> str:
    """Return the name of the constants for windows that do not move evenly."""
    return f"{family} uneven"


@dataclass(frozen=True, slots=True)
class Scanning:
    """Seconds per second that a set costs before any tree; the same for every way to share."""

    scan: float  # tuples read, sliced and aggregated
    partials: float  # partials shuffled and fetched from the JVM
    merge: float  # partials put in order as cells

    @property
    def total(self) -> float:
        return self.scan + self.partials + self.merge


def set_scanning(constants: Constants, partial_set: PartialSet, edges: EdgeSet | None = None) -> Scanning:
    """Return the cost of a set that has a scan of its own; `edges` replace those at which it is cut."""
    return scanning_cost(
        constants,
        partial_set.statistics,
        (edges or partial_set.edges).edges_per_second,
        partial_set.slice_id if edges is None else choose_slice_id(edges),
        len(partial_set.group_by),
        partial_set.components,
    )


def scanning_cost(
    constants: Constants,
    statistics: Statistics,
    edges_per_second: float,
    slice_id: SliceId,
    groupings: int,
    components: tuple[PlannedComponent, ...],
) -> Scanning:
    """Return the cost of scanning one set by itself, with slices cut at `edges_per_second`."""
    fields = sum(len(planned.fields) for planned in components)
    rate = edges_per_second if not isinstance(slice_id, PaneSlice) else 1e6 / slice_id.edges.period
    partials = float(statistics.taken_per_second(np.array([rate]))[0])
    per_tuple = constants.seconds("tuple") + fields * constants.seconds("tuple_field")
    per_tuple += groupings * constants.seconds("tuple_key")
    per_tuple += compared_classes(slice_id) * constants.seconds("tuple_class")
    per_partial = constants.seconds("partial") + (fields + groupings) * constants.seconds("partial_field")
    per_cell = constants.seconds("read") + (groupings > 0) * constants.seconds("read_key")
    per_cell += columns_of(components) * constants.seconds("read_column")
    keeping = keeping_cost(constants, statistics, edges_per_second, components)
    return Scanning(
        statistics.events_per_second * (per_tuple + (1 / statistics.selectivity - 1) * constants.seconds("tuple")),
        partials * per_partial,
        partials * per_cell + keeping,
    )


def keeping_cost(
    constants: Constants, statistics: Statistics, edges_per_second: float, components: tuple[PlannedComponent, ...]
) -> float:
    """Return seconds per second to merge the new cells of each round with those that earlier rounds left.

    Each tuple is assumed to have added a value and a count to a list; both move with their cell.
    """
    kept_cells = float(statistics.cells_per_second(np.array([edges_per_second]))[0]) * (statistics.readings - 1)
    lists = sum(planned.family.is_list for planned in components)
    listed = lists * statistics.events_per_second * (statistics.readings - 1)
    per_cell = constants.seconds("read") + columns_of(components) * constants.seconds("read_column")
    return kept_cells * per_cell + 2 * listed * constants.seconds("read_column")


def compared_classes(slice_id: SliceId) -> int:
    """Return the number of remainders beyond the first that a slice id computes per tuple."""
    match slice_id:
        case GreatestSlice(classes=classes):
            return len(classes) - 1
        case LookupSlice():
            return 1
    return 0


def columns_of(components: tuple[PlannedComponent, ...]) -> int:
    """Return the number of columns of the cells of a set."""
    return sum(planned.aggregator.limbs(planned) * len(planned.family.kinds) for planned in components)


class CostModel(Protocol):
    """All that sharing strategies know: costs of trees, in one unit; the cost of a plan is the sum over its trees."""

    @property
    def unit(self) -> str: ...

    def tree_cost(self, load: Load, edges_per_second: Floats) -> Floats:
        """Return the cost of each tree of `load`, including the charge for being a tree (λ in the papers)."""


# The predicted cost of answering queries from the cells of a set, for any trees of these queries.


def set_model(partial_set: PartialSet, constants: Constants) -> CalibratedCost:
    """Return the model for the costs that do not depend on techniques."""
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
                costs[has, index] = planned.aggregator.limbs(planned) * predicted[*named, key][has]
    return Answering(answers, costs)
