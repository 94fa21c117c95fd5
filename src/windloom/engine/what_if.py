"""The cost of one more query: two plans, compared before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windloom.engine.views import facts_table
from windloom.explain.costs import work
from windloom.explain.rows import kept_texts, made_by
from windloom.explain.words import tree_name
from windloom.model.formatting import amount, count, share
from windloom.model.query import Query
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.plan_cost import estimate_plan
from windloom.optimizer.sharing_report import report_sharing
from windloom.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Seconds of work per second of event time: the plan without the query, the plan with it, the query alone."""

    query: str  # its text
    before: float
    after: float
    alone: float
    tree: str  # the tree that it would join or form
    partners: int  # the number of other queries in that tree
    new_set: bool  # no other query has its stream, predicate, grouping and kind of window
    added_edges_per_second: float
    exact: bool  # whether the edges were counted exactly
    complete_from: str | None = None  # on a running loom: the first window it would report; None: all windows
    keeps: tuple[str, ...] = ()  # for a row query: the tuples that are kept for it, by stream

    @property
    def added(self) -> float:
        """The marginal cost of the query."""
        return self.after - self.before

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "added": self.added}

    def __repr__(self) -> str:
        grows = f", {share(self.added / self.before)} of the plan so far" if self.before > 0 else ""
        adds = f"adds {work(self.added)} of event time{grows}"
        head = "a row query, for which tuples are kept" if self.keeps else adds
        lines = [f"WhatIf: {head}", f"  query   {self.query}"]
        lines.append(f"  plan    {work(self.before)} without it, {work(self.after)} with it")
        if self.keeps:
            lines += [f"  place   {self.place}", *(f"  keeps   {keep}" for keep in self.keeps)]
            return "\n".join(lines)
        saved = 1 - self.added / self.alone if self.alone > 0 else 0.0
        spared = f": sharing spares {share(saved)}" if saved > 0 else ""
        lines.append(f"  alone   {work(self.alone)}{spared}")
        lines.append(f"  place   {self.place}")
        rate = self.added_edges_per_second
        edges = "no edges" if rate <= 0 else amount(rate, "edge/s", "edges/s")
        lines.append(f"  slices  adds {'' if self.exact else '≈ '}{edges} to its set's")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = {
            "query": self.query,
            "adds": work(self.added),
            "plan without it": work(self.before),
            "plan with it": work(self.after),
            "alone": work(self.alone),
            "place": self.place,
            "complete from": self.complete_from,
            **({"keeps": "; ".join(self.keeps)} if self.keeps else {}),
        }
        return facts_table("What if: work per second of event time", facts)

    @property
    def summary(self) -> str:
        """The costs in one sentence; of a row query, what is kept for it, since its work is not predicted."""
        if self.keeps:
            return f"keeps tuples, by stream: {'; '.join(self.keeps)}"
        return f"adds {work(self.added)} of event time; alone it would take {work(self.alone)}"

    @property
    def place(self) -> str:
        if self.keeps:
            return self.tree
        if self.new_set:
            unlike = "no other query has its stream, predicate, grouping and kind of window"
            return f"{self.tree}, of a set of its own: {unlike}"
        if not self.partners:
            return f"{self.tree}, by itself"
        return f"{self.tree}, with {count(self.partners, 'other query', 'other queries')}"


def unused_name(names: Collection[str]) -> str:
    name = "what if"
    while name in names:
        name += "?"
    return name


def compare_plans(
    before: Plan | None,
    after: Plan,
    query: Query,
    constants: Constants,
    files: Mapping[str, frozenset[str]] | None = None,
) -> WhatIf:
    """Return what a query adds to a plan.

    `files` has, by stream, the columns that the driver can read itself, if the plans were made with them.
    """
    if query.rows is not None:
        # For rows, the prediction is how many tuples are kept for them, not how long making them takes.
        planned = next(planned_rows for planned_rows in after.rows if planned_rows.name == query.name)
        costs = [0.0 if plan is None else estimate_plan(plan, constants).total for plan in (before, after)]
        text, keeps = " ".join(query.text.split()), tuple(kept_texts(after, planned))
        alone, place = max(0.0, costs[1] - costs[0]), made_by(after, planned)
        return WhatIf(text, costs[0], costs[1], alone, place, 0, True, 0.0, True, keeps=keeps)
    report = report_sharing(after, constants, files)
    if query.join is None:
        partial_set, tree, _ = after.find(query.name)
        trees, own_names, alone = [(partial_set, tree)], {query.name}, report.queries[query.name].alone
    else:  # its trees are those of its sides
        join = next(planned_join for planned_join in after.joins if planned_join.name == query.name)
        places = dict.fromkeys(join.sides)
        trees = [(after.sets[place.set], after.side(place)[1]) for place in places]
        own_names, alone = {place.name for place in places}, report.joins[query.name].alone
    names = dict.fromkeys(tree_name(after, partial_set, tree) for partial_set, tree in trees)
    place = next(iter(names)) if query.join is None else f"{join.fold} of {' and '.join(names)}"
    sets = {partial_set.number: partial_set for partial_set, _ in trees}.values()
    earlier = {} if before is None else before.by_identity
    pairs = [(partial_set, earlier.get(partial_set.identity)) for partial_set in sets]
    return WhatIf(
        " ".join(query.text.split()),
        0.0 if before is None else estimate_plan(before, constants).total,
        estimate_plan(after, constants).total,
        alone,
        place,
        len({planned.name for _, tree in trees for planned in tree.queries} - own_names),
        all(had is None for _, had in pairs),
        sum(
            now.statistics.pace * (now.edges.edges_per_second - (0.0 if had is None else had.edges.edges_per_second))
            for now, had in pairs
        ),
        all(each.edges.density.exact for pair in pairs for each in pair if each is not None),
    )
