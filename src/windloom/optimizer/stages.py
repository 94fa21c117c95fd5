"""The whole optimizer at a glance: from queries to a plan in five stages.

1. partial sets   queries of one stream, predicate and grouping are summarised together
2. components     what their aggregates need, each once
3. sharing        a strategy partitions a set's queries into trees, by cost
4. slices         edges of every tree, their union for the set, and how tuples find their slice
5. shapes         queries with equal output columns share one table of answers
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windloom.errors import WindloomError
from windloom.kernels.registry import choose_technique, find_technique
from windloom.model.aggregate import COUNT_STAR
from windloom.model.expression import Expression
from windloom.model.query import Query
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND, Stream
from windloom.model.types import DataType
from windloom.optimizer.cost.omega import Load, cost_name, omega
from windloom.optimizer.cost.paper import PaperCost
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import find_strategy
from windloom.plan.physical import PartialSet, Plan, PlannedComponent, PlannedQuery, Shape, Tree
from windloom.slicing.edges import EdgeSet
from windloom.slicing.identify import choose_slice_id
from windloom.slicing.registry import Slicing, find_slicing

#: Type of every expression the queries evaluate on tuples, by (stream, canonical SQL).
Types = Mapping[tuple[str, str], DataType]


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How a plan is made, by name; unknown names are refused here, before anything else is done."""

    strategy: str = "weave_share"
    slicing: str = "pairs"
    technique: str = "auto"

    def __post_init__(self) -> None:
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
) -> Plan:
    """A plan for all queries; the order in which they were registered does not change it, up to ties.

    `trees`, names of queries, bypass the strategy: a plan that was recorded is built again as it was.
    """
    shapes: dict[Shape, int] = {}
    groups = _by_partial_set(queries)
    given = [None] * len(groups) if trees is None else _given_trees(groups, trees)
    sets = [
        _plan_set(number, streams[members[0].stream], members, types, options, shapes, given[number])
        for number, members in enumerate(groups)
    ]
    used = {one.stream for one in sets}
    return Plan(
        tuple(stream for name, stream in streams.items() if name in used),
        tuple(sets),
        tuple(shapes),
        find_strategy(options.strategy).name,
        find_slicing(options.slicing).name,
        options.technique,
    )


def _by_partial_set(queries: Iterable[Query]) -> list[list[Query]]:
    groups: dict[tuple[str, str, tuple[str, ...]], list[Query]] = {}
    for query in queries:
        where = query.where.sql if query.where is not None else ""
        groups.setdefault((query.stream, where, tuple(one.sql for one in _set_grouping(query))), []).append(query)
    return [groups[key] for key in sorted(groups)]


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
            fact = "they differ in stream, predicate or grouping" if numbers else "it has no queries"
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
) -> PartialSet:
    group_by = _set_grouping(queries[0])
    components = _components(queries, types)
    techniques = tuple(_technique(one, queries, options.technique) for one in components)
    costed = list(zip(components, techniques, strict=True))
    asked = [(one, name) for one, name in costed if _is_asked(one, queries)]
    # Only the techniques that answer something cost anything; COUNT(*) is kept in any case.
    cost_names = tuple(cost_name(name, one.family) for one, name in asked or costed)
    slicing = find_slicing(options.slicing)
    model = PaperCost(cost_names, stream.events_per_second or DEFAULT_EVENTS_PER_SECOND)
    if given is None:
        problem = SharingProblem(tuple(query.window for query in queries), slicing, model)
        given = find_strategy(options.strategy).choose(problem)
    trees: list[Tree] = []
    for members in sorted(given):
        planned = [_place(queries[i], stream, group_by, types, shapes) for i in members]
        trees.append(_plan_tree(len(trees), planned, slicing, techniques, cost_names))
    edges = EdgeSet.of(one for tree in trees for one in tree.fine_edges.classes)
    return PartialSet(
        number,
        stream.name,
        queries[0].where,
        group_by,
        tuple(types[stream.name, one.sql] for one in group_by),
        components,
        edges,
        choose_slice_id(edges),
        tuple(trees),
    )


def _components(queries: list[Query], types: Types) -> tuple[PlannedComponent, ...]:
    wanted = dict.fromkeys([COUNT_STAR, *(part for query in queries for part in query.components)])
    stream = queries[0].stream
    return tuple(
        PlannedComponent(one, None if one.argument is None else types[stream, one.argument.sql]) for one in wanted
    )


def _is_asked(one: PlannedComponent, queries: list[Query]) -> bool:
    return any(one.component in query.components for query in queries)


def _technique(one: PlannedComponent, queries: list[Query], forced: str) -> str:
    if not _is_asked(one, queries):
        forced = "auto"  # COUNT(*) is kept for bookkeeping only: no user's choice concerns it
    try:
        return choose_technique(one.family, forced)
    except WindloomError as error:
        raise WindloomError(f"{error.message}, which {one.component} is", error.detail, error.hint) from None


def _place(
    query: Query, stream: Stream, group_by: tuple[Expression, ...], types: Types, shapes: dict[Shape, int]
) -> PlannedQuery:
    shape = replace(_shape(query, types), time=stream.window_type)
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
    select = [(name, f"__g{i}") for i, name in enumerate(names)]
    select += [(one.name, one.expression.sql if one.expression else f"__a{one.aggregate}") for one in query.outputs]
    return Shape(
        tuple((f"__g{i}", one) for i, one in enumerate(group_types)),
        tuple((f"__a{i}", one) for i, one in enumerate(results)),
        tuple(select),
        None if query.having is None else query.having.sql,
    )


def _plan_tree(
    number: int,
    queries: list[PlannedQuery],
    slicing: Slicing,
    techniques: tuple[str, ...],
    cost_names: tuple[str, ...],
) -> Tree:
    windows = [planned.query.window for planned in queries]
    edge_sets = {window: EdgeSet.of(slicing.edges(window)) for window in windows}
    edges = EdgeSet.of(one for window in edge_sets for one in edge_sets[window].classes)
    marks = EdgeSet.of(one for window in edge_sets for one in slicing.marks(window))
    rate = np.array([edges.edges_per_second])
    return Tree(
        number,
        tuple(sorted(queries, key=lambda one: (one.shape, one.group_positions, str(one.query.aggregates)))),
        edges,
        marks,
        techniques,
        float(omega(cost_names, Load.of([windows]), rate)[0]),
        _weaveability([edge_sets[window] for window in windows], edges),
    )


def _weaveability(members: list[EdgeSet], union: EdgeSet) -> float:
    """Common edges as a share of all (Eq. 4), for any number of queries: 1 when all edges are the same."""
    if len(members) == 1:
        return 1.0
    rate = union.edges_per_second
    return (sum(one.edges_per_second for one in members) - rate) / (rate * (len(members) - 1))
