"""What sharing saves each query, and what would save more: the figures of EXPLAIN SHARING."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd

import numpy as np

from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.folds.slice_matrix import SliceMatrix
from windloom.model.arrays import Floats
from windloom.model.join import WindowedStream
from windloom.model.query import Query
from windloom.model.windows import TimeWindow, Window
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.papers import weaveability_of
from windloom.optimizer.cost.seconds import estimate_answering, scanning_cost, set_model, set_scanning
from windloom.optimizer.intake.choose import choose_scans
from windloom.optimizer.intake.cost import scan_cost
from windloom.optimizer.joins.plan import fold_seconds, forced_sets
from windloom.optimizer.plan_cost import estimate_plan, estimate_trees
from windloom.plan.costs import Advice, Merger, PlanSeconds, QueryShare, SetSeconds, SharingReport
from windloom.plan.plan import Member, PartialSet, Plan, PlannedJoin, Tree
from windloom.slicing.edges import EdgeSet, weaveability
from windloom.slicing.slice_id import choose_slice_id
from windloom.slicing.slicings import Slicing, find_slicing

# What each query would cost if it ran alone: its sets without the other queries, scanned as a plan would scan them.


@dataclass(frozen=True, slots=True)
class SoloCosts:
    """The costs of queries that run alone, for comparison with a plan.

    `files` has, by stream, the columns that the driver can read itself, as the plan knew them.
    """

    plan: Plan
    constants: Constants
    files: Mapping[str, frozenset[str]]
    _known: dict[object, float] = field(default_factory=dict)  # many queries ask for the same

    def cell_seconds(self, partial_set: PartialSet, query: Query, edges: EdgeSet) -> float:
        """Return the cost of making the cells that one query of a set needs, cut at `edges`."""
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
        """Return the cost of a join: its sides, which share what they have in common, and its fold."""
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
    """Return the edges that a set has for these windows."""
    return EdgeSet.of(
        edge_class for window in windows for edge_class in (*slicing.edges(window), *slicing.marks(window))
    )


def _needed(partial_set: PartialSet, queries: Sequence[Query]) -> tuple[PlannedComponent, ...]:
    """Return the set's components that the queries need; the first one, COUNT(*), counts tuples for all."""
    asked = {each for query in queries for each in (*query.window.components, *query.components)}
    first, *others = partial_set.components
    return (first, *(planned for planned in others if planned.component in asked))


def _only(partial_set: PartialSet, members: list[Member], slicing: Slicing) -> PartialSet:
    """Return the set with a single tree for `members`, which keep their techniques."""
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


#: At most this many trees of a set are compared with one another, the largest ones.
_COMPARED_TREES = 12
#: The number of queries of a set for which other slides are tried, those with the largest cost. Trying means counting
#: the edges of all windows again, so the more windows there are, the fewer queries are tried.
_ADVISED_QUERIES = 24
_COUNTED_WINDOWS = 1_000
#: The number of slides tried for each of them, and the number kept.
_TRIED_SLIDES, _KEPT_SLIDES = 6, 2
#: Savings below this share of the query's own cost are not worth a change.
_WORTH = 0.05


def report_sharing(
    plan: Plan, constants: Constants, files: Mapping[str, frozenset[str]] | None = None
) -> SharingReport:
    """Return what each query costs, what it would cost alone, and which changes would save more.

    `files` has, by stream, the columns that the driver can read itself, if the plan was made with them.
    """
    seconds = estimate_plan(plan, constants)
    lone = SoloCosts(plan, constants, files or {})
    slicing = find_slicing(plan.slicing)
    queries: dict[str, QueryShare] = {}
    mergers: dict[tuple[int, int], tuple[Merger, ...]] = {}
    # A job serves sides as it serves plain queries.
    count = sum(len(tree.queries) for tree in plan.trees)
    for partial_set, costs in zip(plan.sets, seconds.sets, strict=True):
        scaled = constants.scaled(partial_set.statistics.pace)
        queries.update(_shares(partial_set, costs, seconds.job, count, slicing, scaled, lone))
        queries.update(_advised(partial_set, costs, queries, slicing, scaled))
        mergers.update(_mergers(partial_set, costs, scaled))
    shared = ((each.number, tree) for each in plan.sets for tree in each.trees if len(tree.queries) > 1)
    common = {(number, tree.number): weaveability_of(tree, slicing) for number, tree in shared}
    return SharingReport(seconds, queries, mergers, common, _joins(plan, seconds, queries, lone))


