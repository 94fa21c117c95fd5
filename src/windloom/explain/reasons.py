"""With whom a query shares what, and why it does not share more: the facts that every explanation words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from windloom.explain.words import one_line, share
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.model.windows import Window
from windloom.plan.identity import Difference
from windloom.plan.physical import PartialSet, Plan, PlannedQuery, Tree
from windloom.slicing.edges import EdgeSet, weaveability
from windloom.slicing.registry import find_slicing


@dataclass(frozen=True, slots=True)
class SharedComponent:
    """A component of one query, and how many other queries use it."""

    component: Component
    in_tree: int
    in_set: int


@dataclass(frozen=True, slots=True)
class Sharing:
    """What one query shares: slices with its tree, partials with its set."""

    in_tree: int  # other queries of the tree: they share slices
    in_set: int  # other queries of the set: they share the scan and the partials
    same_window: int  # other queries of the tree with the very same window
    components: tuple[SharedComponent, ...]  # COUNT(*) is used by every query, and stands last


@dataclass(frozen=True, slots=True)
class Apart:
    """Queries that share nothing (another set), or no slices (another tree), with a query, and why."""

    place: str
    queries: int
    reason: str


def used_components(query: Query) -> tuple[Component, ...]:
    """What a query reads: what its aggregates need, and COUNT(*), which tells which windows have a row."""
    return (*(one for one in query.components if one != COUNT_STAR), COUNT_STAR)


def asked(one: PartialSet) -> Counter[Component]:
    """How many queries of a set ask for each component by themselves."""
    return Counter(part for planned in one.queries for part in planned.query.components)


def sharing(plan: Plan) -> dict[str, Sharing]:
    """What every query shares, by name."""
    found: dict[str, Sharing] = {}
    for one in plan.sets:
        of_set = _used(one.queries)
        for tree in one.trees:
            of_tree = _used(tree.queries)
            windows = Counter(planned.query.window for planned in tree.queries)
            for planned in tree.queries:
                found[planned.name] = Sharing(
                    len(tree.queries) - 1,
                    of_set[COUNT_STAR] - 1,
                    windows[planned.query.window] - 1,
                    tuple(
                        SharedComponent(part, of_tree[part] - 1, of_set[part] - 1)
                        for part in used_components(planned.query)
                    ),
                )
    return found


def _used(queries: Iterable[PlannedQuery]) -> Counter[Component]:
    return Counter(part for planned in queries for part in used_components(planned.query))


def windows_over(plan: Plan, stream: Stream) -> list[Window]:
    """The windows of all queries through which a stream is read."""
    return [window for planned in plan.queries for window in planned.query.source.windows_over(stream.name)]


def tree_name(plan: Plan, one: PartialSet, tree: Tree) -> str:
    """Trees are numbered within their set, so the set's number goes before when there are several."""
    return f"tree {tree.number}" if len(plan.sets) == 1 else f"tree {one.number}.{tree.number}"


def apart(plan: Plan, one: PartialSet, tree: Tree) -> Iterator[Apart]:
    """Everything that the queries of a tree do not share slices with, nearest first."""
    for other in one.trees:
        if other.number != tree.number:
            yield Apart(tree_name(plan, one, other), len(other.queries), _why_other_tree(one.strategy, tree, other))
    for far in plan.sets:
        if far.number != one.number:
            yield Apart(f"set {far.number}", sum(1 for _ in far.queries), _why_other_set(plan, one, far))


def _why_other_tree(strategy: str, tree: Tree, other: Tree) -> str:
    if strategy == "no_share":
        return "strategy no_share puts every query alone"
    common = weaveability(tree.edges, other.edges)
    return f"{share(common)} of the edges are common, and {strategy} found one tree for both no cheaper"


def _why_other_set(plan: Plan, one: PartialSet, other: PartialSet) -> str:
    differences = one.identity.differences(other.identity)
    if Difference.STREAM in differences:
        return f"another stream: {one_line(other.stream)}"
    kind = str(other.window) if other.window.set_identity else "of time"
    said = {
        Difference.PREDICATE: f"another predicate: {predicate_text(other)}",
        Difference.GROUPING: f"another grouping: {grouping(other)}",
        Difference.WINDOWS: f"other windows: {counting(other) or kind}",
    }
    reasons = [said[difference] for difference in differences]
    both = {one.number, other.number}
    fed = [scan.number for scan in plan.scans if both <= {fed.number for fed in scan.feeds}]
    reasons += [f"though both are fed by scan {number}" for number in fed]
    return ", ".join(reasons)


def predicate_text(one: PartialSet) -> str:
    return "every tuple" if one.where is None else one_line(one.where.sql)


def grouping(one: PartialSet) -> str:
    return ", ".join(one_line(part.sql) for part in one.group_by) or "none"


def counting(one: PartialSet) -> str | None:
    """How the tuples of a set of windows of rows are counted; None where slices are of time."""
    if one.counted_by is None:
        return None
    keys = ", ".join(one_line(part.sql) for part in one.counted_by)
    return f"tuples of each {keys} in order of time" if keys else "all tuples in order of time"


def own_edges(plan: Plan, query: Query) -> EdgeSet:
    """The edges and marks a query would need alone."""
    slicing = find_slicing(plan.slicing)
    return EdgeSet.of((*slicing.edges(query.window), *slicing.marks(query.window)))


def edges_without(plan: Plan, tree: Tree, query: Query) -> EdgeSet:
    """The edges and marks that a tree would need without one of its queries."""
    slicing = find_slicing(plan.slicing)
    windows = {planned.query.window for planned in tree.queries if planned.name != query.name}
    return EdgeSet.of(part for window in windows for part in (*slicing.edges(window), *slicing.marks(window)))


def output_text(query: Query) -> str:
    """The answer's columns behind the window, as the user would write them: `symbol, avg(price) AS p`."""
    parts = [_named(grouping.expression.sql, grouping.name) for grouping in query.group_by]
    for output in query.outputs:
        if output.aggregate is not None:
            parts.append(_named(str(query.aggregates[output.aggregate]), output.name))
        elif output.expression is not None:
            parts.append(_named(spelled_out(query, output.expression.sql), output.name))
    return one_line(", ".join(parts))


def _named(sql: str, name: str) -> str:
    return sql if sql == name else f"{sql} AS {name}"


def spelled_out(query: Query, sql: str) -> str:
    """SQL over a query's aggregates and groupings, with those written in place of `__a0`, `__g0`, …"""

    def spell(match: re.Match[str]) -> str:
        index = int(match.group(2))
        if match.group(1) == "a":
            return str(query.aggregates[index])
        return query.group_by[index].expression.sql

    return re.sub(r"\b__([ag])(\d+)\b", spell, sql)
