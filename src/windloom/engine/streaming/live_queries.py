"""The queries of a running loom: makes plans from plan records, and the next record when queries come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace

from windloom.durable import PlanRecord
from windloom.engine.catalog import Registry
from windloom.engine.results import unknown_query
from windloom.errors import WindloomError
from windloom.model.query import Query
from windloom.optimizer import Known, PlanOptions, choices_of, make_plan
from windloom.optimizer.adapt.basins import Basin, basins_of
from windloom.optimizer.adapt.candidates import candidates_at
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.live_trees import LiveTrees
from windloom.plan.choices import Choices
from windloom.plan.physical import Plan
from windloom.plan.statistics import Ongoing

#: Plan versions kept in addition to the newest: that of the current round, and one in between.
_OLDER_PLANS = 2


class LiveQueries:
    """Binds each query text once, and builds the plan of each version once; old ones are forgotten."""

    def __init__(self, registry: Registry, known: Callable[[], Known], objective: Objective | None = None) -> None:
        """`known` returns what is known at the moment; new plans are made with it, for the `objective`."""
        self._registry, self.known, self._objective = registry, known, objective or Objective()
        self._bound: dict[tuple[str, str], Query] = {}
        self._binding = threading.RLock()
        self._plans: dict[int, Plan] = {}
        self._trees: LiveTrees | None = None

    def plan_of(self, record: PlanRecord) -> Plan:
        plan = self._plans.get(record.version)
        if plan is None:
            self._check_aggregates(record)
            known = Known(estimates=record.estimates, ongoing=record.ongoing)
            plan = self._build(record.queries, record.options, None, record.given, known)
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
        known = Known(ongoing=record.ongoing)
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
        trees = LiveTrees(self._registry.sources, chosen).follow(record.choices.tree_names, bound, types, known)
        return make_plan(self._registry.sources, bound, types, chosen, known, trees)

    def plan_alone(self, query: Query, known: Known, options: Mapping[str, str]) -> Plan:
        """Return a plan of one query that is not among the others, for a question that is asked once."""
        types, chosen = self._registry.known_types, replace(_plan_options(options), tuples=None)
        return make_plan(self._registry.sources, [query], types, chosen, known)

    def _recorded(
        self,
        version: int,
        from_round: int,
        queries: dict[str, str],
        declared: dict[str, str],
        options: dict[str, str],
        trees_so_far: list[list[str]] | None,
    ) -> PlanRecord:
        """Make a record. `kept` are the trees so far; without them, everything is planned again."""
        known = self.known()
        trees = None if trees_so_far is None else self._woven(queries, options, trees_so_far, known)
        plan = self._build(queries, options, trees, None, known)
        if self._objective.memory:
            # The choices that are best for the objective, for the queries that are bound.
            streams, types = self._registry.sources, self._registry.known_types
            preferred = Choices()
            for basin in basins_of(streams, self._bound.values(), types, _plan_options(options), known):
                preferred |= candidates_at(basin, known.estimates, self._objective)[0].choices
            plan = self._build(queries, options, None, preferred, known)
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
        self._plans = {
            number: plan_of_version
            for number, plan_of_version in self._plans.items()
            if number >= version - _OLDER_PLANS
        }
        self._plans[version] = plan

    def _woven(
        self, queries: Mapping[str, str], options: Mapping[str, str], trees_so_far: list[list[str]], known: Known
    ) -> list[list[str]]:
        chosen = _plan_options(options)
        if self._trees is None or self._trees.options != chosen:
            self._trees = LiveTrees(self._registry.sources, chosen)
        bound = self._bind_all(queries)
        return self._trees.follow(trees_so_far, bound, self._registry.known_types, known)

    def _build(
        self,
        queries: Mapping[str, str],
        options: Mapping[str, str],
        trees: list[list[str]] | None,
        given: Choices | None,
        known: Known,
    ) -> Plan:
        bound = self._bind_all(queries)
        chosen, types = _plan_options(options), self._registry.known_types
        return make_plan(self._registry.sources, bound, types, chosen, known, trees, given)


def _plan_options(options: Mapping[str, str]) -> PlanOptions:
    names = [field.name for field in fields(PlanOptions) if field.name != "tuples"]
    return PlanOptions(**{name: options[name] for name in names}, tuples=int(options["tuples"]))