def _joins(plan: Plan, seconds: PlanSeconds, sides: Mapping[str, QueryShare], lone: SoloCosts) -> dict[str, QueryShare]:
    """Return the cost of every join: its fold, and its part of its sides, divided among the joins that use them."""
    asking = Counter(place.name for join in plan.joins for place in join.sides)
    shares = {}
    for join in plan.joins:
        places = [place.name for place in join.sides]
        seconds_of_join = sum(sides[name].seconds / asking[name] for name in places) + seconds.folds[join.name]
        added = sum(sides[name].added_edges_per_second for name in dict.fromkeys(places) if asking[name] == 1)
        shares[join.name] = QueryShare(seconds_of_join, lone.join_seconds(join, seconds.job), added)
    return shares


def _shares(
    partial_set: PartialSet,
    costs: SetSeconds,
    job: float,
    count: int,
    slicing: Slicing,
    constants: Constants,
    lone: SoloCosts,
) -> dict[str, QueryShare]:
    """Divides each cost among the queries that cause it, in proportion to what each would cause alone."""
    members = [planned.query for planned in partial_set.queries]
    edges_by_window = {query.window: edges_of([query.window], slicing) for query in members}
    own_edges = [edges_by_window[query.window] for query in members]
    scans, partials = _weights(partial_set, members, own_edges, constants)
    shared = job / count + costs.scan * _parts(scans) + (costs.partials + costs.merge) * _parts(partials)
    techniques = [tree.techniques for tree in partial_set.trees for _ in tree.queries]
    tree_edges = [
        EdgeSet.of(slicing.edges(query.window)) if slicing.marks(query.window) else cut
        for query, cut in zip(members, own_edges, strict=True)
    ]
    answering = estimate_answering(partial_set, [[query] for query in members], tree_edges, techniques, constants)
    cells = [lone.cell_seconds(partial_set, query, cut) for query, cut in zip(members, own_edges, strict=True)]
    alone = job + np.array(cells) + answering.total + set_model(partial_set, constants).own_cost(np.full(1, np.inf))
    shares: dict[str, QueryShare] = {}
    first = 0
    for tree, tree_cost in zip(partial_set.trees, costs.trees, strict=True):
        last = first + len(tree.queries)
        many, alone_each = len(tree.queries), [[planned.query] for planned in tree.queries]
        each = estimate_answering(partial_set, alone_each, [tree.edges] * many, [tree.techniques] * many, constants)
        seconds = shared[first:last] + tree_cost.own / len(tree.queries) + tree_cost.answers * _parts(each.answers)
        for index, cost in enumerate(tree_cost.techniques):
            if cost:
                seconds = seconds + cost * _parts(each.techniques[:, index])
        for i, planned in enumerate(tree.queries):
            shares[planned.name] = QueryShare(float(seconds[i]), float(alone[first + i]), 0.0)
        first = last
    return shares


def _parts(weights: Floats) -> Floats:
    total = weights.sum()
    return np.asarray(weights / total) if total > 0 else np.full(len(weights), 1 / len(weights))


def _weights(
    partial_set: PartialSet, queries: list[Query], edges: list[EdgeSet], constants: Constants
) -> tuple[Floats, Floats]:
    """Return what each query contributes to the cost of scanning, and of fetching and sorting partials.

    All are weighed as if Spark aggregated each of them; alone, each might have another intake.
    """
    weights = []
    for query, cut in zip(queries, edges, strict=True):
        first, *others = partial_set.components
        needed = (first, *(planned for planned in others if planned.component in query.components))
        statistics, groupings = partial_set.statistics, len(partial_set.group_by)
        cost = scanning_cost(constants, statistics, cut.edges_per_second, _REGULAR, groupings, needed)
        weights.append((cost.scan, cost.partials + cost.merge))
    scans, partials = np.array(weights).T
    return scans, partials


_REGULAR = choose_slice_id(EdgeSet.of(find_slicing("pairs").edges(TimeWindow(1, 1))))


def _mergers(
    partial_set: PartialSet, costs: SetSeconds, constants: Constants
) -> dict[tuple[int, int], tuple[Merger, ...]]:
    """Return what merging each pair of trees of the set would change, by set and tree."""
    if len(partial_set.trees) == 1:
        return {}
    compared = sorted(partial_set.trees, key=lambda tree: (-len(tree.queries), tree.number))[:_COMPARED_TREES]
    by_tree: dict[tuple[int, int], list[Merger]] = {}
    model = set_model(partial_set, constants)
    for i, tree in enumerate(compared):
        for other in compared[i + 1 :]:
            edges = tree.edges.union(other.edges)
            queries = [planned.query for both in (tree, other) for planned in both.queries]
            answering = (
                estimate_answering(partial_set, [queries], [edges], [both.techniques], constants).total[0]
                for both in (tree, other)
            )
            rate = tree.fine_edges.union(other.fine_edges).edges_per_second
            together = float(min(answering) + model.own_cost(np.array([rate]))[0])
            apart = costs.trees[tree.number].total + costs.trees[other.number].total
            common = weaveability(tree.edges, other.edges)
            for one, another in ((tree, other), (other, tree)):
                merger = Merger(another.number, common, together - apart)
                by_tree.setdefault((partial_set.number, one.number), []).append(merger)
    return {key: tuple(sorted(each, key=lambda merger: (merger.more, merger.other))) for key, each in by_tree.items()}


