"""The whole optimizer at a glance: from queries to a plan in eight stages.

1. partial sets   queries of one stream, predicate and grouping are summarised together
2. components     what their aggregates need, each once
3. sharing        a strategy partitions a set's queries into trees, by cost
4. slices         edges of every tree, their union for the set, and how tuples find their slice
5. shapes         queries with equal output columns share one table of answers
6. joins          where their sides are answered, and how these are folded: order and technique, by cost
7. rows           what row queries keep of their streams, and in which order they join it
8. intake         each stream is read once for all its sets, natively or woven, by cost; sides of joins early or late
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from windloom.aggregates.registry import PlannedComponent
from windloom.errors import WindloomError, find_named
from windloom.kernels.folds.registry import find_fold
from windloom.kernels.techniques.registry import choose_technique, find_technique
from windloom.model.aggregate import COUNT_STAR
from windloom.model.expression import Expression
from windloom.model.query import Query
from windloom.model.stream import Relation, Stream
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.papers import PaperCost, costed_techniques
from windloom.optimizer.facts import PlanningFacts, set_statistics
from windloom.optimizer.intake.choose import INTAKES, choose_scans
from windloom.optimizer.intake.signatures import is_fed
from windloom.optimizer.intake.woven import woven_scan
from windloom.optimizer.joins.plan import check_join_plan, forced_sets, plan_join, with_folds
from windloom.optimizer.joins.tuples import with_tuples
from windloom.optimizer.rows import plan_rows, stores_of
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import find_strategy
from windloom.optimizer.trees import calibrated_problem, choose_techniques, choose_trees
from windloom.plan.costs import Choices
from windloom.plan.joins import with_sides
from windloom.plan.plan import (
    Member,
    PartialSet,
    Plan,
    PlannedQuery,
    PlannedRelation,
    PlannedSide,
    Shape,
    Tree,
    Types,
    planned_components,
    shape_of,
)
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import choose_slice_id
from windloom.slicing.slicings import Slicing, find_slicing
from windloom.statistics.set_statistics import SetIdentity, Statistics, set_grouping

# Relations in a plan: which sets hold their versions, and the scans that make the cells of these.


def source_of(query: Query, sources: Mapping[str, Stream]) -> Stream:
    """What a query of one stream reads: a stream, as it is or enriched, or, for a side, a relation."""
    return next(iter(query.enriched), None) or sources[query.stream]


def plan_relations(
    queries: Iterable[Query], sources: Mapping[str, Stream], sets: Sequence[PartialSet], known: PlanningFacts
) -> tuple[PlannedRelation, ...]:
    """The relations that queries read, by name."""
    planned = []
    for number, name in enumerate(sorted({name for query in queries for name in query.relations})):
        relation = sources[name]
        assert isinstance(relation, Relation)
        of_relation = [partial_set for partial_set in sets if partial_set.is_relation and partial_set.stream == name]
        fed = [partial_set for partial_set in of_relation if is_fed(partial_set)]
        scan = woven_scan(number, fed, why="a version is read as a whole") if fed else None
        planned.append(
            PlannedRelation(
                relation, tuple(partial_set.number for partial_set in of_relation), scan, known.versions.get(name)
            )
        )
    return tuple(planned)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The settings of a plan, by name; unknown names are refused at once.

    `tuples` is the number of ticks for which a stream keeps its tuples, besides what row queries need; None for a batch
    run, which keeps nothing.
    """

    strategy: str = "auto"
    slicing: str = "pairs"
    technique: str = "auto"
    intake: str = "auto"
    joins: str = "auto"
    fold: str = "auto"
    tuples: int | None = None

    def __post_init__(self) -> None:
        intakes = dict.fromkeys(INTAKES)
        find_named("intake", self.intake, intakes, "it says how the tuples of a stream become partials")
        check_join_plan(self.joins)
        if self.fold != "auto":
            find_fold(self.fold)
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
    known: PlanningFacts,
    trees: Sequence[Collection[str]] | None = None,
    given: Choices | None = None,
    *,
    imagined: bool = False,
) -> Plan:
    """A plan for all queries; the order in which they were registered does not change it, up to ties.

    `streams` has relations too. `known` are the figures that costs are predicted with: the same queries and figures
    always give the same plan. `trees` (names of queries) replace the choice of trees, and `given` replaces all choices:
    a recorded plan is built again as it was. With `imagined` figures no query is refused because of them.
    """
    queries = list(queries)
    shapes: dict[Shape, int] = {}
    groups = by_partial_set(with_sides(queries))
    trees = given.tree_names if given is not None else trees
    members_of = [None] * len(groups) if trees is None else _given_trees(groups, trees)
    techniques = None if given is None else {tree.queries: dict(tree.techniques) for tree in given.trees}
    sets = [
        _plan_set(
            number,
            source_of(members[0], streams),
            members,
            types,
            options,
            shapes,
            members_of[number],
            techniques,
            known,
        )
        for number, members in enumerate(groups)
    ]
    linked = [
        plan_join(query, sets, streams, types, shapes, given, known.estimates.joins.get(query.name, ()))
        for query in queries
        if query.join is not None
    ]
    joins = with_folds(linked, sets, options.fold, known.in_force(), given) if linked else ()
    early = forced_sets(options.joins, joins)
    rows = tuple(
        plan_rows(query, streams, types, shapes, known, given, imagined=imagined)
        for query in queries
        if query.rows is not None
    )
    stores = () if options.tuples is None else stores_of(queries, streams, options.tuples)
    used = {name for query in queries for name in query.streams} | {store.stream for store in stores}
    read = tuple(stream for name, stream in streams.items() if name in used)
    enriched_by_name = {stream.name: stream for query in queries for stream in query.enriched}
    enriched = tuple(enriched_by_name[name] for name in sorted(enriched_by_name))
    scans = choose_scans(
        (*read, *enriched), sets, options.intake, known.in_force(), given, early, rows, stores, known.files
    )
    if options.tuples is None and given is None:  # a batch run
        joins, scans = with_tuples(joins, sets, scans)
    return Plan(
        read,
        tuple(sets),
        scans,
        tuple(shapes),
        joins,
        options.strategy,
        find_slicing(options.slicing).name,
        options.technique,
        options.intake,
        options.joins,
        options.fold,
        rows,
        stores,
        enriched,
        plan_relations(queries, streams, sets, known),
    )


