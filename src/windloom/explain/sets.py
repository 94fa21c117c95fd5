"""EXPLAIN of sets of partials, their trees and the queries of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from windloom.explain.costs import CostView, Json
from windloom.explain.scans import fed_text
from windloom.explain.sharing import Sharing, asked, shares_text
from windloom.explain.words import (
    NAME_WIDTH,
    SHOW_ALL,
    WIDTH,
    Measure,
    about,
    answer_text,
    component_name,
    counting,
    cut_text,
    fact,
    grouping,
    having_sql,
    mean_slice_ticks,
    measure_of,
    one_line,
    output_text,
    period,
    property_names,
    repeats,
    shorten,
    slice_id_text,
    statistics_json,
    statistics_texts,
    techniques,
    tree_name,
    wrapped,
)
from windloom.model.aggregate import COUNT_STAR
from windloom.model.figures import amount, count
from windloom.plan.physical import Member, PartialSet, Plan, PlannedSide, Tree
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.identify import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId

#: A tree with more queries, or a set with more trees, shows only the first few, unless all are asked for.
MANY_QUERIES = 12


_FEW_QUERIES = 6


_FEW_TREES = 12


_ANSWER_WIDTH = 200


def set_lines(
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
        yield f"  … and {count(len(hidden), 'more tree')} with {queries}, cost {cost} {SHOW_ALL}"


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
        yield f"    … and {len(tree.queries) - len(shown):,} more {SHOW_ALL}"


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
    names = [shorten(one_line(planned.name), NAME_WIDTH) for planned in queries]
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


_LARGEST_SAFE = 2**53


def set_json(plan: Plan, partial_set: PartialSet, costs: CostView, shared: dict[str, Sharing]) -> Json:
    wanted, how = asked(partial_set), slice_id_text(partial_set.slice_id, measure_of(partial_set))
    return {
        "number": partial_set.number,
        "stream": partial_set.stream,
        "where": None if partial_set.where is None else partial_set.where.sql,
        "group_by": [
            {"expression": expression.sql, "type": type_.name}
            for expression, type_ in zip(partial_set.group_by, partial_set.group_types, strict=True)
        ],
        "counted_by": None
        if partial_set.counted_by is None
        else [expression.sql for expression in partial_set.counted_by],
        "pace": partial_set.statistics.pace,
        "components": [
            {
                "name": str(planned.component),
                "kind": planned.component.kind,
                "argument": None if planned.component.argument is None else planned.component.argument.sql,
                "by": None if planned.component.by is None else planned.component.by.sql,
                "where": None if planned.component.where is None else planned.component.where.sql,
                "type": None if planned.argument_type is None else planned.argument_type.name,
                "family": planned.family.name,
                "properties": property_names(planned),
                "asked_by": wanted[planned.component],
            }
            for planned in partial_set.components
        ],
        "statistics": statistics_json(partial_set),
        "strategy": partial_set.strategy,
        "cost": costs.set_json(partial_set),
        "edges": _edges_json(partial_set.edges),
        "slice_id": {"way": partial_set.slice_id.way, "text": how, **_slice_id_json(partial_set.slice_id)},
        "trees": [_tree_json(plan, partial_set, tree, costs, shared) for tree in partial_set.trees],
    }


def _tree_json(plan: Plan, partial_set: PartialSet, tree: Tree, costs: CostView, shared: dict[str, Sharing]) -> Json:
    wanted = {component for planned in tree.queries for component in planned.query.components}
    return {
        "number": tree.number,
        "name": tree_name(plan, partial_set, tree),
        "edges": _edges_json(tree.edges),
        "marks": _edges_json(tree.marks) if tree.marks.classes else None,
        "techniques": {
            str(planned.component): technique
            for planned, technique in zip(partial_set.components, tree.techniques, strict=True)
            if planned.component in wanted
        },
        "cost": costs.tree_json(partial_set, tree),
        "queries": [_query_json(planned, shared[planned.name]) for planned in tree.queries],
    }


def _query_json(planned: Member, shared: Sharing) -> Json:
    query = planned.query
    # Only for queries that state their urgency.
    urgency = {"within_ticks": query.deadline_ticks, "priority": query.urgency.priority}
    return {
        "name": query.name,
        "text": query.text,
        **({"urgency": urgency} if str(query.urgency) else {}),
        "window": {
            "kind": query.window.kind,
            "range_ticks": query.window.range_ticks,
            "slide_ticks": query.window.slide_ticks,
            "offset_ticks": query.window.offset_ticks,
            "text": str(query.window),
        },
        "answer": output_text(query),
        "having": having_sql(query),
        "shape": None if isinstance(planned, PlannedSide) else planned.shape,
        "shares": {
            "slices_with": shared.in_tree,
            "partials_with": shared.in_set,
            "same_window": shared.same_window,
            "components": {
                str(shared_component.component): {
                    "in_tree": shared_component.in_tree,
                    "in_set": shared_component.in_set,
                }
                for shared_component in shared.components
            },
        },
    }


def _edges_json(edges: EdgeSet) -> Json:
    in_composite = edges.count_per_composite
    return {
        "per_second": edges.edges_per_second,
        "exact": edges.density.exact,
        "mean_slice_seconds": mean_slice_ticks(edges) / 1e6,
        "composite_slide": period(edges.composite_slide),
        "composite_slide_ticks": _safe(edges.composite_slide),
        "per_composite": None if in_composite is None else _safe(in_composite),
        "classes": [_class_json(each) for each in edges.classes],
    }


def _slice_id_json(slice_id: SliceId) -> Json:
    match slice_id:
        case RegularSlice(edges=edges) | PaneSlice(edges=edges):
            return _class_json(edges)
        case LookupSlice():
            return {
                "composite_slide_ticks": slice_id.composite_ticks,
                "pane_ticks": slice_id.pane_ticks,
                "origin_ticks": slice_id.origin,
                "entries": len(slice_id.table),
            }
        case GreatestSlice(classes=classes):
            return {"classes": len(classes)}


def _class_json(edges: EdgeClass) -> Json:
    return {"period_ticks": edges.period, "residue_ticks": edges.residue}


def _safe(value: int) -> int | None:
    return value if value <= _LARGEST_SAFE else None
