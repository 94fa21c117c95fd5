"""EXPLAIN as text for a terminal, at most 110 columns wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from windloom.explain.cost_views import CostView
from windloom.explain.graph_lines import graph_lines
from windloom.explain.one_query import one_query_text
from windloom.explain.reasons import Sharing, asked, counting, grouping, sharing, tree_name, windows_over
from windloom.explain.scans import fed_text, scan_lines
from windloom.explain.sentences import (
    WIDTH,
    answer_text,
    component_name,
    fact,
    property_names,
    shares_text,
    strategy_name,
    techniques,
    wrapped,
)
from windloom.explain.slices import Measure, about, cut_text, measure_of, repeats
from windloom.explain.words import (
    count,
    number,
    one_line,
    shorten,
    windows_of_a_tuple,
)
from windloom.model.aggregate import COUNT_STAR
from windloom.plan.physical import PartialSet, Plan, PlannedQuery, Tree
from windloom.slicing.identify import RegularSlice

#: A tree with more queries shows the first few only, and a set with more trees these many, unless all are asked for.
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
    for one in plan.sets:
        lines += ["", *_set_lines(plan, one, costs, shared, all_queries)]
    return "\n".join(lines) + "\n"


def _header(plan: Plan, costs: CostView) -> Iterator[str]:
    queries, trees = list(plan.queries), list(plan.trees)
    parts = (
        count(len(queries), "query", "queries"),
        count(len(plan.streams), "stream"),
        count(len(plan.scans), "scan"),
        count(len(plan.sets), "set") + " of partials",
        count(len(trees), "tree"),
    )
    yield "Plan: " + ", ".join(parts)
    yield f"  strategy {strategy_name(plan)}, slicing {plan.slicing}, technique {plan.technique}"
    if not queries:
        return
    yield f"  {costs.plan_text()}"
    for stream in plan.streams:
        rate, source = plan.rate_of(stream)
        windows = windows_of_a_tuple(windows_over(plan, stream))
        name = shorten(one_line(stream.name), _NAME_WIDTH)
        yield f"  rate of {name}: {number(rate)} events/s ({source})"
        yield f"  a tuple of {name} lies in {windows}, all queries together"


def _set_lines(
    plan: Plan, one: PartialSet, costs: CostView, shared: dict[str, Sharing], everything: bool
) -> Iterator[str]:
    yield shorten(f"Set {one.number}: partials of {one_line(one.stream)}", WIDTH)
    yield from fact("where", "every tuple" if one.where is None else one_line(one.where.sql))
    yield from fact("group by", grouping(one))
    measure = measure_of(one)
    if (counted := counting(one)) is not None:
        yield from fact("counted", counted)
    yield from fact("fed by", fed_text(plan, one))
    label = "partials"
    for line in _component_lines(one):
        yield from fact(label, line)
        label = ""
    yield from fact("slices" if one.window.is_sliced else "cells", cut_text(one, one.edges))
    if not isinstance(one.slice_id, RegularSlice):
        yield from fact("repeat", repeats(one.edges, measure))
    for name, text in costs.set_facts(one):
        yield from fact(name, text)
    shown = one.trees if everything or len(one.trees) <= _FEW_TREES else one.trees[:_FEW_TREES]
    for tree in shown:
        yield ""
        yield from _tree_lines(plan, one, tree, costs, shared, everything)
    hidden = one.trees[len(shown) :]
    if hidden:
        queries = count(sum(len(tree.queries) for tree in hidden), "query", "queries")
        cost = costs.trees_text(one, hidden)
        yield ""
        yield f"  … and {count(len(hidden), 'more tree')} with {queries}, cost {cost} {_SHOW_ALL}"


def _component_lines(one: PartialSet) -> Iterator[str]:
    """Every component once, with how many queries share it."""
    wanted = asked(one)
    every = sum(1 for _ in one.queries)
    names = [component_name(str(part.component)) for part in one.components]
    types = ["" if part.argument_type is None else f"of {part.argument_type.name}" for part in one.components]
    for part, name, type_name in zip(one.components, names, types, strict=True):
        queries = wanted[part.component]
        use = f"asked by {queries:,} of {count(every, 'query', 'queries')}"
        if part.component == COUNT_STAR:
            use = "used by all, to know which windows have a row" if queries == 0 else f"used by all, {use}"
        if part.component in one.window.components:
            use = "kept to know where windows end"
        if part.component.own is not None:
            use += f"; defined by the user, {', '.join(property_names(part))}"
        yield f"{name:{max(map(len, names))}}  {type_name:{max(map(len, types))}}  {use}"


def _tree_lines(
    plan: Plan, one: PartialSet, tree: Tree, costs: CostView, shared: dict[str, Sharing], everything: bool
) -> Iterator[str]:
    name = tree_name(plan, one, tree)
    yield f"  {name.capitalize()}: {count(len(tree.queries), 'query', 'queries')}"
    measure = measure_of(one)
    if one.window.is_sliced:
        yield from fact("slices", cut_text(one, tree.edges), 4)
    if tree.marks.classes:
        marks = f"{about(tree.marks)}{number(measure.rate(tree.marks))} marks/s"
        yield from fact("marks", f"{marks}, where a window ends inside a slice", 4)
    for label, text in costs.tree_facts(one, tree):
        yield from fact(label, text, 4)
    yield from fact("technique", techniques(one, tree, tree.queries), 4)
    shown = tree.queries
    if len(tree.queries) > MANY_QUERIES:
        yield from fact("windows", _span(tree.queries, measure), 4)
        shown = shown if everything else _examples(tree.queries)
    yield ""
    yield from _query_lines(shown, name, shared)
    if len(shown) < len(tree.queries):
        yield f"    … and {len(tree.queries) - len(shown):,} more {_SHOW_ALL}"


def _span(queries: Iterable[PlannedQuery], measure: Measure) -> str:
    windows = {planned.query.window for planned in queries}
    ranges = [window.extent_ticks for window in windows if window.extent_ticks is not None]
    slides = [window.slide_ticks for window in windows]
    text = f"{len(windows):,} different: "
    text += f"ranges {measure.short(min(ranges))} to {measure.short(max(ranges))}, " if ranges else ""
    return text + f"slides {measure.short(min(slides))} to {measure.short(max(slides))}"


def _examples(queries: tuple[PlannedQuery, ...]) -> tuple[PlannedQuery, ...]:
    """The first few, one of every shape before a second of any."""
    seen: Counter[int] = Counter()
    ranked = []
    for planned in queries:
        ranked.append((seen[planned.shape], planned))
        seen[planned.shape] += 1
    return tuple(planned for _, planned in sorted(ranked, key=lambda one: one[0])[:_FEW_QUERIES])


def _query_lines(queries: tuple[PlannedQuery, ...], tree: str, shared: dict[str, Sharing]) -> Iterator[str]:
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
