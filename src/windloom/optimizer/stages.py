"""The whole optimizer at a glance: from queries to a plan in six stages.

1. partial sets   queries of one stream, predicate and grouping are summarised together
2. components     what their aggregates need, each once
3. sharing        a strategy partitions a set's queries into trees, by cost
4. slices         edges of every tree, their union for the set, and how tuples find their slice
5. shapes         queries with equal output columns share one table of answers
6. intake         each stream is read once for all its sets, natively or woven, by cost
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from windloom.errors import WindloomError
from windloom.kernels.techniques.registry import choose_technique, find_technique
from windloom.model.aggregate import COUNT_STAR
from windloom.model.expression import Expression
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.optimizer.auto import calibrated_problem, choose_techniques, choose_trees, costed_techniques
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.optimizer.cost.omega import Load, omega
from windloom.optimizer.cost.paper import PaperCost
from windloom.optimizer.intake import check_intake, choose_scans
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import find_strategy
from windloom.plan.physical import PartialSet, Plan, PlannedComponent, PlannedQuery, Shape, Tree
from windloom.plan.statistics import Observed, Statistics, statistics_of
from windloom.slicing.edges import EdgeSet
from windloom.slicing.identify import choose_slice_id
from windloom.slicing.registry import Slicing, find_slicing

#: Type of every expression the queries evaluate on tuples, by (stream, canonical SQL).
Types = Mapping[tuple[str, str], DataType]


#: Stream, predicate, grouping of a partial set, as canonical SQL; and what its kind of window adds.
SetKey = tuple[str, str, tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Known:
    """What plans are predicted with: constants of the machine (None: those in force), and what runs have seen."""

    constants: Constants | None = None
    observed: Mapping[SetKey, Observed] = field(default_factory=dict)

    def in_force(self) -> Constants:
        return self.constants or load_constants()


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a plan is made, by name; unknown names are refused here, before anything else is done."""

    strategy: str = "auto"
    slicing: str = "pairs"
    technique: str = "auto"
    intake: str = "auto"

    def __post_init__(self) -> None:
        check_intake(self.intake)
        if self.strategy != "auto":
            find_strategy(self.strategy)
        find_slicing(self.slicing)
        if self.technique != "auto":
            find_technique(self.technique)


def make_plan(
    streams: Mapping[str, Stream],
    queries: Iterable[Query],
    types: Types,
    options: PlanOptions,
    trees: Sequence[Collection[str]] | None = None,
    known: Known | None = None,
    intakes: Mapping[str, str] | None = None,
) -> Plan:
    """A plan for all queries; the order in which they were registered does not change it, up to ties.

    `trees`, names of queries, and `intakes`, by stream, bypass the choice: a plan that was recorded is built again as
    it was.
    """
    known = known or Known()
    shapes: dict[Shape, int] = {}
    groups = by_partial_set(queries)
    given = [None] * len(groups) if trees is None else _given_trees(groups, trees)
    sets = [
        _plan_set(number, streams[members[0].stream], members, types, options, shapes, given[number], known)
        for number, members in enumerate(groups)
    ]
    used = {one.stream for one in sets}
    read = tuple(stream for name, stream in streams.items() if name in used)
    return Plan(
        read,
        tuple(sets),
        choose_scans(read, sets, options.intake, known.in_force(), intakes),
        tuple(shapes),
        options.strategy,
        find_slicing(options.slicing).name,
        options.technique,
        options.intake,
    )


def by_partial_set(queries: Iterable[Query]) -> list[list[Query]]:
    groups: dict[SetKey, list[Query]] = {}
    for query in queries:
        groups.setdefault(_set_key(query), []).append(query)
    return [groups[key] for key in sorted(groups)]


def _set_key(query: Query) -> SetKey:
    where = query.condition.sql if query.condition is not None else ""
    return query.stream, where, tuple(one.sql for one in _set_grouping(query)), query.window.set_identity


def set_key(one: PartialSet) -> SetKey:
    """What a set is known by from plan to plan."""
    where = one.predicate.sql if one.predicate is not None else ""
    return one.stream, where, tuple(part.sql for part in one.group_by), one.window.set_identity


