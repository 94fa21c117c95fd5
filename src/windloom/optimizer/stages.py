"""The whole optimizer at a glance: from queries to a plan in eight stages, which `STAGES` lists at the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from windloom.aggregates.registry import PlannedComponent
from windloom.errors import WindloomError, find_named
from windloom.kernels.folds.registry import find_fold
from windloom.kernels.techniques.registry import choose_technique, find_technique
from windloom.model.aggregate import COUNT_STAR
from windloom.model.query import Query
from windloom.model.stream import Relation, Stream
from windloom.model.types import BIGINT
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


@dataclass(frozen=True, slots=True)
class SetDraft:
    """A partial set as stages 1 to 4 fill it in; `trees` hold the positions of queries, `members` what is planned."""

    stream: Stream
    queries: Sequence[Query]
    statistics: Statistics
    components: tuple[PlannedComponent, ...] = ()
    techniques: tuple[str, ...] = ()  # of the components, unless a tree is better served by another
    strategy: str = ""
    trees: Trees = ()
    members: tuple[tuple[Member, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """The input of all stages, and what they have made of it so far; `plan` lacks what later stages add.

    `trees` (names of queries) and `choices`, if given, replace what would be chosen.
    """

    streams: Mapping[str, Stream]  # and relations
    queries: Sequence[Query]
    types: Types
    options: PlanOptions
    known: PlanningFacts
    trees: Sequence[Collection[str]] | None
    choices: Choices | None
    is_imagined: bool
    plan: Plan
    sets: tuple[SetDraft, ...] = ()
    shapes: dict[Shape, int] = field(default_factory=dict)


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
    """Return a plan for all queries; the order in which they were registered does not change it, up to ties.

    `streams` has relations too. `known` are the figures that costs are predicted with: the same queries and figures
    always give the same plan. `trees` (names of queries) replace the choice of trees, and `given` replaces all choices:
    a recorded plan is built again as it was. With `imagined` figures no query is refused because of them.
    """
    slicing = find_slicing(options.slicing).name
    known = replace(known, constants=known.in_force())  # looked for once
    names = (options.strategy, slicing, options.technique, options.intake, options.joins, options.fold)
    trees = trees if given is None else given.tree_names
    plan = Plan((), (), (), (), (), *names)
    draft = PlanDraft(streams, list(queries), types, options, known, trees, given, imagined, plan)
    for stage in STAGES:
        draft = stage(draft)
    return replace(draft.plan, shapes=tuple(draft.shapes))


# ---- partial sets ---------------------------------------------------------------------------------------------------


def form_sets(draft: PlanDraft) -> PlanDraft:
    """Stage 1: queries that can be answered from the same partials form a set."""
    sets = []
    for queries in by_partial_set(with_sides(draft.queries)):
        stream = source_of(queries[0], draft.streams)
        sets.append(SetDraft(stream, queries, set_statistics(stream, queries, draft.known)))
    return replace(draft, sets=tuple(sets))


def by_partial_set(queries: Iterable[Query]) -> list[list[Query]]:
    groups: dict[SetIdentity, list[Query]] = {}
    for query in queries:
        groups.setdefault(SetIdentity.of_query(query), []).append(query)
    return [groups[identity] for identity in sorted(groups)]


def source_of(query: Query, sources: Mapping[str, Stream]) -> Stream:
    """Return what a query of one stream reads: a stream, as it is or enriched, or, for a side, a relation."""
    return next(iter(query.enriched), None) or sources[query.stream]


def list_components(draft: PlanDraft) -> PlanDraft:
    """Stage 2: what the aggregates of a set need, each once, and the technique that usually combines it."""
    return replace(draft, sets=tuple(_with_components(each, draft.types, draft.options) for each in draft.sets))


def _with_components(draft: SetDraft, types: Types, options: PlanOptions) -> SetDraft:
    first, asked = draft.queries[0], [component for query in draft.queries for component in query.components]
    wanted = dict.fromkeys([COUNT_STAR, *first.window.components, *asked])
    components, techniques = planned_components(wanted, first, types), []
    for planned in components:
        # What is kept for bookkeeping only has its usual technique, whatever the user's choice is.
        forced = options.technique if planned.component in asked else "auto"
        try:
            techniques.append(choose_technique(planned.family, forced))
        except WindloomError as error:
            message = f"{error.message}, which {planned.component} is"
            raise WindloomError(message, error.detail, error.hint) from None
    return replace(draft, components=components, techniques=tuple(techniques))


# ---- sharing --------------------------------------------------------------------------------------------------------


def share_slices(draft: PlanDraft) -> PlanDraft:
    """Stage 3: the queries of each set form trees, as they are given or as a strategy chooses."""
    options, strategy, sets = draft.options, draft.options.strategy, []
    given = None if draft.trees is None else _given_trees([each.queries for each in draft.sets], draft.trees)
    for number, each in enumerate(draft.sets):
        if given is not None:
            name, trees = strategy, given[number]
        elif strategy == "auto":
            name, trees = choose_trees(_problem(each, options, draft.known))
        else:
            name, trees = strategy, find_strategy(strategy).choose(_problem(each, options, draft.known))
        sets.append(replace(each, strategy=name, trees=tuple(sorted(trees))))
    return replace(draft, sets=tuple(sets))


def _given_trees(groups: Sequence[Sequence[Query]], trees: Sequence[Collection[str]]) -> list[Trees]:
    """Return the given trees by set and position; they must partition the queries of every set."""
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


def sharing_problem(
    stream: Stream, queries: Sequence[Query], types: Types, options: PlanOptions, known: PlanningFacts
) -> SharingProblem:
    """Return the problem that a strategy solves for the queries of one set; `auto` decides by predicted seconds."""
    draft = SetDraft(stream, queries, set_statistics(stream, queries, known))
    return _problem(_with_components(draft, types, options), options, known)


def _problem(draft: SetDraft, options: PlanOptions, known: PlanningFacts) -> SharingProblem:
    queries, components, statistics = draft.queries, draft.components, draft.statistics
    slicing = find_slicing(options.slicing)
    if options.strategy == "auto":
        groupings, constants = len(set_grouping(queries[0])), known.in_force()
        return calibrated_problem(queries, components, groupings, options.technique, slicing, statistics, constants)
    techniques = costed_techniques(components, draft.techniques, queries)
    paper = PaperCost(techniques, statistics.events_per_second / statistics.selectivity)
    return SharingProblem(tuple(query.window for query in queries), slicing, paper)


# ---- shapes and slices ----------------------------------------------------------------------------------------------


def assign_shapes(draft: PlanDraft) -> PlanDraft:
    """Stage 4: every query has a table of answers, which others with equal columns share; sides of joins have none."""

    def member(query: Query, stream: Stream) -> Member:
        group_by = set_grouping(query)
        positions = tuple(group_by.index(grouping.expression) for grouping in query.group_by)
        if query.is_side:
            return PlannedSide(query, positions)
        time = BIGINT if query.window.is_of_positions else stream.window_type
        shape = replace(shape_of(query, draft.types), time=time)
        return PlannedQuery(query, draft.shapes.setdefault(shape, len(draft.shapes)), positions)

    sets = []
    for each in draft.sets:
        members = tuple(tuple(member(each.queries[i], each.stream) for i in tree) for tree in each.trees)
        sets.append(replace(each, members=members))
    return replace(draft, sets=tuple(sets))


def cut_slices(draft: PlanDraft) -> PlanDraft:
    """Stage 5: trees have edges, and a technique per component; a set is cut at the edges of all its trees."""
    slicing, types, choices, sets = find_slicing(draft.options.slicing), draft.types, draft.choices, []
    recorded = {} if choices is None else {tree.queries: dict(tree.techniques) for tree in choices.trees}
    for number, each in enumerate(draft.sets):
        trees = [_plan_tree(i, members, slicing, each.techniques) for i, members in enumerate(each.members)]
        if choices is not None:  # techniques that the record names
            for i, tree in enumerate(trees):
                names = recorded.get(tuple(sorted(planned.name for planned in tree.queries)), {})
                pairs = zip(each.components, tree.techniques, strict=True)
                named = ((planned, names.get(str(planned.component)), usual) for planned, usual in pairs)
                techniques = (
                    choose_technique(planned.family, name) if name else usual for planned, name, usual in named
                )
                trees[i] = replace(tree, techniques=tuple(techniques))
        elif draft.options.technique == "auto":
            constants = draft.known.in_force()
            trees = [_with_fastest(tree, each.components, each.statistics, constants) for tree in trees]
        query, edges = each.queries[0], EdgeSet.of(edge for tree in trees for edge in tree.fine_edges.classes)
        group_by = set_grouping(query)
        sets.append(
            PartialSet(
                number,
                each.stream.name,
                query.condition,
                group_by,
                tuple(types[query.key_of(expression)] for expression in group_by),
                each.components,
                edges,
                choose_slice_id(edges),
                tuple(trees),
                each.statistics,
                each.strategy,
            )
        )
    return replace(draft, plan=replace(draft.plan, sets=tuple(sets)))


def with_trees(partial_set: PartialSet, trees: Trees, options: PlanOptions, constants: Constants) -> PartialSet:
    """Return a planned set with other trees; a tree is given as positions among the set's queries."""
    members, slicing = list(partial_set.queries), find_slicing(options.slicing)
    usual, planned = partial_set.trees[0].techniques, []
    for number, positions in enumerate(trees):
        tree = _plan_tree(number, [members[i] for i in positions], slicing, usual)
        if options.technique == "auto":
            tree = _with_fastest(tree, partial_set.components, partial_set.statistics, constants)
        planned.append(tree)
    return replace(partial_set, trees=tuple(planned))


