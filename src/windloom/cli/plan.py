"""`windloom plan`: shows which queries would share trees, and the cost, for a catalog or a generated workload."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from windloom.cli.options import name_value_pairs, open_loom, plan_options
from windloom.cli.plan_report import PlannedSet, SetSharing, to_json, to_text, workload_problem
from windloom.errors import WindloomError, near_names
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND, Stream
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.optimizer.cost.papers import PaperCost, costed_techniques
from windloom.optimizer.cost.seconds import Scanning
from windloom.optimizer.facts import PlanningFacts, with_statistics
from windloom.optimizer.intake.choose import choose_scans
from windloom.optimizer.joins.plan import with_folds
from windloom.optimizer.plan_cost import estimate_plan, estimate_set, idle_sides
from windloom.optimizer.sharing.incremental_plan import Incremental
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import find_strategy
from windloom.optimizer.stages import PlanOptions, with_trees
from windloom.optimizer.trees import calibrated_problem
from windloom.plan.costs import SetSeconds
from windloom.plan.plan import PartialSet, Plan
from windloom.slicing.slicings import find_slicing

if TYPE_CHECKING:
    from windloom.model.windows import Window


#: Defaults of the options of each generated workload.
_DEFAULTS: dict[str, dict[str, float | str]] = {
    "divisors": {"smax": 1_000, "skew": 0.0, "unit": "1 s"},
    "zipf": {"smax": 100_000, "skew": 0.6, "unit": "10 ms"},
}
_FOR_BOTH: dict[str, float | str] = {"queries": 1_000, "overlap": 50, "seed": 1, "aggregate": "sum"}

#: The rate of a stream, None if it is not known, and where it comes from.
Rate = tuple[float | None, str]
PAPER_UNIT, SECONDS_UNIT = "operations per second", "seconds per second"


@click.command(
    epilog="Example: windloom plan --workload zipf --queries 250 --rate 100 --skew 0.7 --overlap 10",
    short_help="Show what queries would share, and the cost.",
)
@click.argument("catalog", required=False, type=click.Path())
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="[STREAM=]N",
    help="Events per second, of a stream of the catalog or of the workload.",
)
@click.option("--workload", type=click.Choice(list(_DEFAULTS)), help="Generate windows as the papers do.")
@click.option("--queries", type=click.IntRange(1), metavar="N", help="Number of queries. [1000]")
@click.option("--smax", type=click.IntRange(1), metavar="S", help="Longest slide, in units. [1000; zipf: 100000]")
@click.option(
    "--overlap", type=click.FloatRange(1), metavar="O", help="Largest number of windows that hold one event. [50]"
)
@click.option("--skew", type=float, metavar="Z", help="Zipf skew toward long slides. [0; zipf: 0.6]")
@click.option("--seed", type=click.IntRange(0), metavar="K", help="Seed of the random windows. [1]")
@click.option("--unit", metavar="TIME", help="Length of a slide of 1. [1 s; zipf: 10 ms]")
@click.option("--aggregate", type=click.Choice(["sum", "max"]), help="The aggregate of every query. [sum]")
@click.option("--epsilon", type=float, metavar="E", help="Tolerance of the strategy 'incremental'. [0.1]")
@click.option("--memory", default="4g", metavar="SIZE", help="Memory that the search may use. [4g]")
@click.option(
    "--cost",
    default="seconds",
    type=click.Choice(["seconds", "paper"]),
    help="Predicted seconds, or the papers' operations.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plan_options
def plan(
    catalog: str | None,
    rates: tuple[str, ...],
    workload: str | None,
    epsilon: float | None,
    memory: str,
    cost: str,
    as_json: bool,
    strategy: str,
    slicing: str,
    technique: str,
    **given: Any,
) -> None:
    """Show which queries would share trees, what every tree and the plan cost, and how long the search took.

    Costs are predicted seconds per second of event time or, with --cost paper, the papers' operations per second.
    A generated workload has no data and no types; it is planned as windows only, and may have a million of them.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if (catalog is None) == (workload is None):
        fact = "neither a catalog nor a workload is given" if catalog is None else "both are given"
        raise WindloomError("there are two things that can be planned, one at a time", fact, "windloom plan --help")
    if workload is None and given:
        raise WindloomError(
            f"--{next(iter(given))} does not go with a catalog",
            "it describes a generated workload",
            "leave it out, or give --workload instead of the catalog",
        )
    if epsilon is not None and strategy != "incremental":
        raise WindloomError(
            f"--epsilon does not go with --strategy {strategy}",
            "it is the tolerance of an incremental plan",
            "leave it out, or use --strategy incremental",
        )
    if strategy == "auto" and cost == "paper":
        strategy = "weave_share"
    PlanOptions(strategy, slicing, technique)  # reports a typing mistake at once
    limit = _bytes(memory)
    if workload is None:
        planned = _of_catalog(str(catalog), rates, slicing, technique, cost)
    else:
        planned = _of_workload(workload, given, rates, slicing, technique, cost)
    chosen = None if strategy == "auto" else find_strategy(strategy) if epsilon is None else Incremental(epsilon)
    for sharing in planned.sets:
        sharing.problem = replace(sharing.problem, memory_limit=limit)
        sharing.find(chosen)
    options = {"strategy": strategy, "slicing": slicing, "technique": technique}
    click.echo(json.dumps(to_json(planned, options), indent=2) if as_json else to_text(planned, options))