def _given_trees(groups: list[list[Query]], trees: Sequence[Collection[str]]) -> list[Trees | None]:
    """The given trees by set and position; they must partition the queries of every set."""
    place = {query.name: (number, i) for number, members in enumerate(groups) for i, query in enumerate(members)}
    found: list[list[tuple[int, ...]]] = [[] for _ in groups]
    left = set(place)
    for tree in trees:
        for name in tree:
            if name not in left:
                fact = "it is in two of them" if name in place else "there is no such query"
                raise WindloomError(f"the given trees hold '{name}', and {fact}", hint="name every query once")
            left.remove(name)
        numbers = {place[name][0] for name in tree}
        if len(numbers) != 1:
            fact = "they differ in stream, predicate, grouping or kind of window" if numbers else "it has no queries"
            raise WindloomError(f"the given tree {sorted(tree)} cannot be planned", fact, "give a tree for each set")
        found[numbers.pop()].append(tuple(sorted(place[name][1] for name in tree)))
    if left:
        raise WindloomError(f"the given trees miss '{min(left)}'", f"{len(left)} missing", "name every query once")
    return [tuple(one) for one in found]


def _set_grouping(query: Query) -> tuple[Expression, ...]:
    """A set's grouping has no order and no names: `GROUP BY a, b` and `GROUP BY b AS x, a` share."""
    return tuple(sorted({grouping.expression for grouping in query.group_by}))


def _plan_set(
    number: int,
    stream: Stream,
    queries: list[Query],
    types: Types,
    options: PlanOptions,
    shapes: dict[Shape, int],
    given: Trees | None,
    known: Known,
) -> PartialSet:
    group_by = _set_grouping(queries[0])
    components = _components(queries, types)
    techniques = tuple(_technique(one, queries, options.technique) for one in components)
    slicing = find_slicing(options.slicing)
    statistics = _statistics(stream, queries[0], known)
    strategy = options.strategy
    if given is None:
        problem = sharing_problem(stream, queries, types, options, known)
        if strategy == "auto":
            strategy, given = choose_trees(problem)
        else:
            given = find_strategy(strategy).choose(problem)
    trees: list[Tree] = []
    for members in sorted(given):
        planned = [_place(queries[i], stream, group_by, types, shapes) for i in members]
        tree = _plan_tree(len(trees), planned, slicing, components, techniques)
        if options.technique == "auto":
            tree = _with_fastest(tree, components, statistics, known.in_force())
        trees.append(tree)
    edges = EdgeSet.of(one for tree in trees for one in tree.fine_edges.classes)
    return PartialSet(
        number,
        stream.name,
        queries[0].condition,
        group_by,
        tuple(types[stream.name, one.sql] for one in group_by),
        components,
        edges,
        choose_slice_id(edges),
        tuple(trees),
        statistics,
        strategy,
    )


def sharing_problem(
    stream: Stream, queries: Sequence[Query], types: Types, options: PlanOptions, known: Known
) -> SharingProblem:
    """What a strategy decides on, for the queries of one set; `auto` decides by predicted seconds."""
    components = _components(queries, types)
    slicing = find_slicing(options.slicing)
    statistics = _statistics(stream, queries[0], known)
    if options.strategy == "auto":
        groupings = len(_set_grouping(queries[0]))
        constants = known.in_force()
        return calibrated_problem(queries, components, groupings, options.technique, slicing, statistics, constants)
    techniques = tuple(_technique(one, queries, options.technique) for one in components)
    paper = PaperCost(costed_techniques(components, techniques, queries), _rate(stream, statistics))
    return SharingProblem(tuple(query.window for query in queries), slicing, paper)


def _statistics(stream: Stream, query: Query, known: Known) -> Statistics:
    seen = known.observed.get(_set_key(query))
    found = statistics_of(stream.events_per_second, query.condition is not None, bool(query.group_by), seen)
    counted_by = query.window.counted_by
    return found if counted_by is None else found.of_positions(bool(counted_by))


def _rate(stream: Stream, statistics: Statistics) -> float:
    return stream.events_per_second or statistics.events_per_second


