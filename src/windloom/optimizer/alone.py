"""What each query would cost if it ran alone: its sets without the other queries, scanned as a plan would scan them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.model.query import Query
from windloom.model.windows import Window
from windloom.optimizer.answering import set_model
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.estimate import estimate_trees
from windloom.optimizer.intake import choose_scans
from windloom.optimizer.intake.cost import scan_cost
from windloom.optimizer.joins.bits import forced_sets
from windloom.optimizer.joins.folds import fold_seconds
from windloom.plan.physical import Member, PartialSet, Plan, PlannedComponent, PlannedJoin
from windloom.slicing.edges import EdgeSet
from windloom.slicing.identify import choose_slice_id
from windloom.slicing.registry import Slicing, find_slicing


@dataclass(frozen=True, slots=True)
class Alone:
    """The costs of queries that run alone, for comparison with a plan.

    `files` has, by stream, the columns that the driver can read itself, as the plan knew them.
    """

    plan: Plan
    constants: Constants
    files: Mapping[str, frozenset[str]]
    _known: dict[object, float] = field(default_factory=dict)  # many queries ask for the same

    def cell_seconds(self, partial_set: PartialSet, query: Query, edges: EdgeSet) -> float:
        """The cost of making the cells that one query of a set needs, cut at `edges`."""
        components = _needed(partial_set, [query])
        has_marks = bool(find_slicing(self.plan.slicing).marks(query.window))
        key = partial_set.number, components, edges, has_marks
        if key not in self._known:
            cut = replace(partial_set, components=components, edges=edges, slice_id=choose_slice_id(edges))
            merging = 0.0
            if has_marks:  # cells are merged from edges and marks to edges
                model = set_model(cut, self.constants.scaled(cut.statistics.pace))
                merging = float(model.own_cost(np.zeros(1))[0] - model.own_cost(np.full(1, np.inf))[0])
            self._known[key] = self._scanned([cut]) + merging
        return self._known[key]

    def join_seconds(self, join: PlannedJoin, job: float) -> float:
        """The cost of a join: its sides, which share what they have in common, and its fold."""
        slicing, names = find_slicing(self.plan.slicing), {side.name for side in join.sides}
        sets = []
        for number in sorted({side.set for side in join.sides}):
            partial_set = self.plan.sets[number]
            members = [planned for planned in partial_set.queries if planned.name in names]
            sets.append(_only(partial_set, members, slicing))
        idle = frozenset(names) if join.fold == SliceMatrix.name else frozenset[str]()
        trees = sum(estimate_trees(partial_set, self.constants, idle) for partial_set in sets)
        fold = fold_seconds([join], self.plan.sets, self.constants)[join.name]
        return job + self._scanned(sets) + trees + fold

    def _scanned(self, sets: Sequence[PartialSet]) -> float:
        plan = self.plan
        names = {partial_set.stream for partial_set in sets}
        scans = choose_scans(
            [stream for stream in (*plan.streams, *plan.enriched) if stream.name in names],
            sets,
            plan.intake,
            self.constants,
            early=forced_sets(plan.join_plan, plan.joins),
            stores=() if plan.rows else plan.stores,  # what row queries keep, it would not keep for others
            files=self.files,
        )
        by_number = {partial_set.number: partial_set for partial_set in sets}
        fed = ((scan, [by_number[feed.number] for feed in scan.feeds]) for scan in scans)
        return sum(scan_cost(scan, fed_sets, self.constants).total for scan, fed_sets in fed if fed_sets)


def edges_of(windows: Iterable[Window], slicing: Slicing) -> EdgeSet:
    """The edges that a set has for these windows."""
    return EdgeSet.of(
        edge_class for window in windows for edge_class in (*slicing.edges(window), *slicing.marks(window))
    )


def _needed(partial_set: PartialSet, queries: Sequence[Query]) -> tuple[PlannedComponent, ...]:
    """The set's components that the queries need; the first one, COUNT(*), counts tuples for all."""
    asked = {each for query in queries for each in (*query.window.components, *query.components)}
    first, *others = partial_set.components
    return (first, *(planned for planned in others if planned.component in asked))


def _only(partial_set: PartialSet, members: list[Member], slicing: Slicing) -> PartialSet:
    """The set with a single tree for `members`, which keep their techniques."""
    queries = [planned.query for planned in members]
    components = _needed(partial_set, queries)
    tree = next(tree for tree in partial_set.trees if members[0] in tree.queries)
    known = dict(zip(partial_set.components, tree.techniques, strict=True))
    windows = {query.window for query in queries}
    tree = replace(
        tree,
        number=0,
        queries=tuple(members),
        edges=EdgeSet.of(edge_class for window in windows for edge_class in slicing.edges(window)),
        marks=EdgeSet.of(edge_class for window in windows for edge_class in slicing.marks(window)),
        techniques=tuple(known[planned] for planned in components),
    )
    edges = edges_of(windows, slicing)
    return replace(partial_set, components=components, edges=edges, slice_id=choose_slice_id(edges), trees=(tree,))
