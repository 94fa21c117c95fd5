"""The cost of a plan as EXPLAIN shows it: in predicted seconds, or in the operations that the papers count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from windloom.explain.node import Fact, words_only
from windloom.explain.words import about, rate_text
from windloom.model.formatting import count, number, share
from windloom.plan.costs import PaperCosts, PlanSeconds, SetSeconds, TreeSeconds
from windloom.plan.plan import PartialSet, Plan, PlannedJoin, Tree


class CostView(Protocol):
    """One way to show costs; text, JSON and picture all use it."""

    def plan_fact(self) -> Fact:
        """Return the cost of the whole plan."""

    def set_fact(self, partial_set: PartialSet) -> Fact:
        """Return the costs of a set; its text leaves out those of the trees."""

    def tree_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]: ...

    def query_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        """Yield the costs in which a query of a tree has a part."""

    def join_fact(self, planned: PlannedJoin) -> Fact:
        """Return the cost of folding a join, besides that of its sides."""

    def trees_text(self, partial_set: PartialSet, trees: Iterable[Tree]) -> str:
        """Return the cost of some trees of a set, as one figure."""

    def card_texts(self, partial_set: PartialSet, tree: Tree) -> tuple[str, str]:
        """Return two short lines for a tree in the picture."""

    def set_text(self, partial_set: PartialSet) -> str:
        """Return a few words for a set in the picture."""


class SecondsView:
    """Seconds of work per second of event time, predicted with calibrated constants."""

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
            "exact": _are_exact(self._plan.trees),
        }
        total = f"{_about_all(self._plan.trees)}{work(costs.total)}"
        return Fact("cost", value, f"cost {total} of event time (predicted; constants: {costs.source})")

    def set_fact(self, partial_set: PartialSet) -> Fact:
        costs: SetSeconds = self._seconds.sets[partial_set.number]
        value = {"total": costs.total, "scan": costs.scan, "partials": costs.partials, "merge": costs.merge}
        parts = f"{work(costs.scan)} to scan, {work(costs.partials)} to bring partials over, "
        return Fact("cost", value, f"{work(costs.shared)} = {parts}{work(costs.merge)} to put them in order")

    def tree_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        costs = self._of(partial_set, tree)
        combining = sum(costs.techniques)
        value = {
            "total": costs.total,
            "own": costs.own,
            "combine": combining,
            "answers": costs.answers,
            "exact": tree.edges.density.exact,
        }
        parts = f"{work(costs.own)} for its slices, {work(combining)} to combine, {work(costs.answers)} to answer"
        yield Fact("cost", value, f"{about(tree.edges)}{work(costs.total)} = {parts}")

    def query_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        queries = count(sum(1 for _ in partial_set.queries), "query", "queries")
        shared = work(self._seconds.sets[partial_set.number].shared)
        yield words_only("its set", f"{shared} for the partials of {queries}")
        for fact in self.tree_facts(partial_set, tree):
            yield words_only("its tree", *fact.lines)
        if (members := len(tree.queries)) > 1:
            each = f"{about(tree.edges)}{work(self._of(partial_set, tree).total / members)}"
            yield words_only("", f"{each} for each of its {members:,} queries, if split evenly")

    def join_fact(self, planned: PlannedJoin) -> Fact:
        took, total = self._seconds.folds[planned.name], self._seconds.total
        part = f"{share(took / total)} of the plan" if total else "nothing else"
        text = f"{work(took)} to fold, {part}; its sides are part of their sets and trees"
        return Fact("cost", {"fold": took}, text)

    def trees_text(self, partial_set: PartialSet, trees: Iterable[Tree]) -> str:
        chosen = list(trees)
        return _about_all(chosen) + work(sum(self._of(partial_set, tree).total for tree in chosen))

    def card_texts(self, partial_set: PartialSet, tree: Tree) -> tuple[str, str]:
        part = self._of(partial_set, tree).total / self._seconds.total
        return f"cost {self.trees_text(partial_set, [tree])}", f"{share(part)} of the plan"

    def set_text(self, partial_set: PartialSet) -> str:
        return f"cost {work(self._seconds.sets[partial_set.number].shared)}"


class PaperView:
    """Operations per second of event time: every tree reads its stream, and combines at its edges."""

    def __init__(self, plan: Plan, costs: PaperCosts) -> None:
        self._plan, self._costs = plan, costs

    def plan_fact(self) -> Fact:
        costs, approx = self._costs, _about_all(self._plan.trees)
        value = {
            "unit": "operations per second of event time",
            "total": costs.total,
            "read": costs.reading,
            "combine": costs.combining,
            "exact": _are_exact(self._plan.trees),
        }
        parts = f"{number(costs.reading)} to read tuples, {approx}{number(costs.combining)} to combine slices"
        return Fact("cost", value, f"cost {approx}{number(costs.total)} operations/s of event time: {parts}")

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
        yield words_only("its tree", *cost.lines)
        if (members := len(tree.queries)) > 1:
            each = f"{about(tree.edges)}{number(cost.value['total'] / members)} operations/s"
            yield words_only("", f"{each} for each of its {members:,} queries, if split evenly")

    def join_fact(self, planned: PlannedJoin) -> Fact:
        return Fact("cost")  # the papers give costs for trees, but not for folds

    def trees_text(self, partial_set: PartialSet, trees: Iterable[Tree]) -> str:
        chosen = list(trees)
        cost = sum(self._costs.trees[partial_set.number, tree.number].cost for tree in chosen)
        return f"{_about_all(chosen)}{number(cost)} operations/s"

    def card_texts(self, partial_set: PartialSet, tree: Tree) -> tuple[str, str]:
        common = share(self._costs.trees[partial_set.number, tree.number].weaveability)
        woven = "alone" if len(tree.queries) == 1 else f"weaveability {about(tree.edges)}{common}"
        return f"cost {self.trees_text(partial_set, [tree])}", woven

    def set_text(self, partial_set: PartialSet) -> str:
        return ""


def common_text(tree: Tree, weaveability: float) -> str:
    return f"{about(tree.edges)}{share(weaveability)} of its queries' edges are common"


def _are_exact(trees: Iterable[Tree]) -> bool:
    return all(tree.edges.density.exact for tree in trees)


def _about_all(trees: Iterable[Tree]) -> str:
    return "" if _are_exact(trees) else "≈ "


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