def _components(queries: Sequence[Query], types: Types) -> tuple[PlannedComponent, ...]:
    wanted = dict.fromkeys([COUNT_STAR, *(part for query in queries for part in query.components)])
    stream = queries[0].stream
    return tuple(
        PlannedComponent(one, None if one.argument is None else types[stream, one.argument.sql]) for one in wanted
    )


def _is_asked(one: PlannedComponent, queries: Sequence[Query]) -> bool:
    return any(one.component in query.components for query in queries)


def _technique(one: PlannedComponent, queries: Sequence[Query], forced: str) -> str:
    if not _is_asked(one, queries):
        forced = "auto"  # COUNT(*) is kept for bookkeeping only: no user's choice concerns it
    try:
        return choose_technique(one.family, forced)
    except WindloomError as error:
        raise WindloomError(f"{error.message}, which {one.component} is", error.detail, error.hint) from None


def _place(
    query: Query, stream: Stream, group_by: tuple[Expression, ...], types: Types, shapes: dict[Shape, int]
) -> PlannedQuery:
    shape = replace(_shape(query, types), time=query.window.edge_type(stream))
    positions = tuple(group_by.index(grouping.expression) for grouping in query.group_by)
    return PlannedQuery(query, shapes.setdefault(shape, len(shapes)), positions)


def _shape(query: Query, types: Types) -> Shape:
    group_types = [types[query.stream, grouping.expression.sql] for grouping in query.group_by]
    results = [
        one.result_type(None if one.argument is None else types[query.stream, one.argument.sql])
        for one in query.aggregates
    ]
    names = [grouping.name for grouping in query.group_by]
    if query.is_plain:
        return Shape(
            tuple(zip(names, group_types, strict=True)),
            tuple((output.name, results[output.aggregate]) for output in query.outputs if output.aggregate is not None),
        )
    select = [(name, Expression.of_placeholder(f"__g{i}")) for i, name in enumerate(names)]
    select += [(one.name, one.expression or Expression.of_placeholder(f"__a{one.aggregate}")) for one in query.outputs]
    return Shape(
        tuple((f"__g{i}", one) for i, one in enumerate(group_types)),
        tuple((f"__a{i}", one) for i, one in enumerate(results)),
        tuple(select),
        query.having,
    )


def _plan_tree(
    number: int,
    queries: list[PlannedQuery],
    slicing: Slicing,
    components: tuple[PlannedComponent, ...],
    techniques: tuple[str, ...],
) -> Tree:
    windows = [planned.query.window for planned in queries]
    edge_sets = {window: EdgeSet.of(slicing.edges(window)) for window in windows}
    edges = EdgeSet.of(one for window in edge_sets for one in edge_sets[window].classes)
    marks = EdgeSet.of(one for window in edge_sets for one in slicing.marks(window))
    return Tree(
        number,
        tuple(sorted(queries, key=lambda one: (one.shape, one.group_positions, str(one.query.aggregates)))),
        edges,
        marks,
        techniques,
        _operations([planned.query for planned in queries], edges, components, techniques),
        _weaveability([edge_sets[window] for window in windows], edges),
    )


def _with_fastest(
    tree: Tree, components: tuple[PlannedComponent, ...], statistics: Statistics, constants: Constants
) -> Tree:
    """The tree with the technique that is predicted to be fastest for each component."""
    queries = [planned.query for planned in tree.queries]
    techniques = choose_techniques(components, queries, tree.edges_per_second, statistics, constants)
    if techniques == tree.techniques:
        return tree
    operations = _operations(queries, tree.edges, components, techniques)
    return replace(tree, techniques=techniques, final_operations_per_edge=operations)


def _operations(
    queries: list[Query], edges: EdgeSet, components: tuple[PlannedComponent, ...], techniques: tuple[str, ...]
) -> float:
    names = costed_techniques(components, techniques, queries)
    load = Load.of([[query.window for query in queries]])
    return float(omega(names, load, np.array([edges.edges_per_second]))[0])


def _weaveability(members: list[EdgeSet], union: EdgeSet) -> float:
    """Common edges as a share of all (Eq. 4), for any number of queries: 1 when all edges are the same."""
    if len(members) == 1:
        return 1.0
    rate = union.edges_per_second
    return (sum(one.edges_per_second for one in members) - rate) / (rate * (len(members) - 1))
