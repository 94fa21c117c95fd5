"""The input of plans besides queries: constants of the machine, observations of rounds, the rhythm of rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from windloom.model.query import Query
from windloom.model.rows import RowInput
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND, Stream, Version
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.plan.plan import Plan
from windloom.plan.rows import StrandRate
from windloom.statistics.estimates import Estimates
from windloom.statistics.set_statistics import (
    ASSUMED,
    DEFAULT_GROUPS,
    DEFAULT_RUN_SECONDS,
    DEFAULT_SELECTIVITY,
    GIVEN,
    MOST_SIGNATURES,
    Mean,
    Ongoing,
    Origin,
    Origins,
    SetIdentity,
    Statistics,
)

#: Rates and shares below this count as this: nothing that was observed is impossible, and costs are divided by them.
LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class PlanningFacts:
    """The figures that a plan is made with.

    `constants` is None for the constants in force. `ongoing` is None for a batch run, which has one round.

    `versions` are those of relations that were last seen. `files` has, by stream, the columns that the driver
    can read itself, from files.
    """

    constants: Constants | None = None
    estimates: Estimates = field(default_factory=Estimates)
    ongoing: Ongoing | None = None
    versions: Mapping[str, Version] = field(default_factory=dict)
    files: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def in_force(self) -> Constants:
        return self.constants or load_constants()

    def with_estimates(self, estimates: Estimates) -> PlanningFacts:
        """Return a copy that has other estimates."""
        return replace(self, estimates=estimates)


def set_statistics(stream: Stream, queries: Sequence[Query], known: PlanningFacts) -> Statistics:
    """Return the statistics of the set that answers the queries, all of one identity.

    A given figure takes precedence over an observed one, and that over an assumed one; but plans of a running stream
    follow what it brings, whatever was given. A given rate is that of the whole stream; a set has the share of it
    that its predicate was seen to let through.
    """
    if stream.is_relation:
        return _relation_statistics(stream, known)
    identity, estimates = SetIdentity.of_query(queries[0]), known.estimates
    set_estimate, seen = estimates.sets.get(identity), estimates.streams.get(identity.stream)
    seen = seen or estimates.streams.get(queries[0].streams[0])  # an enriched stream has the pace of its stream
    given_rate = None if known.ongoing is not None and seen is not None else stream.events_per_second
    rate, of_rate = _figure(given_rate, None if seen is None else seen.rate, DEFAULT_EVENTS_PER_SECOND)
    observed_share = estimates.selectivity(identity)
    share, of_share = _figure(None if identity.predicate else 1.0, observed_share, DEFAULT_SELECTIVITY)
    counted = estimates.groups(identity)
    groups, of_groups = _figure(None if identity.grouping else 1.0, counted, DEFAULT_GROUPS)
    length, of_length = _round(known, None if seen is None else seen.round)
    of_evenness = ASSUMED if set_estimate is None else _origin(set_estimate.cells)
    share = max(share, LEAST)
    statistics = Statistics(
        max(rate, LEAST) * share,
        max(groups, 1.0),
        length,
        selectivity=share,
        conditions={} if seen is None else seen.conditions,
        signatures=MOST_SIGNATURES if seen is None else seen.signatures,
        is_ongoing=known.ongoing is not None,
        origins=Origins(of_rate, of_share, of_groups, of_length, of_evenness),
    )
    statistics = statistics if set_estimate is None else set_estimate.shown_in(statistics)
    counted_by = queries[0].window.counted_by
    statistics = statistics if counted_by is None else statistics.of_positions(bool(counted_by))
    if known.ongoing is None:
        return statistics
    extents = [query.window.extent_ticks or 0 for query in queries]
    kept_seconds = max(max(extents) / TICKS_PER_SECOND, known.ongoing.history_seconds * statistics.pace)
    return replace(statistics, kept_seconds=kept_seconds)


def strand_rate(stream: Stream, strand: RowInput, known: PlanningFacts) -> StrandRate:
    """Return the estimates of a strand: its rate, and the values of the columns by which it may be joined."""
    estimates = known.estimates
    seen = estimates.streams.get(stream.name)
    given_rate = None if known.ongoing is not None and seen is not None else stream.events_per_second
    rate, origin = _figure(given_rate, None if seen is None else seen.rate, DEFAULT_EVENTS_PER_SECOND)
    length, _ = _round(known, None if seen is None else seen.round)
    share, condition = 1.0, strand.condition
    if condition is not None:
        shown = None if seen is None else seen.conditions.get(condition.sql)
        share = DEFAULT_SELECTIVITY if shown is None else shown
    counted = [
        set_estimate.groups.value
        for identity, set_estimate in estimates.sets.items()
        if identity.stream == stream.name and identity.grouping and set(identity.grouping) <= set(strand.columns)
    ]
    values = max(counted, default=DEFAULT_GROUPS)
    return StrandRate(max(rate, LEAST), max(share, LEAST), values, origin, bool(counted), length)


def with_statistics(plan: Plan, known: PlanningFacts) -> Plan:
    """Return the plan with the statistics that are known now."""
    sets = []
    for partial_set in plan.sets:
        queries = [planned.query for planned in partial_set.queries]
        sets.append(replace(partial_set, statistics=set_statistics(plan.stream(partial_set.stream), queries, known)))
    joins = tuple(replace(join, observed=known.estimates.joins.get(join.name, ())) for join in plan.joins)
    rows = []
    for planned_rows in plan.rows:
        rates = (strand_rate(plan.stream(strand.stream), strand, known) for strand in planned_rows.rows.strands)
        rows.append(replace(planned_rows, rates=tuple(rates)))
    relations = tuple(replace(each, version=known.versions.get(each.name, each.version)) for each in plan.relations)
    return replace(plan, sets=tuple(sets), joins=joins, rows=tuple(rows), relations=relations)


def _relation_statistics(relation: Stream, known: PlanningFacts) -> Statistics:
    """Return the statistics of a set that holds a version: at most a group per row, all at most once per round."""
    version = known.versions.get(relation.name)
    counted = None if version is None or version.rows is None else max(1.0, float(version.rows))
    rows, origin = (DEFAULT_GROUPS, ASSUMED) if counted is None else (counted, Origin("observed", 1))
    length, of_length = _round(known, None)
    origins = Origins(origin, GIVEN, origin, of_length, ASSUMED)
    return Statistics(rows / length, rows, length, is_ongoing=known.ongoing is not None, origins=origins)


def _figure(given: float | None, observed: Mean | None, assumed: float) -> tuple[float, Origin]:
    if given is not None:
        return given, GIVEN
    if observed is not None and observed.rounds > 0:
        return observed.value, _origin(observed)
    return assumed, ASSUMED


def _round(known: PlanningFacts, observed: Mean | None) -> tuple[float, Origin]:
    if observed is not None:
        return observed.value, _origin(observed)
    if known.ongoing is not None:
        return known.ongoing.round_seconds, known.ongoing.origin
    return DEFAULT_RUN_SECONDS, ASSUMED


def _origin(observed: Mean) -> Origin:
    return Origin("observed", observed.rounds, observed.trend)