def _plan_tree(number: int, members: Sequence[Member], slicing: Slicing, techniques: tuple[str, ...]) -> Tree:
    """Return the tree of these queries: those of one shape together, sides last."""

    def order(planned: Member) -> tuple[object, ...]:
        shape = (1, 0) if isinstance(planned, PlannedSide) else (0, planned.shape)
        return (shape, planned.group_positions, str(planned.query.aggregates), planned.name if shape[0] else "")

    windows = {planned.query.window for planned in members}
    edges = EdgeSet.of(edge_class for window in windows for edge_class in slicing.edges(window))
    marks = EdgeSet.of(edge_class for window in windows for edge_class in slicing.marks(window))
    return Tree(number, tuple(sorted(members, key=order)), edges, marks, techniques)


def _with_fastest(
    tree: Tree, components: tuple[PlannedComponent, ...], statistics: Statistics, constants: Constants
) -> Tree:
    """Return the tree with the technique that is predicted to be fastest for each component."""
    queries = [planned.query for planned in tree.queries]
    return replace(
        tree, techniques=choose_techniques(components, queries, tree.edges_per_second, statistics, constants)
    )


# ---- joins, row queries and intake ----------------------------------------------------------------------------------


def plan_joins(draft: PlanDraft) -> PlanDraft:
    """Stage 6: joins find their sides in trees, and have an order and a technique for folding these."""
    sets, known, choices = draft.plan.sets, draft.known, draft.choices
    streams, types, shapes, observed = draft.streams, draft.types, draft.shapes, known.estimates.joins
    joins = [
        plan_join(query, sets, streams, types, shapes, choices, observed.get(query.name, ()))
        for query in draft.queries
        if query.join is not None
    ]
    if not joins:
        return draft
    folded = with_folds(joins, sets, draft.options.fold, known.in_force(), choices)
    return replace(draft, plan=replace(draft.plan, joins=folded))


