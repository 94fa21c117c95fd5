"""The cost of a plan as EXPLAIN shows it: in predicted seconds, or in the operations that the papers count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from windloom.explain.node import Fact, words_only
from windloom.explain.words import about, rate_text
from windloom.model.formatting import count, number, share
from windloom.plan.costs import PaperCosts, PlanSeconds, TreeSeconds
from windloom.plan.plan import PartialSet, Plan, PlannedJoin, Tree


class SecondsView:
    """Shows costs as seconds of work per second of event time, predicted with calibrated constants.

    The text of `set_fact` leaves out the trees of the set, and that of `join_fact` the sides of the join; `query_facts`
    has the costs in which a query of a tree has a part.
    """

    def __init__(self, plan: Plan, seconds: PlanSeconds) -> None:
        self._plan, self._seconds = plan, seconds

    def _of(self, partial_set: PartialSet, tree: Tree) -> TreeSeconds:
        return self._seconds.sets[partial_set.number].trees[tree.number]

    def plan_fact(self) -> Fact:
        costs = self._seconds
        value = {
            "unit": "seconds of work per second of event time",
            "constants": costs.source,
            "total": costs.total,
            "job": costs.job,
            "exact": not _about_all(self._plan.trees),
        }
        total = f"{_about_all(self._plan.trees)}{work(costs.total)}"
        return Fact("cost", value, f"cost {total} of event time (predicted; constants: {costs.source})")

    def set_fact(self, partial_set: PartialSet) -> Fact:
        costs = self._seconds.sets[partial_set.number]
        value = {"total": costs.total, "scan": costs.scan, "partials": costs.partials, "merge": costs.merge}
        parts = f"{work(costs.scan)} to scan, {work(costs.partials)} to bring partials over, "
        return Fact("cost", value, f"{work(costs.shared)} = {parts}{work(costs.merge)} to put them in order")

    def tree_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        costs = self._of(partial_set, tree)
        combining, exact = sum(costs.techniques), tree.edges.density.exact
        value = {"total": costs.total, "own": costs.own, "combine": combining, "answers": costs.answers, "exact": exact}
        parts = f"{work(costs.own)} for its slices, {work(combining)} to combine, {work(costs.answers)} to answer"
        yield Fact("cost", value, f"{about(tree.edges)}{work(costs.total)} = {parts}")

    def query_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        queries = count(sum(1 for _ in partial_set.queries), "query", "queries")
        shared = work(self._seconds.sets[partial_set.number].shared)
        yield words_only("its set", f"{shared} for the partials of {queries}")
        (cost,) = self.tree_facts(partial_set, tree)
        yield from _split(tree, cost, work)

    def join_fact(self, planned: PlannedJoin) -> Fact:
        took, total = self._seconds.folds[planned.name], self._seconds.total
        part = f"{share(took / total)} of the plan" if total else "nothing else"
        text = f"{work(took)} to fold, {part}; its sides are part of their sets and trees"
        return Fact("cost", {"fold": took}, text)

    def trees_text(self, partial_set: PartialSet, trees: Iterable[Tree]) -> str:
        chosen = list(trees)
        return _about_all(chosen) + work(sum(self._of(partial_set, tree).total for tree in chosen))

    def card_text(self, partial_set: PartialSet, tree: Tree) -> str:
        return f"{share(self._of(partial_set, tree).total / self._seconds.total)} of the plan"


class PaperView:
    """Shows costs as operations per second of event time: every tree reads its stream, and combines at its edges."""

    def __init__(self, plan: Plan, costs: PaperCosts) -> None:
        self._plan, self._costs = plan, costs

    def plan_fact(self) -> Fact:
        costs, approx = self._costs, _about_all(self._plan.trees)
        value = {
            "unit": "operations per second of event time",
            "total": costs.total,
            "read": costs.reading,
            "combine": costs.combining,
            "exact": not _about_all(self._plan.trees),
        }
        parts = f"{number(costs.reading)} to read tuples, {approx}{number(costs.combining)} to combine slices"
        total = f"{approx}{number(costs.total)} operations/s of event time"
        return Fact("cost", value, f"cost {total} (the papers' count: a reading per tree): {parts}")

    def set_fact(self, partial_set: PartialSet) -> Fact:
        reading = len(partial_set.trees) * partial_set.statistics.stream_rate
        combining = sum(self._costs.trees[partial_set.number, tree.number].cost for tree in partial_set.trees)
        text = f"{number(reading)} operations/s to read tuples, once for every tree"
        return Fact("cost", {"total": reading + combining, "read": reading}, text)

    def tree_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        costs = self._costs.trees[partial_set.number, tree.number]
        if len(tree.queries) > 1 and partial_set.window.is_sliced:
            yield words_only("weaveability", common_text(tree, costs.weaveability))
        value = {
            "total": costs.cost,
            "edges_per_second": costs.edges_per_second,
            "operations_per_edge": costs.operations_per_edge,
            "weaveability": costs.weaveability,
            "exact": tree.edges.density.exact,
        }
        # Cost = E·Ω (Weave Share, Eq. 1).
        factors = f"{rate_text(partial_set, tree.edges)} × {number(costs.operations_per_edge)} operations per edge"
        yield Fact("cost", value, f"{self.trees_text(partial_set, [tree])} = {factors}")

    def query_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        yield words_only("reading", f"{number(partial_set.statistics.stream_rate)} events/s, once for the tree")
        *_, cost = self.tree_facts(partial_set, tree)
        yield from _split(tree, cost, lambda each: f"{number(each)} operations/s")

    def join_fact(self, planned: PlannedJoin) -> Fact:
        return Fact("cost")  # the papers give costs for trees, but not for folds

    def trees_text(self, partial_set: PartialSet, trees: Iterable[Tree]) -> str:
        chosen = list(trees)
        cost = sum(self._costs.trees[partial_set.number, tree.number].cost for tree in chosen)
        return f"{_about_all(chosen)}{number(cost)} operations/s"

    def card_text(self, partial_set: PartialSet, tree: Tree) -> str:
        common = share(self._costs.trees[partial_set.number, tree.number].weaveability)
        return "alone" if len(tree.queries) == 1 else f"weaveability {about(tree.edges)}{common}"


#: One way to show costs; text, JSON and picture all use it.
CostView: TypeAlias = SecondsView | PaperView


def common_text(tree: Tree, weaveability: float) -> str:
    return f"{about(tree.edges)}{share(weaveability)} of its queries' edges are common"


def _split(tree: Tree, cost: Fact, shown: Callable[[float], str]) -> Iterator[Fact]:
    """Yield the cost of a tree, and what each of its queries would have of it."""
    yield words_only("its tree", *cost.lines)
    if (members := len(tree.queries)) > 1:
        each = f"{about(tree.edges)}{shown(cost.value['total'] / members)}"
        yield words_only("", f"{each} for each of its {members:,} queries, if split evenly")


def _about_all(trees: Iterable[Tree]) -> str:
    """Return `≈ ` before a figure for trees of which one has an estimated density, nothing otherwise."""
    return max((about(tree.edges) for tree in trees), default="")


def work(seconds: float) -> str:
    """Return seconds of work per second of event time in a fitting unit.

    >>> work(0.25), work(0.00312), work(4.2e-5), work(3e-9), work(0.0), work(-0.002)
    ('250 ms/s', '3.12 ms/s', '42 µs/s', '0.003 µs/s', '0 µs/s', '-2 ms/s')
    """
    if abs(seconds) >= 1:
        return f"{number(seconds)} s/s"
    if abs(seconds) >= 1e-3:
        return f"{number(seconds * 1e3)} ms/s"
    return f"{number(seconds * 1e6)} µs/s"
