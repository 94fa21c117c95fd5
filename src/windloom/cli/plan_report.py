"""What `windloom plan` searches trees for, a catalog's sets or a generated workload, and what it found, as a report."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from windloom.aggregates.registry import PlannedComponent
from windloom.cli.options import name_value_pairs, open_loom, table_lines
from windloom.errors import WindloomError, near_names
from windloom.explain.costs import work
from windloom.explain.words import one_line
from windloom.kernels.techniques.registry import find_technique, permits
from windloom.model import Component, DataType, Expression
from windloom.model.aggregate import COUNT_STAR
from windloom.model.formatting import count
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND, Stream
from windloom.model.time import parse_duration
from windloom.model.windows import Window
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.optimizer.cost.papers import PaperCost, WindowColumns, cost_name, costed_techniques, omega
from windloom.optimizer.cost.seconds import Scanning
from windloom.optimizer.facts import PlanningFacts, with_statistics
from windloom.optimizer.intake.choose import choose_scans
from windloom.optimizer.joins.plan import with_folds
from windloom.optimizer.plan_cost import estimate_plan, estimate_set, idle_sides
from windloom.optimizer.sharing.problem import SharingProblem, Trees
from windloom.optimizer.sharing.registry import Strategy
from windloom.optimizer.stages import PlanOptions, with_trees
from windloom.optimizer.trees import asked_by_all, calibrated_problem, choose_trees, windows_problem
from windloom.optimizer.workloads import divisors_workload, zipf_workload
from windloom.plan.costs import SetSeconds
from windloom.plan.plan import PartialSet, Plan
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slicings import find_slicing
from windloom.statistics.set_statistics import assumed_statistics

#: Trees that the table shows.
SHOWN = 20
#: What a plan takes besides its sets, in words.
_BESIDES = {
    "job": "to start a Spark job per round",
    "folds": "to fold joins",
    "relations": "to answer from versions of relations",
}

#: Defaults of all generated workloads.
_FOR_BOTH: dict[str, float | str] = {"queries": 1_000, "overlap": 50, "seed": 1, "aggregate": "sum"}

#: The rate of a stream, None if it is not known, and where it comes from.
Rate = tuple[float | None, str]
PAPER_UNIT, SECONDS_UNIT = "operations per second", "seconds per second"


@dataclass
class PlannedSet:
    """All that is planned together: sets of queries, and what the plan takes and holds besides them."""

    sets: list[SetSharing]
    unit: str
    #: Seconds per second of event time, by what they are spent on: see `_BESIDES`.
    besides: dict[str, float] = field(default_factory=dict)
    rows: tuple[str, ...] = ()  # names of row queries, which have no partials

    @property
    def cost(self) -> float:
        return sum(sharing.cost for sharing in self.sets) + sum(self.besides.values())

    @property
    def seconds(self) -> float:
        """The time that the search took."""
        return sum(sharing.seconds for sharing in self.sets)


@dataclass
class SetSharing:
    """One set of queries to find trees for; after `find`, with its trees."""

    name: str
    queries: tuple[str, ...] | None  # names, where they have any
    problem: SharingProblem
    rate: float | None
    rate_from: str
    pace: float = 1.0  # of its statistics
    price: Callable[[Trees], SetSeconds] | None = None  # of its trees in the plan of a catalog, in seconds
    once: float = 0.0
    cost: float = 0.0
    trees: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def windows(self) -> tuple[Window, ...]:
        return self.problem.windows

    def find(self, strategy: Strategy | None) -> None:
        """Find its trees by a strategy; without one, by what `auto` takes."""
        begun = perf_counter()
        trees = choose_trees(self.problem)[1] if strategy is None else strategy.choose(self.problem)
        self.seconds = perf_counter() - begun
        if strategy is not None and strategy.name == "tri_weave":
            self.problem = self.problem.one_scan()
        if self.price is None:
            self.once, costs = self.problem.once, self.problem.tree_costs(trees).tolist()
        else:
            # The search takes every set to have a scan of its own; the plan has one scan for all sets of a stream.
            priced = self.price(trees)
            self.once, costs = priced.shared, [tree.total for tree in priced.trees]
        self.cost = self.once + sum(costs)
        self.trees = [self._tree(tree, cost) for tree, cost in zip(trees, costs, strict=True)]

    def _tree(self, tree: tuple[int, ...], cost: float) -> dict[str, Any]:
        counts = Counter(self.windows[i] for i in tree)
        distinct = sorted(counts)
        slicing, model = self.problem.slicing, self.problem.model
        edges = EdgeSet.of({edge for window in distinct for edge in slicing.edges(window)})
        described: dict[str, Any] = {"queries": len(tree)}
        if self.queries is not None:
            described["names"] = [self.queries[i] for i in tree]
        described |= {
            "distinct_windows": len(distinct),
            "edges_per_second": self.pace * edges.edges_per_second,
            "edges_exact": edges.density.exact,
            "edges_error": edges.density.error / float(edges.density.value),
        }
        if isinstance(model, PaperCost):
            load = WindowColumns.of(distinct, [counts[window] for window in distinct]).load([range(len(distinct))])
            rate = np.array([edges.edges_per_second])
            described["operations_per_edge"] = float(omega(model.techniques, load, rate)[0])
        return described | {"cost": cost}


def workload_problem(
    windows: tuple[Window, ...],
    component: PlannedComponent,
    slicing: str,
    technique: str,
    rate: float | None,
    cost: str,
) -> SharingProblem:
    """Return windows of one stream, without groups, that all ask for one component."""
    if cost == "paper":
        name = "recalculate" if technique == "auto" else technique  # the papers' own: Panes
        model = PaperCost((cost_name(name, component.family),), rate or DEFAULT_EVENTS_PER_SECOND)
        return SharingProblem(windows, find_slicing(slicing), model)
    constants, statistics = load_constants(), assumed_statistics(rate)
    components = (PlannedComponent(COUNT_STAR, None), component)
    every = (asked_by_all(component, technique, constants),)
    return windows_problem(windows, components, every, find_slicing(slicing), statistics, constants)


def to_json(planned: PlannedSet, options: dict[str, str]) -> dict[str, Any]:
    return {
        **options,
        "cost": planned.cost,
        "unit": planned.unit,
        "queries": sum(len(sharing.windows) for sharing in planned.sets),
        "row_queries": list(planned.rows),
        "tree_count": sum(len(sharing.trees) for sharing in planned.sets),
        "seconds": planned.seconds,
        "peak_memory_bytes": peak_memory(),
        "besides": planned.besides,
        "sets": [
            {
                "name": sharing.name,
                "rate": sharing.rate or DEFAULT_EVENTS_PER_SECOND,
                "rate_from": sharing.rate_from,
                "queries": len(sharing.windows),
                "distinct_windows": len(sharing.problem.distinct[0]),
                "bundles": len(sharing.problem.bundles),
                "cost": sharing.cost,
                "once": sharing.once,
                "seconds": sharing.seconds,
                "trees": sharing.trees,
            }
            for sharing in planned.sets
        ],
    }


def to_text(planned: PlannedSet, options: dict[str, str]) -> str:
    lines = [line for sharing in planned.sets for line in _set_lines(sharing)]
    if not planned.sets:
        lines.append("no query has partials to share")
    if planned.rows:
        rows = count(len(planned.rows), "row query", "row queries")
        are = "is" if len(planned.rows) == 1 else "are"
        names = [one_line(name) for name in planned.rows[:SHOWN]]
        more = f" and {len(planned.rows) - SHOWN:,} more" if len(planned.rows) > SHOWN else ""
        lines.append(f"{rows} {are} made from tuples, not from partials: {', '.join(names)}{more}")
    if planned.sets:
        lines += [f"{_BESIDES[what]}: {work(cost)}" for what, cost in planned.besides.items() if cost]
        shown_options = ", ".join(f"{name} {value}" for name, value in options.items())
        lines.append(f"cost {cost_text(planned.sets[0], planned.cost)} of event time ({shown_options})")
        memory = peak_memory() / 2**20
        lines.append(f"found in {planned.seconds:,.3g} s; peak memory of the process {memory:,.0f} MiB")
    return "\n".join(lines)


def _set_lines(sharing: SetSharing) -> Iterator[str]:
    rate = f"{sharing.rate or DEFAULT_EVENTS_PER_SECOND:,.6g} events/s ({sharing.rate_from})"
    yield (
        f"{sharing.name}: {count(len(sharing.windows), 'query', 'queries')}, "
        f"{count(len(sharing.problem.distinct[0]), 'distinct window')}, {count(len(sharing.trees), 'tree')}, {rate}"
    )
    in_operations = isinstance(sharing.problem.model, PaperCost)
    columns = ("tree", "queries", "windows", "edges/s", *(("operations/edge",) if in_operations else ()), "cost")
    ordered = sorted(sharing.trees, key=lambda tree: -tree["cost"])
    rows = [
        (
            str(number),
            f"{tree['queries']:,}",
            f"{tree['distinct_windows']:,}",
            f"{'' if tree['edges_exact'] else '≈ '}{tree['edges_per_second']:,.4g}",
            *((f"{tree['operations_per_edge']:,.4g}",) if in_operations else ()),
            cost_text(sharing, tree["cost"]),
        )
        for number, tree in enumerate(ordered[:SHOWN])
    ]
    yield from table_lines(columns, rows, right=columns)
    if sharing.once:
        yield f"once, for all trees: {cost_text(sharing, sharing.once)}"
    if len(ordered) > SHOWN:
        rest = ordered[SHOWN:]
        yield f"… {count(len(rest), 'more tree')}, cost {cost_text(sharing, sum(tree['cost'] for tree in rest))}"


def cost_text(sharing: SetSharing, cost: float) -> str:
    return f"{cost:,.6g} operations/s" if isinstance(sharing.problem.model, PaperCost) else work(cost)


def peak_memory() -> int:
    """Return the largest memory of the process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def find_workload(
    workload: str, workload_options: dict[str, Any], rates: tuple[str, ...], slicing: str, technique: str, cost: str
) -> PlannedSet:
    options = _FOR_BOTH | workload_options
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
    unit = parse_duration(str(options["unit"]))
    if unit <= 0:
        raise WindloomError(f"--unit '{options['unit']}' is no length of time", "it must be positive", "--unit '1 s'")
    drawn = (options["queries"], options["smax"], options["overlap"], options["skew"], options["seed"], unit)
    if workload == "zipf":
        return zipf_workload(*drawn, templates=options["templates"] or None)
    if "templates" in options:
        raise WindloomError(
            "--templates does not go with --workload divisors", "slides are the divisors of --smax", "leave it out"
        )
    if options["overlap"] != int(options["overlap"]):
        raise WindloomError(
            f"--overlap {options['overlap']:g} does not go with --workload divisors",
            "ranges are whole slides",
            "round it",
        )
    return divisors_workload(*drawn)


def find_catalog_sets(catalog: str, rate_texts: tuple[str, ...], slicing: str, technique: str, cost: str) -> PlannedSet:
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
    options = PlanOptions(slicing=plan.slicing, technique=plan.technique)
    names = tuple(query.name for query in queries)
    return SetSharing(
        partial_set.text,
        names,
        problem,
        *_catalog_rate(plan, partial_set, rates),
        statistics.pace,
        lambda trees: estimate_set(
            with_trees(partial_set, trees, options, constants), constants, scanning, idle_sides(plan)
        ),
    )


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