def plan_row_queries(draft: PlanDraft) -> PlanDraft:
    """Stage 7: row queries have an order in which their strands are joined, and streams a store of their tuples."""
    streams, types, shapes, known, choices = draft.streams, draft.types, draft.shapes, draft.known, draft.choices
    rows = tuple(
        plan_rows(query, streams, types, shapes, known, choices, imagined=draft.is_imagined)
        for query in draft.queries
        if query.rows is not None
    )
    keep_ticks = draft.options.tuples
    stores = () if keep_ticks is None else stores_of(draft.queries, streams, keep_ticks)
    return replace(draft, plan=replace(draft.plan, rows=rows, stores=stores))


def choose_intake(draft: PlanDraft) -> PlanDraft:
    """Stage 8: every stream that is read, enriched or not, has scans; a relation has one of its version."""
    plan, options, known, choices = draft.plan, draft.options, draft.known, draft.choices
    used = {name for query in draft.queries for name in query.streams} | {store.stream for store in plan.stores}
    read = tuple(stream for name, stream in draft.streams.items() if name in used)
    by_name = {stream.name: stream for query in draft.queries for stream in query.enriched}
    enriched = tuple(by_name[name] for name in sorted(by_name))
    early, joins = forced_sets(options.joins, plan.joins), plan.joins
    streams, constants = (*read, *enriched), known.in_force()
    scans = choose_scans(
        streams, plan.sets, options.intake, constants, choices, early, plan.rows, plan.stores, known.files
    )
    if options.tuples is None and choices is None:  # a batch run
        joins, scans = with_tuples(joins, plan.sets, scans)
    relations = []
    for number, name in enumerate(sorted({name for query in draft.queries for name in query.relations})):
        relation = draft.streams[name]
        assert isinstance(relation, Relation)
        sets = [partial_set for partial_set in plan.sets if partial_set.is_relation and partial_set.stream == name]
        fed = [partial_set for partial_set in sets if is_fed(partial_set)]
        scan = woven_scan(number, fed, why="a version is read as a whole") if fed else None
        numbers = tuple(partial_set.number for partial_set in sets)
        relations.append(PlannedRelation(relation, numbers, scan, known.versions.get(name)))
    plan = replace(plan, streams=read, enriched=enriched, scans=scans, joins=joins, relations=tuple(relations))
    return replace(draft, plan=plan)


STAGES: tuple[Callable[[PlanDraft], PlanDraft], ...] = (
    form_sets,
    list_components,
    share_slices,
    assign_shapes,
    cut_slices,
    plan_joins,
    plan_row_queries,
    choose_intake,
)
