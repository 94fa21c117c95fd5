"""What sharing saves each query, and what would save more: the figures of EXPLAIN SHARING."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import gcd

import numpy as np

from windloom.model.arrays import Floats
from windloom.model.query import Query
from windloom.model.source import WindowedStream
from windloom.model.windows import TimeWindow, Window
from windloom.optimizer.alone import Alone, edges_of
from windloom.optimizer.answering import estimate_answering, set_model
from windloom.optimizer.cost.calibrated import scanning_cost, set_scanning
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.paper import weaveability_of
from windloom.optimizer.estimate import estimate_plan
from windloom.plan.costs import Advice, Merger, PlanSeconds, QueryShare, SetSeconds, SharingReport
from windloom.plan.physical import PartialSet, Plan, Tree
from windloom.slicing.edges import EdgeSet, weaveability
from windloom.slicing.identify import choose_slice_id
from windloom.slicing.registry import Slicing, find_slicing

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
    """What each query costs, what it would cost alone, and which changes would save more.

    `files` has, by stream, the columns that the driver can read itself, if the plan was made with them.
    """
    seconds = estimate_plan(plan, constants)
    lone = Alone(plan, constants, files or {})
    slicing = find_slicing(plan.slicing)
    queries: dict[str, QueryShare] = {}
    mergers: dict[tuple[int, int], tuple[Merger, ...]] = {}
    # A job serves sides as it serves plain queries.
    count = sum(1 for partial_set in plan.sets for _ in partial_set.queries)
    for partial_set, costs in zip(plan.sets, seconds.sets, strict=True):
        scaled = constants.scaled(partial_set.statistics.pace)
        queries.update(_shares(partial_set, costs, seconds.job, count, slicing, scaled, lone))
        queries.update(_advised(partial_set, costs, queries, slicing, scaled))
        mergers.update(_mergers(partial_set, costs, scaled))
    common = {
        (partial_set.number, tree.number): weaveability_of(tree, slicing)
        for partial_set in plan.sets
        for tree in partial_set.trees
        if len(tree.queries) > 1
    }
    return SharingReport(seconds, queries, mergers, common, _joins(plan, seconds, queries, lone))


def _joins(plan: Plan, seconds: PlanSeconds, sides: Mapping[str, QueryShare], lone: Alone) -> dict[str, QueryShare]:
    """The cost of every join: its fold, and its part of its sides, which are divided among the joins that use them."""
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
    lone: Alone,
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
        each = estimate_answering(
            partial_set,
            [[planned.query] for planned in tree.queries],
            [tree.edges] * len(tree.queries),
            [tree.techniques] * len(tree.queries),
            constants,
        )
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
    """What each query contributes to the cost of scanning, and of fetching and sorting partials.

    All are weighed as if Spark aggregated each of them; alone, each might have another intake.
    """
    weights = []
    for query, cut in zip(queries, edges, strict=True):
        needed = tuple(
            planned
            for i, planned in enumerate(partial_set.components)
            if i == 0 or planned.component in query.components
        )
        cost = scanning_cost(
            constants, partial_set.statistics, cut.edges_per_second, _REGULAR, len(partial_set.group_by), needed
        )
        weights.append((cost.scan, cost.partials + cost.merge))
    scans, partials = np.array(weights).T
    return scans, partials


_REGULAR = choose_slice_id(EdgeSet.of(find_slicing("pairs").edges(TimeWindow(1, 1))))


def _mergers(
    partial_set: PartialSet, costs: SetSeconds, constants: Constants
) -> dict[tuple[int, int], tuple[Merger, ...]]:
    """Each pair of trees of the set that are compared."""
    if len(partial_set.trees) == 1:
        return {}
    compared = sorted(partial_set.trees, key=lambda tree: (-len(tree.queries), tree.number))[:_COMPARED_TREES]
    by_tree: dict[tuple[int, int], list[Merger]] = {}
    model = set_model(partial_set, constants)
    for i, tree in enumerate(compared):
        for other in compared[i + 1 :]:
            edges = tree.edges.union(other.edges)
            queries = [planned.query for both in (tree, other) for planned in both.queries]
            seconds = [
                estimate_answering(partial_set, [queries], [edges], [both.techniques], constants).total[0]
                for both in (tree, other)
            ]
            techniques = float(min(seconds))
            together = float(
                techniques + model.own_cost(np.array([tree.fine_edges.union(other.fine_edges).edges_per_second]))[0]
            )
            apart = costs.trees[tree.number].total + costs.trees[other.number].total
            common = weaveability(tree.edges, other.edges)
            for one, another in ((tree, other), (other, tree)):
                merger = Merger(another.number, common, together - apart)
                by_tree.setdefault((partial_set.number, one.number), []).append(merger)
    return {key: tuple(sorted(each, key=lambda merger: (merger.more, merger.other))) for key, each in by_tree.items()}


def _advised(
    partial_set: PartialSet, costs: SetSeconds, shares: dict[str, QueryShare], slicing: Slicing, constants: Constants
) -> dict[str, QueryShare]:
    """The most expensive queries of a set, with what they add to its slices, and slides that would add less."""
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
        near = _nearest(members, name)
        advice = _other_slides(partial_set, members[name], others, shares[name], slicing, constants)
        hindrance = None if near is None else (near, gcd(window.slide_ticks, members[near].window.slide_ticks))
        added *= partial_set.statistics.pace
        advised[name] = replace(shares[name], added_edges_per_second=added, hindrance=hindrance, advice=advice)
    return advised


def _nearest(members: dict[str, Query], name: str) -> str | None:
    """Among the queries nearest in length, the one whose slide has the least in common with this one's."""
    slide = members[name].window.slide_ticks
    strange = [
        (gcd(slide, query.window.slide_ticks) / min(slide, query.window.slide_ticks), query.name)
        for query in members.values()
        if slide % query.window.slide_ticks and query.window.slide_ticks % slide
    ]
    return min(strange)[1] if strange else None


def _other_slides(
    partial_set: PartialSet,
    query: Query,
    others: set[Window],
    share: QueryShare,
    slicing: Slicing,
    constants: Constants,
) -> tuple[Advice, ...]:
    """The slides that save most, among those of other queries, their divisors and multiples, near the query's own."""
    window = query.window
    candidates = set()
    for slide in {other.slide_ticks for other in others}:
        for fitting in (slide, *_fractions(slide, window.slide_ticks)):
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


def _fractions(slide: int, wanted: int) -> list[int]:
    """Divisors and multiples of a slide next to the wanted one: 10 s gives 5 s for 7 s, and 20 s for 18 s."""
    parts = {max(1, slide // wanted), -(-slide // wanted)}
    times = {max(1, wanted // slide), -(-wanted // slide)}
    return [slide // each for each in parts if slide % each == 0] + [slide * each for each in times]


def _set_and_query(partial_set: PartialSet, tree: Tree, query: Query, edges: EdgeSet, constants: Constants) -> float:
    """The costs that depend on the query's window: the set's partials on these edges, and answering the query."""
    scanning = set_scanning(constants, partial_set, edges)
    answering = estimate_answering(partial_set, [[query]], [edges], [tree.techniques], constants)
    return scanning.total + float(answering.total[0])
