"""What `windloom plan` finds and shows: trees of every set, their edge rates and costs, time and memory taken."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from windloom.cli.tables import table_lines
from windloom.explain.cost_views import work
from windloom.model.aggregate import COUNT_STAR
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND, Stream
from windloom.model.windows import Window
from windloom.optimizer.auto import asked_by_all, calibrated_problem, choose_trees, windows_problem
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.cost.omega import cost_name, omega
from windloom.optimizer.cost.paper import PaperCost, costed_techniques
from windloom.optimizer.known import Known, set_statistics
from windloom.optimizer.sharing.incremental import Incremental
from windloom.optimizer.sharing.loads import WindowColumns
from windloom.optimizer.sharing.problem import SharingProblem
from windloom.optimizer.sharing.registry import Strategy, find_strategy
from windloom.plan.physical import PartialSet, PlannedComponent
from windloom.plan.statistics import assumed_statistics
from windloom.slicing.edges import EdgeSet
from windloom.slicing.registry import find_slicing

#: Trees that the table shows.
SHOWN = 20


@dataclass
class Sharing:
    """One set of queries to find trees for; after `find_sharing`, with its trees."""

    name: str
    queries: tuple[str, ...] | None  # names, where they have any
    problem: SharingProblem
    rate: float | None
    rate_from: str
    pace: float = 1.0  # of its statistics
    cost: float = 0.0
    trees: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def windows(self) -> tuple[Window, ...]:
        return self.problem.windows

    def find(self, strategy: Strategy | None) -> None:
        """Its trees by a strategy; without one, what `auto` takes."""
        begun = perf_counter()
        trees = choose_trees(self.problem)[1] if strategy is None else strategy.choose(self.problem)
        self.seconds = perf_counter() - begun
        if strategy is not None and strategy.name == "tri_weave":
            self.problem = self.problem.one_scan()
        costs = self.problem.tree_costs(trees)
        self.cost = self.problem.once + float(costs.sum())
        self.trees = [self._tree(tree, float(cost)) for tree, cost in zip(trees, costs, strict=True)]

    def _tree(self, tree: tuple[int, ...], cost: float) -> dict[str, Any]:
        counts = Counter(self.windows[i] for i in tree)
        distinct = sorted(counts)
        slicing, model = self.problem.slicing, self.problem.model
        edges = EdgeSet.of({edge for window in distinct for edge in slicing.edges(window)})
        told: dict[str, Any] = {"queries": len(tree)}
        if self.queries is not None:
            told["names"] = [self.queries[i] for i in tree]
        told |= {
            "distinct_windows": len(distinct),
            "edges_per_second": self.pace * edges.edges_per_second,
            "edges_exact": edges.density.exact,
            "edges_error": edges.density.error / float(edges.density.value),
        }
        if isinstance(model, PaperCost):
            load = WindowColumns.of(distinct, [counts[window] for window in distinct]).load([range(len(distinct))])
            rate = np.array([edges.edges_per_second])
            told["operations_per_edge"] = float(omega(model.techniques, load, rate)[0])
        return told | {"cost": cost}


def workload_problem(
    windows: tuple[Window, ...], asked: PlannedComponent, slicing: str, technique: str, rate: float | None, cost: str
) -> SharingProblem:
    """Windows of one stream, without groups, that all ask for one component."""
    if cost == "paper":
        name = "recalculate" if technique == "auto" else technique  # the papers' own: Panes
        model = PaperCost((cost_name(name, asked.family),), rate or DEFAULT_EVENTS_PER_SECOND)
        return SharingProblem(windows, find_slicing(slicing), model)
    constants, statistics = load_constants(), assumed_statistics(rate)
    components = (PlannedComponent(COUNT_STAR, None), asked)
    every = (asked_by_all(asked, technique, constants),)
    return windows_problem(windows, components, every, find_slicing(slicing), statistics, constants)


def sharing_of_set(
    partial_set: PartialSet, slicing: str, technique: str, stream: Stream, rate_from: str, cost: str
) -> Sharing:
    """The queries of a planned set, with the techniques that answer them, at the rate of the stream."""
    queries = [planned.query for planned in partial_set.queries]
    name, names, rate = partial_set.text, tuple(query.name for query in queries), stream.events_per_second
    if cost == "paper":
        techniques = costed_techniques(partial_set.components, partial_set.trees[0].techniques, queries)
        model = PaperCost(techniques, rate or DEFAULT_EVENTS_PER_SECOND)
        problem = SharingProblem(tuple(query.window for query in queries), find_slicing(slicing), model)
        return Sharing(name, names, problem, rate, rate_from, partial_set.statistics.pace)
    statistics = set_statistics(stream, queries, Known())
    constants = load_constants().scaled(statistics.pace)
    groupings = len(partial_set.group_by)
    problem = calibrated_problem(
        queries, partial_set.components, groupings, technique, find_slicing(slicing), statistics, constants
    )
    return Sharing(name, names, problem, rate, rate_from, statistics.pace)


def find_sharing(sets: list[Sharing], strategy: str, epsilon: float | None, memory_limit: int) -> list[Sharing]:
    chosen = None if strategy == "auto" else find_strategy(strategy) if epsilon is None else Incremental(epsilon)
    for sharing in sets:
        sharing.problem = replace(sharing.problem, memory_limit=memory_limit)
        sharing.find(chosen)
    return sets


def to_json(sets: list[Sharing], options: dict[str, str]) -> dict[str, Any]:
    return {
        **options,
        "cost": sum(sharing.cost for sharing in sets),
        "unit": sets[0].problem.model.unit,
        "queries": sum(len(sharing.windows) for sharing in sets),
        "tree_count": sum(len(sharing.trees) for sharing in sets),
        "seconds": sum(sharing.seconds for sharing in sets),
        "peak_memory_bytes": peak_memory(),
        "sets": [_set_json(sharing) for sharing in sets],
    }


def _set_json(sharing: Sharing) -> dict[str, Any]:
    return {
        "name": sharing.name,
        "rate": sharing.rate or DEFAULT_EVENTS_PER_SECOND,
        "rate_from": sharing.rate_from,
        "queries": len(sharing.windows),
        "distinct_windows": len(sharing.problem.distinct[0]),
        "bundles": len(sharing.problem.bundles),
        "cost": sharing.cost,
        "once": sharing.problem.once,
        "seconds": sharing.seconds,
        "trees": sharing.trees,
    }


def to_text(sets: list[Sharing], options: dict[str, str]) -> str:
    lines = [line for sharing in sets for line in _set_lines(sharing)]
    told = ", ".join(f"{name} {value}" for name, value in options.items())
    lines.append(f"cost {cost_text(sets[0], sum(sharing.cost for sharing in sets))} of event time ({told})")
    seconds, memory = sum(sharing.seconds for sharing in sets), peak_memory() / 2**20
    lines.append(f"found in {seconds:,.3g} s; peak memory of the process {memory:,.0f} MiB")
    return "\n".join(lines)


def _set_lines(sharing: Sharing) -> Iterator[str]:
    rate = f"{sharing.rate or DEFAULT_EVENTS_PER_SECOND:,.6g} events/s ({sharing.rate_from})"
    yield (
        f"{sharing.name}: {len(sharing.windows):,} queries, {len(sharing.problem.distinct[0]):,} distinct windows, "
        f"{len(sharing.trees):,} trees, {rate}"
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
    if sharing.problem.once:
        yield f"once, for all trees: {cost_text(sharing, sharing.problem.once)}"
    if len(ordered) > SHOWN:
        rest = ordered[SHOWN:]
        yield f"… {len(rest):,} more trees, cost {cost_text(sharing, sum(tree['cost'] for tree in rest))}"


def cost_text(sharing: Sharing, cost: float) -> str:
    return f"{cost:,.6g} operations/s" if isinstance(sharing.problem.model, PaperCost) else work(cost)


def peak_memory() -> int:
    """The largest memory of the process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
