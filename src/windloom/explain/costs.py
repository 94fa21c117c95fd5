"""The cost of a plan as EXPLAIN shows it: in predicted seconds, or in the operations that the papers count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from windloom.explain.words import about, rate_text
from windloom.model.figures import count, number, share
from windloom.plan.costs import PaperCosts, PlanSeconds
from windloom.plan.physical import PartialSet, Plan, PlannedJoin, Tree

Json = dict[str, Any]


#: A label and its text.
Fact = tuple[str, str]


class CostView(Protocol):
    """One way to show costs; text, JSON and picture all use it."""

    def plan_text(self) -> str:
        """The cost of the whole plan, for its head."""

    def set_facts(self, partial_set: PartialSet) -> Iterator[Fact]:
        """The costs of a set besides its trees."""

    def tree_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]: ...

    def trees_text(self, partial_set: PartialSet, trees: Iterable[Tree]) -> str:
        """The cost of some trees of a set, as one figure."""

    def card_texts(self, partial_set: PartialSet, tree: Tree) -> tuple[str, str]:
        """Two short lines for a tree in the picture."""

    def set_text(self, partial_set: PartialSet) -> str:
        """A few words for a set in the picture."""

    def query_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        """The costs in which a query of a tree has a part."""

    def join_facts(self, planned: PlannedJoin) -> Iterator[Fact]:
        """The cost of folding a join, besides that of its sides."""

    def plan_json(self) -> Json: ...

    def join_json(self, planned: PlannedJoin) -> Json | None: ...

    def set_json(self, partial_set: PartialSet) -> Json: ...

    def tree_json(self, partial_set: PartialSet, tree: Tree) -> Json: ...


class SecondsView:
    """Seconds of work per second of event time, predicted with calibrated constants."""

    def __init__(self, plan: Plan, seconds: PlanSeconds) -> None:
        self._plan, self._seconds = plan, seconds

    def plan_text(self) -> str:
        found = self._seconds
        approx = "" if all(tree.edges.density.exact for tree in self._plan.trees) else "≈ "
        return f"cost {approx}{work(found.total)} of event time (predicted; constants: {found.source})"

    def set_facts(self, partial_set: PartialSet) -> Iterator[Fact]:
        costs = self._seconds.sets[partial_set.number]
        parts = f"{work(costs.scan)} to scan, {work(costs.partials)} to bring partials over, "
        yield "cost", f"{work(costs.shared)} = {parts}{work(costs.merge)} to put them in order"

    def tree_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        yield "cost", self._tree_text(partial_set, tree)

    def _tree_text(self, partial_set: PartialSet, tree: Tree) -> str:
        costs = self._seconds.sets[partial_set.number].trees[tree.number]
        parts = f"{work(costs.own)} for its slices, {work(sum(costs.techniques))} to combine, "
        return f"{about(tree.edges)}{work(costs.total)} = {parts}{work(costs.answers)} to answer"

    def trees_text(self, partial_set: PartialSet, trees: Iterable[Tree]) -> str:
        chosen = list(trees)
        costs = self._seconds.sets[partial_set.number].trees
        approx = "" if all(tree.edges.density.exact for tree in chosen) else "≈ "
        return approx + work(sum(costs[tree.number].total for tree in chosen))

    def card_texts(self, partial_set: PartialSet, tree: Tree) -> tuple[str, str]:
        part = self._seconds.sets[partial_set.number].trees[tree.number].total / self._seconds.total
        return f"cost {self.trees_text(partial_set, [tree])}", f"{share(part)} of the plan"

    def set_text(self, partial_set: PartialSet) -> str:
        return f"cost {work(self._seconds.sets[partial_set.number].shared)}"

    def query_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        shared = work(self._seconds.sets[partial_set.number].shared)
        queries = count(sum(1 for _ in partial_set.queries), "query", "queries")
        yield "its set", f"{shared} for the partials of {queries}"
        yield "its tree", self._tree_text(partial_set, tree)
        if len(tree.queries) > 1:
            total = self._seconds.sets[partial_set.number].trees[tree.number].total
            each = f"{about(tree.edges)}{work(total / len(tree.queries))} for each of its {len(tree.queries):,} queries"
            yield "", f"{each}, if split evenly"

    def join_facts(self, planned: PlannedJoin) -> Iterator[Fact]:
        took = self._seconds.folds[planned.name]
        part = f"{share(took / self._seconds.total)} of the plan" if self._seconds.total else "nothing else"
        yield "cost", f"{work(took)} to fold, {part}; its sides are part of their sets and trees"

    def join_json(self, planned: PlannedJoin) -> Json | None:
        return {"fold": self._seconds.folds[planned.name]}

    def plan_json(self) -> Json:
        found = self._seconds
        return {
            "unit": "seconds of work per second of event time",
            "constants": found.source,
            "total": found.total,
            "job": found.job,
            "exact": all(tree.edges.density.exact for tree in self._plan.trees),
        }

    def set_json(self, partial_set: PartialSet) -> Json:
        costs = self._seconds.sets[partial_set.number]
        return {"total": costs.total, "scan": costs.scan, "partials": costs.partials, "merge": costs.merge}

    def tree_json(self, partial_set: PartialSet, tree: Tree) -> Json:
        costs = self._seconds.sets[partial_set.number].trees[tree.number]
        return {
            "total": costs.total,
            "own": costs.own,
            "combine": sum(costs.techniques),
            "answers": costs.answers,
            "exact": tree.edges.density.exact,
        }


class PaperView:
    """Operations per second of event time: every tree reads its stream, and combines at its edges."""

    def __init__(self, plan: Plan, costs: PaperCosts) -> None:
        self._plan, self._costs = plan, costs

    def plan_text(self) -> str:
        found = self._costs
        approx = "" if all(tree.edges.density.exact for tree in self._plan.trees) else "≈ "
        parts = f"{number(found.reading)} to read tuples, {approx}{number(found.combining)} to combine slices"
        return f"cost {approx}{number(found.total)} operations/s of event time: {parts}"

    def set_facts(self, partial_set: PartialSet) -> Iterator[Fact]:
        reading = len(partial_set.trees) * partial_set.statistics.stream_rate
        yield "cost", f"{number(reading)} operations/s to read tuples, once for every tree"

    def tree_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        if len(tree.queries) > 1 and partial_set.window.is_sliced:
            common = share(self._costs.trees[partial_set.number, tree.number].weaveability)
            yield "weaveability", f"{about(tree.edges)}{common} of its queries' edges are common"
        yield "cost", self._tree_text(partial_set, tree)

    def _tree_text(self, partial_set: PartialSet, tree: Tree) -> str:
        """Cost = E·Ω (Weave Share, Eq. 1)."""
        found = self._costs.trees[partial_set.number, tree.number]
        rate = rate_text(partial_set, tree.edges)
        return (
            f"{self.trees_text(partial_set, [tree])} = {rate} × {number(found.operations_per_edge)} operations per edge"
        )

    def trees_text(self, partial_set: PartialSet, trees: Iterable[Tree]) -> str:
        chosen = list(trees)
        approx = "" if all(tree.edges.density.exact for tree in chosen) else "≈ "
        cost = sum(self._costs.trees[partial_set.number, tree.number].cost for tree in chosen)
        return f"{approx}{number(cost)} operations/s"

    def card_texts(self, partial_set: PartialSet, tree: Tree) -> tuple[str, str]:
        common = share(self._costs.trees[partial_set.number, tree.number].weaveability)
        woven = "alone" if len(tree.queries) == 1 else f"weaveability {about(tree.edges)}{common}"
        return f"cost {self.trees_text(partial_set, [tree])}", woven

    def set_text(self, partial_set: PartialSet) -> str:
        return ""

    def query_facts(self, partial_set: PartialSet, tree: Tree) -> Iterator[Fact]:
        yield "reading", f"{number(partial_set.statistics.stream_rate)} events/s, once for the tree"
        yield "its tree", self._tree_text(partial_set, tree)
        if len(tree.queries) > 1:
            cost = self._costs.trees[partial_set.number, tree.number].cost / len(tree.queries)
            each = f"{about(tree.edges)}{number(cost)} operations/s for each of its {len(tree.queries):,} queries"
            yield "", f"{each}, if split evenly"

    def join_facts(self, planned: PlannedJoin) -> Iterator[Fact]:
        return iter(())  # the papers give costs for trees, but not for folds

    def join_json(self, planned: PlannedJoin) -> Json | None:
        return None

    def plan_json(self) -> Json:
        found = self._costs
        return {
            "unit": "operations per second of event time",
            "total": found.total,
            "read": found.reading,
            "combine": found.combining,
            "exact": all(tree.edges.density.exact for tree in self._plan.trees),
        }

    def set_json(self, partial_set: PartialSet) -> Json:
        reading = len(partial_set.trees) * partial_set.statistics.stream_rate
        combining = sum(self._costs.trees[partial_set.number, tree.number].cost for tree in partial_set.trees)
        return {"total": reading + combining, "read": reading}

    def tree_json(self, partial_set: PartialSet, tree: Tree) -> Json:
        found = self._costs.trees[partial_set.number, tree.number]
        return {
            "total": found.cost,
            "edges_per_second": found.edges_per_second,
            "operations_per_edge": found.operations_per_edge,
            "weaveability": found.weaveability,
            "exact": tree.edges.density.exact,
        }


def work(seconds: float) -> str:
    """Seconds of work per second of event time.

    >>> work(0.25), work(0.00312), work(4.2e-5), work(3e-9), work(0.0), work(-0.002)
    ('250 ms/s', '3.12 ms/s', '42 µs/s', '0.003 µs/s', '0 µs/s', '-2 ms/s')
    """
    if abs(seconds) >= 1:
        return f"{number(seconds)} s/s"
    if abs(seconds) >= 1e-3:
        return f"{number(seconds * 1e3)} ms/s"
    return f"{number(seconds * 1e6)} µs/s"
