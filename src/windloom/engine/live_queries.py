"""The queries of a running loom: makes plans from plan records, and the next record when queries come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from windloom.checkpoint.records import PlanRecord
from windloom.engine.registry import Registry
from windloom.engine.results import unknown_query
from windloom.errors import WindloomError
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.optimizer.adapt.basins import Basin, basins_of
from windloom.optimizer.adapt.candidates import candidates_at, choices_of
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.facts import PlanningFacts, set_statistics
from windloom.optimizer.sharing.incremental_plan import DEFAULT_TOLERANCE, IncrementalPlan
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import find_strategy
from windloom.optimizer.stages import PlanOptions, by_partial_set, make_plan, sharing_problem, source_of
from windloom.optimizer.trees import choose_trees
from windloom.plan.costs import Choices
from windloom.plan.joins import with_sides
from windloom.plan.plan import Plan, Types
from windloom.spark.api import StructType
from windloom.statistics.set_statistics import Ongoing, SetIdentity, Statistics, differ


@dataclass(frozen=True, slots=True)
class _Followed:
    """The plan of a set, its queries by their numbers in it, and the statistics that its costs are predicted with."""

    plan: IncrementalPlan
    names: dict[int, str]
    statistics: Statistics

    @property
    def trees(self) -> list[list[str]]:
        return [[self.names[number] for number in tree] for tree in self.plan.trees.values()]


class LiveTrees:
    """Plans that follow queries as they come and go, by set (source A, section 5.2).

    New queries are woven in, removed ones taken out. When the trees of a set cost too much more than a full plan is
    expected to cost, a full plan is made. After a restart, the plans start from the recorded trees.
    """

    def __init__(self, streams: Mapping[str, Stream], options: PlanOptions, epsilon: float = DEFAULT_TOLERANCE) -> None:
        self._streams, self.options, self._epsilon = streams, options, epsilon
        self._followed: dict[SetIdentity, _Followed] = {}

    def follow(
        self, before: Sequence[Collection[str]], queries: Iterable[Query], types: Types, known: PlanningFacts
    ) -> list[list[str]]:
        """Return the trees of `queries`; `before` are the trees so far, some of whose queries may be gone."""
        trees: list[list[str]] = []
        followed: dict[SetIdentity, _Followed] = {}
        for members in by_partial_set(with_sides(queries)):
            identity = SetIdentity.of_query(members[0])
            followed[identity] = self._follow_set(identity, before, members, types, known)
            trees += followed[identity].trees
        self._followed = followed
        return trees

    def _follow_set(
        self,
        identity: SetIdentity,
        before: Sequence[Collection[str]],
        members: Sequence[Query],
        types: Types,
        known: PlanningFacts,
    ) -> _Followed:
        stream = source_of(members[0], self._streams)
        problem = sharing_problem(stream, members, types, self.options, known)
        statistics = set_statistics(stream, members, known)
        wanted = {query.name: query for query in members}
        remaining = [[name for name in tree if name in wanted] for tree in before]
        remaining = [tree for tree in remaining if tree]
        if not remaining:
            plan = IncrementalPlan.of(problem, self._choose(problem), self._epsilon, self._choose)
            return _Followed(plan, {number: query.name for number, query in enumerate(members)}, statistics)
        followed = self._followed.get(identity)
        if followed is None or not _holds(followed, before, wanted) or differ(followed.statistics, statistics):
            # The trees were made before a restart, or with other options or statistics: the plan continues from them.
            names = [name for tree in remaining for name in tree]
            position_of = {name: i for i, name in enumerate(names)}
            windows = tuple(wanted[name].window for name in names)
            recorded = SharingProblem(windows, problem.slicing, problem.model)
            trees: Trees = tuple(tuple(position_of[name] for name in tree) for tree in remaining)
            plan = IncrementalPlan.of(recorded, trees, self._epsilon, self._choose)
            followed = _Followed(plan, dict(enumerate(names)), statistics)
        for number in [number for number, name in followed.names.items() if name not in wanted]:
            followed.plan.remove(number)
            del followed.names[number]
        known_names = set(followed.names.values())
        for query in members:
            if query.name not in known_names:
                followed.names[followed.plan.next_query] = query.name
                followed.plan.add(query.window)
        return followed

    def _choose(self, problem: SharingProblem) -> Trees:
        if self.options.strategy == "auto":
            return choose_trees(problem)[1]
        return find_strategy(self.options.strategy).choose(problem)


def _holds(followed: _Followed, before: Sequence[Collection[str]], wanted: Mapping[str, Query]) -> bool:
    """Return whether this is the plan whose trees were recorded, with the windows that the queries still have."""
    recorded = {frozenset(tree) for tree in before}
    windows = followed.plan.windows
    same = all(wanted[name].window == windows[number] for number, name in followed.names.items() if name in wanted)
    return same and all(frozenset(tree) in recorded for tree in followed.trees)


#: Plan versions kept in addition to the newest: that of the current round, and one in between.
_OLDER_PLANS = 2
#: Plans kept of queries that were removed.
_REMOVED_PLANS = 20


class LiveQueries:
    """Binds each query text once, and builds the plan of each version once; old ones are forgotten."""

    def __init__(
        self,
        registry: Registry,
        known: Callable[[], PlanningFacts],
        objective: Objective | None = None,
        epsilon: float = DEFAULT_TOLERANCE,
    ) -> None:
        """`known` returns what is known at the moment; new plans are made with it, for the `objective`.

        `epsilon` is by how much trees that follow queries may cost more than is expected of a full plan.
        """
        self._registry, self.known, self._objective = registry, known, objective or Objective()
        self._epsilon = epsilon
        self._bound: dict[tuple[str, str], Query] = {}
        self._binding = threading.RLock()
        self._plans: dict[int, Plan] = {}
        self._trees: LiveTrees | None = None
        self._removed: dict[tuple[str, str], Plan] = {}

    def schema_of(self, name: str, text: str) -> StructType | None:
        """Return the schema of the DataFrame that this text was read from; None if it was given as text."""
        asked, query = self._registry.asked.get(name), self._registry.queries.get(name)
        return asked.schema if asked is not None and query is not None and query.text == text else None

    def plan_of(self, record: PlanRecord) -> Plan:
        plan = self._plans.get(record.version)
        if plan is None:
            self._check_aggregates(record)
            known = PlanningFacts(estimates=record.estimates, ongoing=record.ongoing)
            plan = self._plan(self._bind_all(record.queries), _plan_options(record.options), known, None, record.given)
            self._remember(record.version, plan)
        return plan

    def first(self, queries: Mapping[str, str], options: Mapping[str, str]) -> PlanRecord:
        return self._recorded(0, 0, dict(queries), dict(queries), dict(options), None)

    def following(
        self,
        record: PlanRecord,
        version: int,
        from_round: int,
        *,
        put: Mapping[str, str] | None = None,
        remove: Collection[str] = (),
        declared: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> PlanRecord:
        """Return the record after `record`, with some queries added (or replaced) and others removed."""
        self._check_aggregates(record)
        for name in remove:
            if name not in record.queries:
                raise unknown_query(name, list(record.queries))
        queries = {name: text for name, text in record.queries.items() if name not in remove}
        queries.update(put or {})
        if not queries:
            raise WindloomError(
                "the last query of a running loom cannot be removed",
                f"'{next(iter(record.queries))}' is the only one it answers",
                "stop the handle, or add another query first",
            )
        # A query that replaces another is woven in like a new one.
        trees_left = [[name for name in tree if name not in (put or {})] for tree in record.choices.tree_names]
        declared = record.declared if declared is None else declared
        return self._recorded(version, from_round, queries, dict(declared), dict(options or record.options), trees_left)

    def switched(self, record: PlanRecord, choices: Choices, from_round: int) -> PlanRecord:
        """Return the record after `record`, with the same queries and other choices."""
        known = self.known()
        switched = replace(
            record,
            version=record.version + 1,
            from_round=from_round,
            choices=choices,
            estimates=known.estimates,
            ongoing=known.ongoing or Ongoing(),
        )
        self.plan_of(switched)
        return switched

    def basins(self, record: PlanRecord) -> list[Basin]:
        """Return the basins of a record's queries, each of which is planned by itself."""
        bound = [self.bind(name, text) for name, text in record.queries.items()]
        known = PlanningFacts(ongoing=record.ongoing)
        return basins_of(
            self._registry.sources, bound, self._registry.known_types, _plan_options(record.options), known
        )

    def bind(self, name: str, text: str) -> Query:
        """Return the query of a text; it is remembered only if a plan has it."""
        known = self._bound.get((name, text))
        if known is not None:
            return known
        with self._binding:  # types that are found while binding are kept for all queries
            return self._registry.bind(name, text)

    def plan_with(self, record: PlanRecord, name: str, text: str) -> Plan:
        """Return the plan of a record with one more query, which is not remembered."""
        chosen, types = _plan_options(record.options), self._registry.known_types
        texts = {**record.queries, name: text}
        bound, known = [self.bind(query_name, query_text) for query_name, query_text in texts.items()], self.known()
        following = LiveTrees(self._registry.sources, chosen, self._epsilon)
        trees = following.follow(record.choices.tree_names, bound, types, known)
        return self._plan(bound, chosen, known, trees)

    def plan_of_removed(self, name: str, text: str, options: Mapping[str, str]) -> Plan:
        """Return a plan of a query that is no longer asked, to read what it has answered; the last ones are kept."""
        key = name, text
        if key not in self._removed:
            plan = self.plan_alone(self.bind(name, text), PlanningFacts(), options)
            self._removed = dict([*self._removed.items(), (key, plan)][-_REMOVED_PLANS:])
        return self._removed[key]

    def plan_alone(self, query: Query, known: PlanningFacts, options: Mapping[str, str]) -> Plan:
        """Return a plan of one query that is not among the others, for a question that is asked once."""
        return self._plan([query], replace(_plan_options(options), tuples=None), known)

    def _recorded(
        self,
        version: int,
        from_round: int,
        queries: dict[str, str],
        declared: dict[str, str],
        options: dict[str, str],
        trees_so_far: list[list[str]] | None,
    ) -> PlanRecord:
        """Return a record; without the trees so far, everything is planned again."""
        known, chosen, bound, trees = self.known(), _plan_options(options), self._bind_all(queries), None
        streams, types = self._registry.sources, self._registry.known_types
        if trees_so_far is not None:
            if self._trees is None or self._trees.options != chosen:
                self._trees = LiveTrees(streams, chosen, self._epsilon)
            trees = self._trees.follow(trees_so_far, bound, types, known)
        plan = self._plan(bound, chosen, known, trees)
        if self._objective.memory:
            preferred = Choices()  # those that are best for the objective
            for basin in basins_of(streams, bound, types, chosen, known):
                preferred |= candidates_at(basin, known.estimates, self._objective)[0].choices
            plan = self._plan(bound, chosen, known, None, preferred)
        self._remember(version, plan)
        layouts = {
            aggregate.own.name: aggregate.own.layout
            for query in plan.queries
            for aggregate in query.query.aggregates
            if aggregate.own
        }
        ongoing = known.ongoing or Ongoing()
        choices = choices_of(plan)
        return PlanRecord(version, from_round, queries, options, choices, declared, layouts, known.estimates, ongoing)

    def _check_aggregates(self, record: PlanRecord) -> None:
        """Raise if a user-defined aggregate is missing or differs.

        A checkpoint does not hold user-defined aggregates: the program must define them again, with the same layout of
        values.
        """
        for name, layout in record.aggregates.items():
            aggregate = self._registry.aggregates.get(name)
            if aggregate is None:
                raise WindloomError(
                    f"aggregate '{name}' is not defined",
                    "queries of the checkpoint ask for it",
                    f"define it before the stream is started: loom.aggregate('{name}', …)",
                )
            if aggregate.layout != layout:
                raise WindloomError(
                    f"aggregate '{name}' is not the one that the checkpoint was made with",
                    f"its values are ({aggregate.layout}), and were ({layout})",
                    "define it as it was, or give the new one another name",
                )

    def _bind_all(self, queries: Mapping[str, str]) -> list[Query]:
        bound = self._bound = {(name, text): self.bind(name, text) for name, text in queries.items()}
        return list(bound.values())  # not self._bound, which another thread may replace meanwhile

    def _remember(self, version: int, plan: Plan) -> None:
        older = {number: known for number, known in self._plans.items() if number >= version - _OLDER_PLANS}
        self._plans = {**older, version: plan}

    def _plan(
        self,
        bound: Sequence[Query],
        options: PlanOptions,
        known: PlanningFacts,
        trees: list[list[str]] | None = None,
        given: Choices | None = None,
    ) -> Plan:
        return make_plan(self._registry.sources, bound, self._registry.known_types, options, known, trees, given)


def _plan_options(options: Mapping[str, str]) -> PlanOptions:
    names = [field.name for field in fields(PlanOptions) if field.name != "tuples"]
    return PlanOptions(**{name: options[name] for name in names}, tuples=int(options["tuples"]))