def _of_workload(
    workload: str, workload_options: dict[str, Any], rates: tuple[str, ...], slicing: str, technique: str, cost: str
) -> PlannedSet:
    from windloom.aggregates.registry import PlannedComponent
    from windloom.kernels.techniques.registry import find_technique, permits
    from windloom.model import Component, DataType, Expression

    options = _FOR_BOTH | _DEFAULTS[workload] | workload_options
    if len(rates) > 1 or any("=" in rate for rate in rates):
        raise WindloomError(
            f"cannot read --rate '{rates[-1]}'", "a generated workload is one stream", "write --rate N, once"
        )
    rate, rate_from = _rate(rates[0], workload) if rates else (None, "default")
    component = PlannedComponent(Component(str(options["aggregate"]), Expression.of_column("x")), DataType.parse("int"))
    if technique != "auto" and not permits(find_technique(technique), component.family):
        raise WindloomError(
            f"technique '{technique}' cannot answer --aggregate {options['aggregate']}",
            "it needs an operation that can be undone",
            "use --aggregate sum, or another technique",
        )
    problem = workload_problem(_windows(workload, options), component, slicing, technique, rate, cost)
    return PlannedSet([SetSharing(workload, None, problem, rate, rate_from)], problem.model.unit)


def _windows(workload: str, options: dict[str, Any]) -> tuple[Window, ...]:
    from windloom.model.time import parse_duration
    from windloom.optimizer.workloads import divisors_workload, zipf_workload

    unit = parse_duration(str(options["unit"]))
    if unit <= 0:
        raise WindloomError(f"--unit '{options['unit']}' is no length of time", "it must be positive", "--unit '1 s'")
    generate = divisors_workload if workload == "divisors" else zipf_workload
    overlap = options["overlap"]
    if workload == "divisors":
        if overlap != int(overlap):
            raise WindloomError(
                f"--overlap {overlap:g} does not go with --workload divisors", "ranges are whole slides", "round it"
            )
        overlap = int(overlap)
    return generate(options["queries"], options["smax"], overlap, options["skew"], options["seed"], unit)


