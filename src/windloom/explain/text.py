"""EXPLAIN as text for a terminal, at most 110 columns wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from windloom.explain.cost_views import CostView
from windloom.explain.graph_lines import graph_lines
from windloom.explain.joins import join_lines
from windloom.explain.labels import (
    answer_text,
    component_name,
    counting,
    grouping,
    property_names,
    strategy_name,
    techniques,
    tree_name,
    windows_of_a_tuple,
    windows_over,
)
from windloom.explain.lines import WIDTH, fact, one_line, shorten, wrapped
from windloom.explain.one_query import one_query_text
from windloom.explain.partners import Sharing, asked, shares_text, sharing
from windloom.explain.patterns import pattern_lines
from windloom.explain.relations import relation_lines, version_set_lines
from windloom.explain.rows import row_lines
from windloom.explain.scans import fed_text, scan_lines
from windloom.explain.slices import Measure, about, cut_text, measure_of, repeats
from windloom.explain.statistics import origin_text, statistics_texts
from windloom.model.aggregate import COUNT_STAR
from windloom.model.figures import amount, count
from windloom.plan.physical import Member, PartialSet, Plan, PlannedSide, Tree
from windloom.slicing.identify import RegularSlice

#: A tree with more queries, or a set with more trees, shows only the first few, unless all are asked for.
MANY_QUERIES = 12
_FEW_QUERIES = 6
_FEW_TREES = 12
_SHOW_ALL = "(loom.explain(queries=True) shows all)"
_NAME_WIDTH = 28
_ANSWER_WIDTH = 200


def explain_text(plan: Plan, costs: CostView, *, all_queries: bool = False, query: str | None = None) -> str:
    """The plan as text; with `query`, everything about the query of that name."""
    if query is not None:
        return one_query_text(plan, query, costs)
    lines = [*_header(plan, costs), "", *graph_lines(plan, all_queries), *scan_lines(plan, all_queries)]
    shared = sharing(plan)
    lines += relation_lines(plan)
    for partial_set in plan.sets:
        is_version = partial_set.is_relation
        own = version_set_lines(plan, partial_set) if is_version else None
        lines += ["", *(own or _set_lines(plan, partial_set, costs, shared, all_queries))]
    lines += join_lines(plan, costs, all_queries)
    lines += row_lines(plan, all_queries)
    lines += pattern_lines(plan)
    return "\n".join(lines) + "\n"


def _header(plan: Plan, costs: CostView) -> Iterator[str]:
    queries, trees = list(plan.queries), list(plan.trees)
    parts = (
        count(len(queries), "query", "queries"),
        count(len(plan.streams), "stream"),
        *([count(len(plan.relations), "relation")] if plan.relations else []),
        count(len(plan.scans), "scan"),
        count(len(plan.sets), "set") + " of partials",
        count(len(trees), "tree"),
        *([count(len(plan.rows), "row query", "row queries")] if plan.rows else []),
    )
    yield "Plan: " + ", ".join(parts)
    yield f"  strategy {strategy_name(plan)}, slicing {plan.slicing}, technique {plan.technique}"
    if plan.joins:
        yield f"  joins {plan.join_plan}, fold {plan.fold}"
    if not queries:
        return
    yield f"  {costs.plan_text()}"
    for stream in plan.streams:
        rate, origin = plan.rate_of(stream)
        windows = windows_of_a_tuple(windows_over(plan, stream))
        name = shorten(one_line(stream.name), _NAME_WIDTH)
        yield f"  rate of {name}: {amount(rate, 'event/s', 'events/s')} ({origin_text(origin)})"
        yield f"  a tuple of {name} lies in {windows}, all queries together"


def _set_lines(
    plan: Plan, partial_set: PartialSet, costs: CostView, shared: dict[str, Sharing], everything: bool
) -> Iterator[str]:
    yield shorten(f"Set {partial_set.number}: partials of {one_line(partial_set.stream)}", WIDTH)
    yield from fact("where", "every tuple" if partial_set.where is None else one_line(partial_set.where.sql))
    yield from fact("group by", grouping(partial_set))
    measure = measure_of(partial_set)
    if (counted := counting(partial_set)) is not None:
        yield from fact("counted", counted)
    yield from fact("fed by", fed_text(plan, partial_set))
    label = "partials"
    for line in _component_lines(partial_set):
        yield from fact(label, line)
        label = ""
    label = "statistics"
    for text in statistics_texts(partial_set):
        yield from fact(label, text)
        label = ""
    yield from fact("slices" if partial_set.window.is_sliced else "cells", cut_text(partial_set, partial_set.edges))
    if not isinstance(partial_set.slice_id, RegularSlice):
        yield from fact("repeat", repeats(partial_set.edges, measure))
    for name, text in costs.set_facts(partial_set):
        yield from fact(name, text)
    shown = partial_set.trees if everything or len(partial_set.trees) <= _FEW_TREES else partial_set.trees[:_FEW_TREES]
    for tree in shown:
        yield ""
        yield from _tree_lines(plan, partial_set, tree, costs, shared, everything)
    hidden = partial_set.trees[len(shown) :]
    if hidden:
        queries = count(sum(len(tree.queries) for tree in hidden), "query", "queries")
        cost = costs.trees_text(partial_set, hidden)
        yield ""
        yield f"  … and {count(len(hidden), 'more tree')} with {queries}, cost {cost} {_SHOW_ALL}"


def _component_lines(partial_set: PartialSet) -> Iterator[str]:
    """Every component once, with the number of queries that share it."""
    wanted = asked(partial_set)
    every = sum(1 for _ in partial_set.queries)
    names = [component_name(str(planned.component)) for planned in partial_set.components]
    types = [
        "" if planned.argument_type is None else f"of {planned.argument_type.name}"
        for planned in partial_set.components
    ]
    for planned, name, type_name in zip(partial_set.components, names, types, strict=True):
        queries = wanted[planned.component]
        use = f"asked by {queries:,} of {count(every, 'query', 'queries')}"
        if planned.component == COUNT_STAR:
            use = "used by all, to know which windows have a row" if queries == 0 else f"used by all, {use}"
        if planned.component in partial_set.window.components:
            use = "kept to know where windows end"
        if planned.component.own is not None:
            use += f"; defined by the user, {', '.join(property_names(planned))}"
        yield f"{name:{max(map(len, names))}}  {type_name:{max(map(len, types))}}  {use}"


def _tree_lines(
    plan: Plan, partial_set: PartialSet, tree: Tree, costs: CostView, shared: dict[str, Sharing], everything: bool
) -> Iterator[str]:
    name = tree_name(plan, partial_set, tree)
    yield f"  {name.capitalize()}: {count(len(tree.queries), 'query', 'queries')}"
    measure = measure_of(partial_set)
    if partial_set.window.is_sliced:
        yield from fact("slices", cut_text(partial_set, tree.edges), 4)
    if tree.marks.classes:
        marks = f"{about(tree.marks)}{amount(measure.rate(tree.marks), 'mark/s', 'marks/s')}"
        yield from fact("marks", f"{marks}, where a window ends inside a slice", 4)
    for label, text in costs.tree_facts(partial_set, tree):
        yield from fact(label, text, 4)
    yield from fact("technique", techniques(partial_set, tree, tree.queries), 4)
    shown = tree.queries
    if len(tree.queries) > MANY_QUERIES:
        yield from fact("windows", _span(tree.queries, measure), 4)
        shown = shown if everything else _examples(tree.queries)
    yield ""
    yield from _query_lines(shown, name, shared)
    if len(shown) < len(tree.queries):
        yield f"    … and {len(tree.queries) - len(shown):,} more {_SHOW_ALL}"


def _span(queries: Iterable[Member], measure: Measure) -> str:
    windows = {planned.query.window for planned in queries}
    ranges = [window.extent_ticks for window in windows if window.extent_ticks is not None]
    slides = [window.slide_ticks for window in windows]
    text = f"{len(windows):,} different: "
    text += f"ranges {measure.short(min(ranges))} to {measure.short(max(ranges))}, " if ranges else ""
    return text + f"slides {measure.short(min(slides))} to {measure.short(max(slides))}"


def _examples(queries: tuple[Member, ...]) -> tuple[Member, ...]:
    """The first few, one of every shape before a second of any."""
    seen: Counter[int | None] = Counter()
    ranked = []
    for planned in queries:
        shape = None if isinstance(planned, PlannedSide) else planned.shape
        ranked.append((seen[shape], planned))
        seen[shape] += 1
    return tuple(planned for _, planned in sorted(ranked, key=lambda pair: pair[0])[:_FEW_QUERIES])


def _query_lines(queries: tuple[Member, ...], tree: str, shared: dict[str, Sharing]) -> Iterator[str]:
    names = [shorten(one_line(planned.name), _NAME_WIDTH) for planned in queries]
    windows = [str(planned.query.window) for planned in queries]
    name_width, window_width = max(map(len, names)), max(map(len, windows))
    for planned, name, window in zip(queries, names, windows, strict=True):
        head = f"    {name:{name_width}}  {window:{window_width}}  "
        indent = " " * (6 + name_width)
        answer = shorten(answer_text(planned), _ANSWER_WIDTH)
        if len(head) + len(answer) <= WIDTH:
            yield head + answer
        else:
            yield head.rstrip()
            yield from wrapped(answer, indent, indent)
        yield from wrapped(shares_text(shared[planned.name], tree), indent, indent)
