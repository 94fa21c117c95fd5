"""The results of `windloom plan`: trees of every set, their edge rates and costs, time and memory taken."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from windloom.aggregates.registry import PlannedComponent
from windloom.cli.options import table_lines
from windloom.explain.costs import work
from windloom.explain.words import one_line
from windloom.model.aggregate import COUNT_STAR
from windloom.model.formatting import count
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND
from windloom.model.windows import Window
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.cost.papers import PaperCost, cost_name, omega
from windloom.optimizer.sharing.problem import SharingProblem, Trees, WindowColumns
from windloom.optimizer.sharing.registry import Strategy
from windloom.optimizer.trees import asked_by_all, choose_trees, windows_problem
from windloom.plan.costs import SetSeconds
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