def by_partial_set(queries: Iterable[Query]) -> list[list[Query]]:
    groups: dict[SetIdentity, list[Query]] = {}
    for query in queries:
        groups.setdefault(SetIdentity.of_query(query), []).append(query)
    return [groups[identity] for identity in sorted(groups)]


def _given_trees(groups: list[list[Query]], trees: Sequence[Collection[str]]) -> list[Trees | None]:
    """The given trees by set and position; they must partition the queries of every set."""
    position_of = {query.name: (number, i) for number, members in enumerate(groups) for i, query in enumerate(members)}
    trees_by_set: list[list[tuple[int, ...]]] = [[] for _ in groups]
    left = set(position_of)
    for tree in trees:
        for name in tree:
            if name not in left:
                fact = "it is in two of them" if name in position_of else "there is no such query"
                raise WindloomError(f"the given trees hold '{name}', and {fact}", hint="name every query once")
            left.remove(name)
        numbers = {position_of[name][0] for name in tree}
        if len(numbers) != 1:
            fact = "they differ in stream, predicate, grouping or kind of window" if numbers else "it has no queries"
            raise WindloomError(f"the given tree {sorted(tree)} cannot be planned", fact, "give a tree for each set")
        trees_by_set[numbers.pop()].append(tuple(sorted(position_of[name][1] for name in tree)))
    if left:
        raise WindloomError(f"the given trees miss '{min(left)}'", f"{len(left)} missing", "name every query once")
    return [tuple(set_trees) for set_trees in trees_by_set]


def _plan_set(
    number: int,
    stream: Stream,
    queries: list[Query],
    types: Types,
    options: PlanOptions,
    shapes: dict[Shape, int],
    given: Trees | None,
    named: Mapping[tuple[str, ...], Mapping[str, str]] | None,
    known: PlanningFacts,
) -> PartialSet:
    """A set with its trees; `given` trees, and techniques `named` by tree and component, are not chosen again."""
    group_by = set_grouping(queries[0])
    components = _components(queries, types)
    techniques = tuple(_technique(planned_component, queries, options.technique) for planned_component in components)
    slicing = find_slicing(options.slicing)
    statistics = set_statistics(stream, queries, known)
    strategy = options.strategy
    if given is None:
        problem = sharing_problem(stream, queries, types, options, known)
        if strategy == "auto":
            strategy, given = choose_trees(problem)
        else:
            given = find_strategy(strategy).choose(problem)
    trees: list[Tree] = []
    for members in sorted(given):
        planned = [_member(queries[i], stream, group_by, types, shapes) for i in members]
        tree = _plan_tree(len(trees), planned, slicing, techniques)
        if named is not None:
            tree = _with_named(tree, components, named)
        elif options.technique == "auto":
            tree = _with_fastest(tree, components, statistics, known.in_force())
        trees.append(tree)
    edges = EdgeSet.of(edge_class for tree in trees for edge_class in tree.fine_edges.classes)
    return PartialSet(
        number,
        stream.name,
        queries[0].condition,
        group_by,
        tuple(types[queries[0].key_of(expression)] for expression in group_by),
        components,
        edges,
        choose_slice_id(edges),
        tuple(trees),
        statistics,
        strategy,
    )


