"""Basins: the streams that joins connect, with the queries over them. Each is planned by itself, and has a chart.

What is chosen for one basin does not change the cost of another, so the plan of a loom consists of the plans of its
basins. A stream that no join reads is a basin by itself (the sel–λ chart of source B); the streams of joins are one
(its λ–λ chart).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from windloom.model.query import Query
from windloom.model.stream import EnrichedStream, Stream
from windloom.optimizer.adapt.round_cost import RoundCost, SetCosts, round_cost
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.costs import Choices
from windloom.plan.joins import with_sides
from windloom.plan.plan import Plan, Types
from windloom.statistics.estimates import Estimates
from windloom.statistics.set_statistics import SetIdentity


@dataclass(frozen=True, eq=False)
class Basin:
    """`known` is what plans are made with, except estimates; `relations` are what its queries read besides streams."""

    streams: Mapping[str, Stream]
    queries: tuple[Query, ...]
    types: Types
    options: PlanOptions
    known: PlanningFacts
    relations: Mapping[str, Stream] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The names of its streams."""
        return ", ".join(self.streams)

    @cached_property
    def identities(self) -> tuple[SetIdentity, ...]:
        """The identities of its sets, except those of relations, which rounds do not change."""
        asked = (query for query in with_sides(self.queries) if not query.window.is_version)
        return tuple(dict.fromkeys(map(SetIdentity.of_query, asked)))

    @cached_property
    def having(self) -> Mapping[tuple[str, str | tuple[str, ...]], list[SetIdentity]]:
        """The identities by stream and predicate, and by stream and grouping."""
        found: dict[tuple[str, str | tuple[str, ...]], list[SetIdentity]] = {}
        for identity in self.identities:
            found.setdefault((identity.stream, identity.predicate), []).append(identity)
            found.setdefault((identity.stream, identity.grouping), []).append(identity)
        return found

    @cached_property
    def enriched(self) -> Mapping[str, EnrichedStream]:
        """Streams that its queries read as joined with relations."""
        return {enriched_stream.name: enriched_stream for query in self.queries for enriched_stream in query.enriched}

    def plan(self, estimates: Estimates, given: Choices | None = None) -> Plan:
        """Return the best plan for some estimates, or the plan with the `given` choices."""
        sources, known = {**self.streams, **self.relations}, self.known.with_estimates(estimates)
        return make_plan(sources, self.queries, self.types, self.options, known, given=given, imagined=True)

    def cost(self, plan: Plan, known: SetCosts | None = None) -> RoundCost:
        """Return the predicted cost of a plan, with the statistics it carries."""
        return round_cost(plan, self.known.in_force(), known)

    def own(self, choices: Choices) -> Choices:
        """Return the choices of a whole plan that are about this basin."""
        names, about = self._names
        return Choices(
            tuple(tree for tree in choices.trees if tree.queries[0] in names),
            tuple(option for option in choices.options if option[1] in about),
        )

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of the queries in trees, and of everything that options are about."""
        several = (query.name for query in self.queries if query.join is not None or query.rows is not None)
        return (
            frozenset(query.name for query in with_sides(self.queries)),
            frozenset([*self.streams, *self.enriched, *several]),
        )


def basins_of(
    streams: Mapping[str, Stream], queries: Iterable[Query], types: Types, options: PlanOptions, known: PlanningFacts
) -> list[Basin]:
    """Return the basins in the order of the streams; `streams` includes relations."""
    queries = list(queries)
    parts: list[set[str]] = []
    for query in queries:
        read = set(query.streams)
        met = [part for part in parts if part & read]
        parts = [part for part in parts if not part & read] + [read.union(*met)]
    places = {name: place for place, name in enumerate(streams)}
    return [
        Basin(
            {name: streams[name] for name in streams if name in part},
            tuple(query for query in queries if part & set(query.streams)),
            types,
            options,
            known,
            {name: stream for name, stream in streams.items() if stream.is_relation},
        )
        for part in sorted(parts, key=lambda part: min(places[name] for name in part))
    ]