def _advised(
    partial_set: PartialSet, costs: SetSeconds, shares: dict[str, QueryShare], slicing: Slicing, constants: Constants
) -> dict[str, QueryShare]:
    """Return the most expensive queries of a set, with what they add to its slices, and slides that would add less."""
    members = {planned.name: planned.query for planned in partial_set.queries}
    if len(members) == 1:
        return {}
    windows = len({query.window for query in members.values()})
    names = sorted(members, key=lambda name: (-shares[name].seconds, name))
    names = names[: min(_ADVISED_QUERIES, _COUNTED_WINDOWS // windows)]
    advised = {}
    for name in names:
        window = members[name].window
        others = {query.window for query in members.values() if query.name != name}
        rest = edges_of(others, slicing).edges_per_second
        added = max(0.0, partial_set.edges.edges_per_second - rest)
        if added <= 1e-12 * partial_set.edges.edges_per_second:
            advised[name] = replace(shares[name], added_edges_per_second=0.0)
            continue
        advice = _other_slides(partial_set, members[name], others, shares[name], slicing, constants)
        hindrance, slide = None, window.slide_ticks
        unlike = [query for query in members.values() if slide % query.window.slide_ticks]
        unlike = [query for query in unlike if query.window.slide_ticks % slide]
        if unlike:  # the query whose slide has the least in common with this one's
            commons = [(gcd(slide, query.window.slide_ticks), query) for query in unlike]
            _, near, common = min(
                (common / min(slide, query.window.slide_ticks), query.name, common) for common, query in commons
            )
            hindrance = near, common
        added *= partial_set.statistics.pace
        advised[name] = replace(shares[name], added_edges_per_second=added, hindrance=hindrance, advice=advice)
    return advised


def _other_slides(
    partial_set: PartialSet,
    query: Query,
    others: set[Window],
    share: QueryShare,
    slicing: Slicing,
    constants: Constants,
) -> tuple[Advice, ...]:
    """Return the slides that save most, of other queries, their divisors and multiples, near the query's own."""
    window = query.window
    candidates = set()
    for slide in {other.slide_ticks for other in others}:
        # Divisors and multiples of a slide next to the wanted one: 10 s gives 5 s for 7 s, and 20 s for 18 s.
        parts = {max(1, slide // window.slide_ticks), -(-slide // window.slide_ticks)}
        times = {max(1, window.slide_ticks // slide), -(-window.slide_ticks // slide)}
        near = [slide // each for each in parts if slide % each == 0] + [slide * each for each in times]
        for fitting in (slide, *near):
            if fitting != window.slide_ticks and 0.5 <= fitting / window.slide_ticks <= 2:
                candidates.add(fitting)
    tried = sorted(candidates, key=lambda ticks: (abs(np.log(ticks / window.slide_ticks)), ticks))[:_TRIED_SLIDES]
    tree = next(tree for tree in partial_set.trees if any(planned.name == query.name for planned in tree.queries))
    now = _set_and_query(partial_set, tree, query, partial_set.edges, constants)
    worthwhile = []
    for slide in tried:
        changed = replace(query, source=WindowedStream(query.stream, window.with_slide(slide)))
        edges = edges_of({*others, changed.window}, slicing)
        saves = now - _set_and_query(partial_set, tree, changed, edges, constants)
        if saves > _WORTH * share.seconds:
            worthwhile.append(Advice(slide, saves))
    best = sorted(worthwhile, key=lambda advice: (-advice.saves, advice.slide_ticks))[:_KEPT_SLIDES]
    return tuple(sorted(best, key=lambda advice: advice.slide_ticks))


def _set_and_query(partial_set: PartialSet, tree: Tree, query: Query, edges: EdgeSet, constants: Constants) -> float:
    """Return the costs that depend on the window: the set's partials on these edges, and answering the query."""
    scanning = set_scanning(constants, partial_set, edges)
    answering = estimate_answering(partial_set, [[query]], [edges], [tree.techniques], constants)
    return scanning.total + float(answering.total[0])
