"""Sets of partials, the trees of each, and the queries of each tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from windloom.explain import words
from windloom.explain.costs import CostView
from windloom.explain.node import ExplainNode, Fact, Json, json_only, words_only
from windloom.explain.scans import fed_text
from windloom.explain.sharing import SharedParts, asked, shares_text
from windloom.explain.words import WIDTH, component_name, one_line, shorten, tree_name
from windloom.model.aggregate import COUNT_STAR
from windloom.model.formatting import amount, count
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.plan import Member, PartialSet, Plan, PlannedSide, Tree
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId

#: A tree with more queries, or a set with more trees, shows only the first few, unless all are asked for.
_MANY_QUERIES = 12
_FEW_QUERIES = 6
_FEW_TREES = 12
#: Larger integers are null in JSON, because many of its readers cannot hold them.
_LARGEST_SAFE = 2**53


def set_node(
    plan: Plan, partial_set: PartialSet, costs: CostView, shared: dict[str, SharedParts], everything: bool = True
) -> ExplainNode:
    what = "rows of relation" if partial_set.is_relation else "partials of"
    name = shorten(f"Set {partial_set.number}: {what} {one_line(partial_set.stream)}", WIDTH)
    facts = list(_set_facts(plan, partial_set, costs))
    trees = [_tree_node(plan, partial_set, tree, costs, shared, everything) for tree in partial_set.trees]
    if everything or len(trees) <= _FEW_TREES:
        return ExplainNode(name, facts, children={"trees": trees})
    hidden = partial_set.trees[_FEW_TREES:]
    queries = count(sum(len(tree.queries) for tree in hidden), "query", "queries")
    rest = f"… and {count(len(hidden), 'more tree')} with {queries}, cost {costs.trees_text(partial_set, hidden)}"
    return ExplainNode(
        name, facts, children={"trees": trees}, brief=trees[:_FEW_TREES], rest=f"{rest} {words.SHOW_ALL}"
    )


def _set_facts(plan: Plan, partial_set: PartialSet, costs: CostView) -> Iterator[Fact]:
    """Yield what distinguishes a set from others, its components, statistics and costs, and how it is sliced."""
    where, counted, is_relation = partial_set.where, partial_set.counted_by, partial_set.is_relation
    every = "every row" if is_relation else "every tuple"
    groups = [
        {"expression": expression.sql, "type": type_.name}
        for expression, type_ in zip(partial_set.group_by, partial_set.group_types, strict=True)
    ]
    fed = fed_text(plan, partial_set)
    if is_relation:
        is_fed = plan.scan_of(partial_set) is not None
        fed = "every new version, as a whole" if is_fed else "nothing: no row satisfies its condition"
    yield from json_only(number=partial_set.number, stream=partial_set.stream)
    yield Fact("where", None if where is None else where.sql, every if where is None else one_line(where.sql))
    yield Fact("group_by", groups, words.grouping(partial_set), "group by")
    by_position = None if counted is None else [expression.sql for expression in counted]
    yield Fact("counted_by", by_position, () if is_relation else words.counting(partial_set) or (), "counted")
    yield words_only("fed by", fed)
    yield Fact("pace", partial_set.statistics.pace)
    components, lines, wanted = [], [], asked(partial_set.queries)
    queries = count(sum(1 for _ in partial_set.queries), "query", "queries")
    names = [component_name(str(planned.component)) for planned in partial_set.components]
    types = [planned.argument_type and planned.argument_type.name for planned in partial_set.components]
    name_width, type_width = max(map(len, names)), max(len(f"of {kind}") if kind else 0 for kind in types)
    for planned, name, kind in zip(partial_set.components, names, types, strict=True):
        component, asking = planned.component, wanted[planned.component]
        parts = {"argument": component.argument, "by": component.by, "where": component.where}
        properties = [str(has.name).lower().replace("_", " ") for has in planned.family.has]
        components.append(
            {"name": str(component), "kind": component.kind}
            | {key: None if part is None else part.sql for key, part in parts.items()}
            | ({"others": [other.sql for other in component.others]} if component.others else {})
            | {"type": kind, "family": planned.family.name, "properties": properties, "asked_by": asking}
        )
        if is_relation:
            lines.append(f"{name}, asked by {count(asking, 'side')} of joins")
            continue
        use = f"asked by {asking:,} of {queries}"
        if component == COUNT_STAR:
            use = "used by all, to know which windows have a row" if asking == 0 else f"used by all, {use}"
        if component in partial_set.window.components:
            use = "kept to know where windows end"
        if component.own is not None:
            use += f"; defined by the user, {', '.join(properties)}"
        lines.append(f"{name:{name_width}}  {f'of {kind}' if kind else '':{type_width}}  {use}")
    yield Fact("components", components, lines, "partials")
    edges, slice_id = partial_set.edges, partial_set.slice_id
    cost, measure = costs.set_fact(partial_set), words.measure_of(partial_set)
    known = () if is_relation else list(words.statistics_texts(partial_set))
    slices = () if is_relation else words.cut_text(partial_set, edges)
    way: Json = {"way": slice_id.way, "text": words.slice_id_text(slice_id, measure), **_slice_id_json(slice_id)}
    yield Fact("statistics", words.statistics_json(partial_set), known)
    yield Fact("strategy", partial_set.strategy)
    yield Fact("cost", cost.value, () if is_relation else cost.text, is_late=True)
    yield Fact("edges", _edges_json(edges), slices, "slices" if partial_set.window.is_sliced else "cells")
    is_regular = is_relation or isinstance(slice_id, RegularSlice)
    yield Fact("slice_id", way, () if is_regular else words.repeats(edges, measure), "repeat")


def _tree_node(
    plan: Plan, partial_set: PartialSet, tree: Tree, costs: CostView, shared: dict[str, SharedParts], everything: bool
) -> ExplainNode:
    name = tree_name(plan, partial_set, tree)
    title = f"{name.capitalize()}: {count(len(tree.queries), 'query', 'queries')}"
    facts = list(_tree_facts(plan, partial_set, tree, costs))
    queries = [_query_node(planned, shared[planned.name], name) for planned in tree.queries]
    if everything or len(queries) <= _MANY_QUERIES:
        return ExplainNode(title, facts, children={"queries": queries})
    # The first few, one of every shape before a second of any.
    seen: Counter[int | None] = Counter()
    ranked = []
    for node in queries:
        shape = node["shape"].value
        ranked.append((seen[shape], node))
        seen[shape] += 1
    brief = [node for _, node in sorted(ranked, key=lambda pair: pair[0])[:_FEW_QUERIES]]
    rest = f"… and {len(queries) - len(brief):,} more {words.SHOW_ALL}"
    return ExplainNode(title, facts, children={"queries": queries}, brief=brief, rest=rest)


def _tree_facts(plan: Plan, partial_set: PartialSet, tree: Tree, costs: CostView) -> Iterator[Fact]:
    measure, is_sliced = words.measure_of(partial_set), partial_set.window.is_sliced
    wanted = {component for planned in tree.queries for component in planned.query.components}
    by_component = {
        str(planned.component): technique
        for planned, technique in zip(partial_set.components, tree.techniques, strict=True)
        if planned.component in wanted
    }
    yield from json_only(number=tree.number, name=tree_name(plan, partial_set, tree))
    yield Fact("edges", _edges_json(tree.edges), words.cut_text(partial_set, tree.edges) if is_sliced else (), "slices")
    if tree.marks.classes:
        rate = f"{words.about(tree.marks)}{amount(measure.rate(tree.marks), 'mark/s', 'marks/s')}"
        yield Fact("marks", _edges_json(tree.marks), f"{rate}, where a window ends inside a slice")
    else:
        yield Fact("marks")
    yield Fact("techniques", by_component, words.techniques(partial_set, tree, tree.queries), "technique", is_late=True)
    yield from costs.tree_facts(partial_set, tree)
    if len(tree.queries) > _MANY_QUERIES and not partial_set.is_relation:
        windows = {planned.query.window for planned in tree.queries}
        ranges = [window.extent_ticks for window in windows if window.extent_ticks is not None]
        slides = [window.slide_ticks for window in windows]
        text = f"{len(windows):,} different: "
        text += f"ranges {measure.short(min(ranges))} to {measure.short(max(ranges))}, " if ranges else ""
        text += f"slides {measure.short(min(slides))} to {measure.short(max(slides))}"
        yield words_only("windows", text, is_late=True)


def _query_node(planned: Member, shared: SharedParts, tree: str) -> ExplainNode:
    query, window = planned.query, planned.query.window
    of_window = {"kind": window.kind, "range_ticks": window.range_ticks, "slide_ticks": window.slide_ticks}
    of_window |= {"offset_ticks": window.offset_ticks, "text": str(window)}
    urgency = {"within_ticks": query.deadline_ticks, "priority": query.urgency.priority}
    shares = {
        "slices_with": shared.in_tree,
        "partials_with": shared.in_set,
        "same_window": shared.same_window,
        "components": {
            str(each.component): {"in_tree": each.in_tree, "in_set": each.in_set} for each in shared.components
        },
    }
    facts = [
        *json_only(name=query.name, text=query.text, **({"urgency": urgency} if str(query.urgency) else {})),
        Fact("window", of_window, str(window)),
        Fact("answer", words.output_text(query), words.answer_text(planned)),
        *json_only(having=words.having_sql(query), shape=None if isinstance(planned, PlannedSide) else planned.shape),
    ]
    return ExplainNode(query.name, facts, [Fact("shares", shares, shares_text(shared, tree))])


def _edges_json(edges: EdgeSet) -> Json:
    in_slide, slide = edges.count_per_composite, edges.composite_slide
    return {
        "per_second": edges.edges_per_second,
        "exact": edges.density.exact,
        "mean_slice_seconds": TICKS_PER_SECOND / edges.edges_per_second / 1e6,
        "composite_slide": words.period(slide),
        "composite_slide_ticks": slide if slide <= _LARGEST_SAFE else None,
        "per_composite": in_slide if in_slide is not None and in_slide <= _LARGEST_SAFE else None,
        "classes": [{"period_ticks": each.period, "residue_ticks": each.residue} for each in edges.classes],
    }


def _slice_id_json(slice_id: SliceId) -> Json:
    match slice_id:
        case RegularSlice(edges=edges) | PaneSlice(edges=edges):
            return {"period_ticks": edges.period, "residue_ticks": edges.residue}
        case LookupSlice():
            steps = {"composite_slide_ticks": slice_id.composite_ticks, "pane_ticks": slice_id.pane_ticks}
            return {**steps, "origin_ticks": slice_id.origin, "entries": len(slice_id.table)}
        case GreatestSlice(classes=classes):
            return {"classes": len(classes)}