def _of_catalog(catalog: str, rate_texts: tuple[str, ...], slicing: str, technique: str, cost: str) -> PlannedSet:
    """Return the sets of a plan that has one tree for each, at the rates given, at the prices of the plan."""
    loom = open_loom(catalog, (), (), "*", None, ())
    given_rates = name_value_pairs(rate_texts, "--rate", "STREAM=N")
    for name in given_rates:
        if name not in loom.streams:
            raise WindloomError(
                f"the catalog has no stream '{name}'",
                f"--rate {name}={given_rates[name]}",
                near_names(name, [*loom.streams]),
            )
    rates = {name: _rate(text, name) for name, text in given_rates.items()}
    # One tree per set, to learn sets, components and techniques; what they share is found afterwards.
    base = loom.plan("shared", slicing, technique)
    rows = tuple(planned.name for planned in base.rows)
    # A version of a relation is read once, whichever queries use it.
    shared = [partial_set for partial_set in base.sets if not partial_set.is_relation]
    if cost == "paper":
        return PlannedSet([_counted(partial_set, base, rates) for partial_set in shared], PAPER_UNIT, rows=rows)
    constants = load_constants()
    plan = _at_rates(base, rates, constants)
    seconds = estimate_plan(plan, constants)
    sets = [_predicted(plan.sets[each.number], seconds.sets[each.number], plan, rates, constants) for each in shared]
    versions = sum(seconds.sets[each.number].total for each in base.sets if each.is_relation)
    besides = {"job": seconds.job, "folds": sum(seconds.folds.values()), "relations": versions}
    return PlannedSet(sets, SECONDS_UNIT, besides, rows)


def _rate(text: str, name: str) -> tuple[float | None, str]:
    """Return a rate and where it comes from; zero means unknown, and the report says so."""
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise WindloomError(
            f"the rate of '{name}' cannot be '{text}'",
            "it is the number of events per second",
            "give a number above 0, such as 1000",
        )
    return (rate, "given") if rate else (None, "default, as 0 was given")


def _bytes(text: str) -> int:
    factors = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    number, factor = (text[:-1], factors[text[-1].lower()]) if text[-1:].lower() in factors else (text, 1)
    try:
        size = int(float(number) * factor)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise WindloomError(f"cannot read --memory '{text}'", "it is a number of bytes", "for example --memory 4g")
    return size


def _at_rates(base: Plan, rates: Mapping[str, Rate], constants: Constants) -> Plan:
    """Return the plan at other rates, with the intake and the folds that are best at these."""

    def rate(stream: Stream) -> float | None:
        return rates.get(base.base_of(stream.name), (stream.events_per_second, ""))[0]

    streams = tuple(replace(stream, events_per_second=rate(stream)) for stream in base.streams)
    enriched = tuple(replace(stream, events_per_second=rate(stream)) for stream in base.enriched)
    plan = with_statistics(replace(base, streams=streams, enriched=enriched), PlanningFacts())
    scans = choose_scans((*streams, *enriched), plan.sets, "auto", constants, rows=plan.rows)
    joins = with_folds(plan.joins, plan.sets, "auto", constants) if plan.joins else ()
    return replace(plan, scans=scans, joins=joins)


def _predicted(
    partial_set: PartialSet, seconds: SetSeconds, plan: Plan, rates: Mapping[str, Rate], constants: Constants
) -> SetSharing:
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
    return SetSharing(
        partial_set.text, names, problem, *_catalog_rate(plan, partial_set, rates), pace=statistics.pace, price=price
    )


def _priced(partial_set: PartialSet, plan: Plan, scanning: Scanning, constants: Constants, trees: Trees) -> SetSeconds:
    options = PlanOptions(slicing=plan.slicing, technique=plan.technique)
    return estimate_set(with_trees(partial_set, trees, options, constants), constants, scanning, idle_sides(plan))


def _counted(partial_set: PartialSet, base: Plan, rates: Mapping[str, Rate]) -> SetSharing:
    """Return a set whose trees are searched for, and counted, in the papers' operations."""
    queries = [planned.query for planned in partial_set.queries]
    rate, rate_from = _catalog_rate(base, partial_set, rates)
    techniques = costed_techniques(partial_set.components, partial_set.trees[0].techniques, queries)
    model = PaperCost(techniques, rate or DEFAULT_EVENTS_PER_SECOND)
    problem = SharingProblem(tuple(query.window for query in queries), find_slicing(base.slicing), model)
    names = tuple(query.name for query in queries)
    return SetSharing(partial_set.text, names, problem, rate, rate_from, partial_set.statistics.pace)


def _catalog_rate(plan: Plan, partial_set: PartialSet, rates: Mapping[str, Rate]) -> Rate:
    """Return the rate of the stream that the tuples of a set come from, which may be enriched on the way."""
    declared = plan.stream(partial_set.stream).events_per_second
    return rates.get(plan.base_of(partial_set.stream), (declared, "catalog" if declared else "default"))
