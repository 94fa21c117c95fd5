"""The sets of a catalog for which `windloom plan` finds trees, at the rates given, at the prices of their plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from windloom.cli.plan_report import Planned, Sharing
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND, Stream
from windloom.optimizer import PlanOptions
from windloom.optimizer.auto import calibrated_problem
from windloom.optimizer.cost.calibrated import Scanning
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.optimizer.cost.paper import PaperCost, costed_techniques
from windloom.optimizer.estimate import estimate_plan, estimate_set, idle_sides
from windloom.optimizer.intake import choose_scans
from windloom.optimizer.joins.folds import with_folds
from windloom.optimizer.known import Known, with_statistics
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.stages import with_trees
from windloom.plan.costs import SetSeconds
from windloom.plan.physical import PartialSet, Plan
from windloom.slicing.registry import find_slicing

#: The rate of a stream, None if it is not known, and where it comes from.
Rate = tuple[float | None, str]
PAPER_UNIT, SECONDS_UNIT = "operations per second", "seconds per second"


def plan_catalog(base: Plan, rates: Mapping[str, Rate], cost: str) -> Planned:
    """Return the sets of a plan that has one tree for each; `rates` by stream replace those of the catalog."""
    rows = tuple(planned.name for planned in base.rows)
    # A version of a relation is read once, whichever queries use it.
    shared = [partial_set for partial_set in base.sets if not partial_set.is_relation]
    if cost == "paper":
        sets = [_counted(partial_set, base, rates) for partial_set in shared]
        return Planned(sets, PAPER_UNIT, rows=rows)
    constants = load_constants()
    plan = _at_rates(base, rates, constants)
    seconds = estimate_plan(plan, constants)
    sets = [_predicted(plan.sets[each.number], seconds.sets[each.number], plan, rates, constants) for each in shared]
    versions = sum(seconds.sets[each.number].total for each in base.sets if each.is_relation)
    besides = {"job": seconds.job, "folds": sum(seconds.folds.values()), "relations": versions}
    return Planned(sets, SECONDS_UNIT, besides, rows)


def _at_rates(base: Plan, rates: Mapping[str, Rate], constants: Constants) -> Plan:
    """Return the plan at other rates, with the intake and the folds that are best at these."""

    def rate(stream: Stream) -> float | None:
        return rates.get(base.base_of(stream.name), (stream.events_per_second, ""))[0]

    streams = tuple(replace(stream, events_per_second=rate(stream)) for stream in base.streams)
    enriched = tuple(replace(stream, events_per_second=rate(stream)) for stream in base.enriched)
    plan = with_statistics(replace(base, streams=streams, enriched=enriched), Known())
    scans = choose_scans((*streams, *enriched), plan.sets, "auto", constants, rows=plan.rows)
    joins = with_folds(plan.joins, plan.sets, "auto", constants) if plan.joins else ()
    return replace(plan, scans=scans, joins=joins)


def _predicted(
    partial_set: PartialSet, seconds: SetSeconds, plan: Plan, rates: Mapping[str, Rate], constants: Constants
) -> Sharing:
    """Return a set whose trees are searched for, and priced, in predicted seconds."""
    queries = [planned.query for planned in partial_set.queries]
    statistics = partial_set.statistics
    problem = calibrated_problem(
        queries,
        partial_set.components,
        len(partial_set.group_by),
        plan.technique,
        find_slicing(plan.slicing),
        statistics,
        constants.scaled(statistics.pace),
    )
    scanning = Scanning(seconds.scan, seconds.partials, seconds.merge)
    price = partial(_priced, partial_set, plan, scanning, constants)
    names = tuple(query.name for query in queries)
    return Sharing(
        partial_set.text, names, problem, *_rate(plan, partial_set, rates), pace=statistics.pace, price=price
    )


def _priced(partial_set: PartialSet, plan: Plan, scanning: Scanning, constants: Constants, trees: Trees) -> SetSeconds:
    options = PlanOptions(slicing=plan.slicing, technique=plan.technique)
    return estimate_set(with_trees(partial_set, trees, options, constants), constants, scanning, idle_sides(plan))


def _counted(partial_set: PartialSet, base: Plan, rates: Mapping[str, Rate]) -> Sharing:
    """Return a set whose trees are searched for, and counted, in the papers' operations."""
    queries = [planned.query for planned in partial_set.queries]
    rate, rate_from = _rate(base, partial_set, rates)
    techniques = costed_techniques(partial_set.components, partial_set.trees[0].techniques, queries)
    model = PaperCost(techniques, rate or DEFAULT_EVENTS_PER_SECOND)
    problem = SharingProblem(tuple(query.window for query in queries), find_slicing(base.slicing), model)
    names = tuple(query.name for query in queries)
    return Sharing(partial_set.text, names, problem, rate, rate_from, partial_set.statistics.pace)


def _rate(plan: Plan, partial_set: PartialSet, rates: Mapping[str, Rate]) -> Rate:
    """Return the rate of the stream that the tuples of a set come from, which may be enriched on the way."""
    declared = plan.stream(partial_set.stream).events_per_second
    return rates.get(plan.base_of(partial_set.stream), (declared, "catalog" if declared else "default"))
