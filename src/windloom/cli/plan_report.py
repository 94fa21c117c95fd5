"""What `windloom plan` finds and shows: trees of every set, their edge rates and costs, seconds, memory."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND
from windloom.model.windows import Window
from windloom.optimizer.cost.omega import cost_name, omega
from windloom.optimizer.cost.paper import PaperCost
from windloom.optimizer.sharing.incremental import Incremental
from windloom.optimizer.sharing.loads import WindowColumns
from windloom.optimizer.sharing.problem import SharingProblem
from windloom.optimizer.sharing.registry import Strategy, find_strategy
from windloom.plan.physical import PartialSet
from windloom.slicing.edges import EdgeSet
from windloom.slicing.registry import find_slicing

#: Trees that the table shows.
SHOWN = 20


@dataclass
class Sharing:
    """One set of queries to find trees for, and after `find_sharing` its trees."""

    name: str
    queries: tuple[str, ...] | None  # names, where they have any
    windows: tuple[Window, ...]
    slicing: str
    techniques: tuple[str, ...]  # as Ω names them
    rate: float | None
    rate_from: str
    problem: SharingProblem | None = None
    cost: float = 0.0
    trees: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def find(self, strategy: Strategy, memory_limit: int) -> None:
        model = PaperCost(self.techniques, self.rate or DEFAULT_EVENTS_PER_SECOND)
        problem = SharingProblem(self.windows, find_slicing(self.slicing), model, memory_limit=memory_limit)
        begun = perf_counter()
        trees = strategy.choose(problem)
        self.seconds = perf_counter() - begun
        self.problem = problem = problem.one_scan() if strategy.name == "tri_weave" else problem
        costs = problem.tree_costs(trees)
        self.cost = problem.once + float(costs.sum())
        self.trees = [self._tree(problem, tree, float(cost)) for tree, cost in zip(trees, costs, strict=True)]

    def _tree(self, problem: SharingProblem, tree: tuple[int, ...], cost: float) -> dict[str, Any]:
        counts = Counter(self.windows[i] for i in tree)
        distinct = sorted(counts)
        slicing = problem.slicing
        edges = EdgeSet.of({one for window in distinct for one in slicing.edges(window)})
        told: dict[str, Any] = {"queries": len(tree)}
        if self.queries is not None:
            told["names"] = [self.queries[i] for i in tree]
        rate = edges.edges_per_second
        load = WindowColumns.of(distinct, [counts[window] for window in distinct]).load([range(len(distinct))])
        return told | {
            "distinct_windows": len(distinct),
            "edges_per_second": rate,
            "edges_exact": edges.density.exact,
            "edges_error": edges.density.error / float(edges.density.value),
            "operations_per_edge": float(omega(self.techniques, load, np.array([rate]))[0]),
            "cost": cost,
        }


def sharing_of_set(one: PartialSet, slicing: str, rate: float | None, rate_from: str) -> Sharing:
    """The queries of a planned set, with the techniques that answer them."""
    queries = [planned.query for planned in one.queries]
    costed = list(zip(one.components, one.trees[0].techniques, strict=True))
    asked = [pair for pair in costed if any(pair[0].component in query.components for query in queries)]
    names = tuple(cost_name(name, part.family) for part, name in asked or costed)
    label = one.stream + (f" WHERE {one.where.sql}" if one.where is not None else "")
    if one.group_by:
        label += " GROUP BY " + ", ".join(part.sql for part in one.group_by)
    windows = tuple(query.window for query in queries)
    return Sharing(label, tuple(query.name for query in queries), windows, slicing, names, rate, rate_from)


def find_sharing(sets: list[Sharing], strategy: str, epsilon: float | None, memory_limit: int) -> list[Sharing]:
    chosen: Strategy = find_strategy(strategy) if epsilon is None else Incremental(epsilon)
    for one in sets:
        one.find(chosen, memory_limit)
    return sets


def to_json(sets: list[Sharing], options: dict[str, str]) -> dict[str, Any]:
    return {
        **options,
        "cost": sum(one.cost for one in sets),
        "unit": "operations per second",
        "queries": sum(len(one.windows) for one in sets),
        "tree_count": sum(len(one.trees) for one in sets),
        "seconds": sum(one.seconds for one in sets),
        "peak_memory_bytes": peak_memory(),
        "sets": [_set_json(one) for one in sets],
    }


def _set_json(one: Sharing) -> dict[str, Any]:
    assert one.problem is not None
    return {
        "name": one.name,
        "rate": one.rate or DEFAULT_EVENTS_PER_SECOND,
        "rate_from": one.rate_from,
        "queries": len(one.windows),
        "distinct_windows": len(one.problem.distinct[0]),
        "bundles": len(one.problem.bundles),
        "cost": one.cost,
        "once": one.problem.once,
        "seconds": one.seconds,
        "trees": one.trees,
    }


def to_text(sets: list[Sharing], options: dict[str, str]) -> str:
    console = Console(width=110, highlight=False, no_color=True)
    with console.capture() as captured:
        for one in sets:
            _show(console, one)
        told = ", ".join(f"{name} {value}" for name, value in options.items())
        console.print(f"cost {sum(one.cost for one in sets):,.6g} operations/s of event time ({told})")
        seconds, memory = sum(one.seconds for one in sets), peak_memory() / 2**20
        console.print(f"found in {seconds:,.3g} s; peak memory of the process {memory:,.0f} MiB")
    return captured.get().rstrip("\n")


def _show(console: Console, one: Sharing) -> None:
    assert one.problem is not None
    rate = f"{one.rate or DEFAULT_EVENTS_PER_SECOND:,.6g} events/s ({one.rate_from})"
    console.print(
        f"{one.name}: {len(one.windows):,} queries, {len(one.problem.distinct[0]):,} distinct windows, "
        f"{len(one.trees):,} trees, {rate}"
    )
    table = Table("tree", "queries", "windows", "edges/s", "operations/edge", "cost", box=None, pad_edge=False)
    ordered = sorted(one.trees, key=lambda tree: -tree["cost"])
    for number, tree in enumerate(ordered[:SHOWN]):
        about = "" if tree["edges_exact"] else "≈ "
        table.add_row(
            str(number),
            f"{tree['queries']:,}",
            f"{tree['distinct_windows']:,}",
            f"{about}{tree['edges_per_second']:,.4g}",
            f"{tree['operations_per_edge']:,.4g}",
            f"{tree['cost']:,.6g}",
        )
    console.print(table)
    if len(ordered) > SHOWN:
        rest = ordered[SHOWN:]
        console.print(f"… {len(rest):,} more trees, cost {sum(tree['cost'] for tree in rest):,.6g}")


def peak_memory() -> int:
    """Bytes that the process had at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