def with_trees(partial_set: PartialSet, trees: Trees, options: PlanOptions, constants: Constants) -> PartialSet:
    """A planned set with other trees, in the order given; a tree is given as positions among the set's queries."""
    members, slicing = list(partial_set.queries), find_slicing(options.slicing)
    planned = []
    for number, positions in enumerate(trees):
        tree = _plan_tree(number, [members[i] for i in positions], slicing, partial_set.trees[0].techniques)
        if options.technique == "auto":
            tree = _with_fastest(tree, partial_set.components, partial_set.statistics, constants)
        planned.append(tree)
    return replace(partial_set, trees=tuple(planned))


def sharing_problem(
    stream: Stream, queries: Sequence[Query], types: Types, options: PlanOptions, known: PlanningFacts
) -> SharingProblem:
    """The problem that a strategy solves for the queries of one set; `auto` decides by predicted seconds."""
    components = _components(queries, types)
    slicing = find_slicing(options.slicing)
    statistics = set_statistics(stream, queries, known)
    if options.strategy == "auto":
        groupings = len(set_grouping(queries[0]))
        constants = known.in_force()
        return calibrated_problem(queries, components, groupings, options.technique, slicing, statistics, constants)
    techniques = tuple(_technique(planned_component, queries, options.technique) for planned_component in components)
    paper = PaperCost(
        costed_techniques(components, techniques, queries), statistics.events_per_second / statistics.selectivity
    )
    return SharingProblem(tuple(query.window for query in queries), slicing, paper)


def _components(queries: Sequence[Query], types: Types) -> tuple[PlannedComponent, ...]:
    asked = (component for query in queries for component in query.components)
    wanted = dict.fromkeys([COUNT_STAR, *queries[0].window.components, *asked])
    return planned_components(wanted, queries[0], types)


def _technique(planned_component: PlannedComponent, queries: Sequence[Query], forced: str) -> str:
    if not any(planned_component.component in query.components for query in queries):
        forced = "auto"  # COUNT(*) is kept for bookkeeping only, so the user's choice does not apply to it
    try:
        return choose_technique(planned_component.family, forced)
    except WindloomError as error:
        raise WindloomError(
            f"{error.message}, which {planned_component.component} is", error.detail, error.hint
        ) from None


def _member(
    query: Query, stream: Stream, group_by: tuple[Expression, ...], types: Types, shapes: dict[Shape, int]
) -> Member:
    positions = tuple(group_by.index(grouping.expression) for grouping in query.group_by)
    if query.is_side:
        return PlannedSide(query, positions)
    shape = replace(shape_of(query, types), time=query.window.edge_type(stream))
    return PlannedQuery(query, shapes.setdefault(shape, len(shapes)), positions)


def _in_order(planned: Member) -> tuple[object, ...]:
    """Queries of one shape together, sides last."""
    shape = (1, 0) if isinstance(planned, PlannedSide) else (0, planned.shape)
    return (shape, planned.group_positions, str(planned.query.aggregates), planned.name if shape[0] else "")


def _plan_tree(number: int, queries: list[Member], slicing: Slicing, techniques: tuple[str, ...]) -> Tree:
    windows = {planned.query.window for planned in queries}
    edges = EdgeSet.of(edge_class for window in windows for edge_class in slicing.edges(window))
    marks = EdgeSet.of(edge_class for window in windows for edge_class in slicing.marks(window))
    return Tree(
        number,
        tuple(sorted(queries, key=_in_order)),
        edges,
        marks,
        techniques,
    )


def _with_fastest(
    tree: Tree, components: tuple[PlannedComponent, ...], statistics: Statistics, constants: Constants
) -> Tree:
    """The tree with the technique that is predicted to be fastest for each component."""
    queries = [planned.query for planned in tree.queries]
    techniques = choose_techniques(components, queries, tree.edges_per_second, statistics, constants)
    return tree if techniques == tree.techniques else replace(tree, techniques=techniques)


def _with_named(
    tree: Tree, components: tuple[PlannedComponent, ...], named: Mapping[tuple[str, ...], Mapping[str, str]]
) -> Tree:
    """The tree with the techniques that a record names for it."""
    technique_of = named.get(tuple(sorted(planned.name for planned in tree.queries)), {})
    techniques = tuple(
        choose_technique(planned.family, technique_of[str(planned.component)])
        if str(planned.component) in technique_of
        else usual
        for planned, usual in zip(components, tree.techniques, strict=True)
    )
    return replace(tree, techniques=techniques)
