"""EXPLAIN of one query: its text, its path through the plan, what it shares with others, its windows, its cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from windloom.errors import WindloomError, near_names
from windloom.explain.costs import CostView
from windloom.explain.joins import (
    bits_text,
    fold_text,
    joined_text,
    link_text,
    partners_text,
    shards_text,
    side_text,
    tuples_text,
)
from windloom.explain.rows import row_facts
from windloom.explain.scans import fed_text
from windloom.explain.sharing import Sharing, apart, sharing
from windloom.explain.update_patterns import pattern_facts
from windloom.explain.words import (
    about,
    answer_text,
    component_name,
    cut_text,
    edge_rate,
    fact,
    grouping,
    listing,
    measure_of,
    one_line,
    origin_text,
    rate_text,
    techniques,
    tree_name,
    wrapped,
)
from windloom.model.figures import amount, count, number
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND, format_duration
from windloom.plan.expressions import why_spark
from windloom.plan.physical import Member, PartialSet, Plan, PlannedJoin, PlannedQuery, Tree
from windloom.plan.sharding import sharding_of
from windloom.slicing.edges import EdgeSet
from windloom.slicing.registry import find_slicing

_NAMED_PARTNERS = 8


_SHOWN_APART = 8


def one_query_text(plan: Plan, name: str, costs: CostView) -> str:
    join = next((each for each in plan.joins if each.name == name), None)
    if join is not None:
        head = [*wrapped(f"Query {one_line(name)}", "", "  "), "", *_text_lines(join.query.text), ""]
        return "\n".join([*head, *one_join_lines(plan, join, costs)]) + "\n"
    rows = next((each for each in plan.rows if each.name == name), None)
    if rows is not None:
        head = [*wrapped(f"Query {one_line(name)}", "", "  "), "", *_text_lines(rows.query.text), "", "Rows"]
        return (
            "\n".join(
                [*head, *row_facts(plan, rows), *(line for pair in pattern_facts(rows.query) for line in fact(*pair))]
            )
            + "\n"
        )
    try:
        partial_set, tree, planned = plan.find(name)
    except KeyError:
        known = [each.name for each in plan.queries]
        raise WindloomError(f"there is no query '{name}' in the plan", hint=near_names(name, known)) from None
    lines = [*wrapped(f"Query {one_line(name)}", "", "  "), "", *_text_lines(planned.query.text)]
    lines += ["", *_path(plan, partial_set, tree, planned)]
    lines += ["", *_windows(plan, tree, planned)]
    lines += ["", *_shares(plan, partial_set, tree, planned, sharing(plan)[name])]
    lines += ["", *_cost(plan, partial_set, tree, planned, costs)]
    return "\n".join(lines) + "\n"


def _text_lines(text: str) -> Iterator[str]:
    """The query as its author laid it out; lines too long for a terminal are broken."""
    for line in text.expandtabs(4).strip().splitlines():
        indent = "  " + " " * (len(line) - len(line.lstrip()))
        yield from wrapped(one_line(line), indent, indent + "  ")


def _path(plan: Plan, partial_set: PartialSet, tree: Tree, planned: Member) -> Iterator[str]:
    yield "Path"
    rate, origin = plan.rate_of(plan.stream(partial_set.stream))
    events = f"{amount(rate, 'event/s', 'events/s')} ({origin_text(origin)})"
    yield from fact("stream", f"{one_line(partial_set.stream)}, {events}")
    where = "every tuple" if partial_set.where is None else f"tuples where {one_line(partial_set.where.sql)}"
    yield from fact("→ scan", fed_text(plan, partial_set))
    yield from fact("→ slices", f"set {partial_set.number}: {where}; grouped by {grouping(partial_set)}")
    yield from fact("", cut_text(partial_set, partial_set.edges))
    yield from fact("→ tree", f"{tree_name(plan, partial_set, tree)} of {count(len(tree.queries), 'query', 'queries')}")
    yield from fact("", f"{rate_text(partial_set, tree.edges)}; {techniques(partial_set, tree, [planned])}")
    yield from fact("→ answer", f"window_start, window_end, {answer_text(planned)}")
    if isinstance(planned, PlannedQuery) and not planned.query.is_plain:
        yield from fact("", _evaluation(plan, planned))


def _evaluation(plan: Plan, planned: PlannedQuery) -> str:
    """A text that shows whether Spark evaluates HAVING and expressions over aggregates."""
    why = why_spark(plan.shapes[planned.shape])
    if why is None:
        return "evaluated without Spark"
    return f"evaluated by Spark, in one job with other such queries: Windloom does not evaluate {one_line(why)} itself"


def urgency_text(query: Query) -> str:
    """When the answers of a query are wanted, and with which priority."""
    within = format_duration(query.deadline_ticks)
    return f"within {within} after a window is closed, priority {query.urgency.priority} of 9"


def _windows(plan: Plan, tree: Tree, planned: Member) -> Iterator[str]:
    window = planned.query.window
    yield "Windows"
    yield from fact("window", f"{window}: {window.intervals_text()}")
    if str(planned.query.urgency):
        yield from fact("urgent", urgency_text(planned.query))
    yield from fact("a tuple", window.tuple_text())
    slices = window.range_ticks / TICKS_PER_SECOND * tree.edges_per_second
    mean = "" if slices.is_integer() else ", on average"
    spanned = f"{about(tree.edges)}{amount(slices, 'slice')} of its tree{mean}"
    yield from fact("a window", window.slices_text(spanned))
    stream = planned.query.streams[0]
    delay = plan.stream(stream).delay_ticks
    latest = f"latest event − {format_duration(delay)}" if delay else "latest event"
    watermark = f"the watermark of {one_line(stream)} ({latest})"
    yield from fact("reported", f"once {watermark} passes {window.passed_text}")
    for label, text in pattern_facts(planned.query):
        yield from fact(label, text)


def _shares(plan: Plan, partial_set: PartialSet, tree: Tree, planned: Member, shared: Sharing) -> Iterator[str]:
    yield "Shares"
    yield from fact("partials", f"of set {partial_set.number} with {_others(shared.in_set)}")
    slices = f"of {tree_name(plan, partial_set, tree)} with {_others(shared.in_tree)}"
    if shared.same_window:
        slices += f", {shared.same_window:,} of them with the very same window"
    yield from fact("slices", slices)
    width = max(len(component_name(str(shared_component.component))) for shared_component in shared.components)
    label = "components"
    for shared_component in shared.components:
        use = (
            f"with {_others(shared_component.in_tree)} of the tree"
            if shared_component.in_tree
            else "with nobody of the tree"
        )
        if shared.in_set > shared.in_tree:
            use += f", with {_others(shared_component.in_set)} of the set"
        yield from fact(label, f"{component_name(str(shared_component.component)):{width}}  {use}")
        label = ""
    near = [other.name for other in tree.queries if other.name != planned.name]
    if near:
        yield from fact("neighbours", listing(map(one_line, near), _NAMED_PARTNERS))
    label, told = "apart from", 0
    for other in islice(apart(plan, partial_set, tree), _SHOWN_APART):
        told += other.queries
        yield from fact(label, f"{other.place} ({count(other.queries, 'query', 'queries')}): {other.reason}")
        label = ""
    untold = sum(1 for _ in plan.queries) - len(tree.queries) - told
    if untold > 0:
        yield from fact("", f"… and {count(untold, 'query', 'queries')} of further trees and sets")


def _others(how_many: int) -> str:
    return "nobody" if how_many == 0 else count(how_many, "other query", "other queries")


def _cost(plan: Plan, partial_set: PartialSet, tree: Tree, planned: Member, costs: CostView) -> Iterator[str]:
    window = planned.query.window
    own, rest = _own_edges(plan, planned.query), _edges_without(plan, tree, planned.query)
    measure = measure_of(partial_set)
    yield "Costs"
    fine = tree.fine_edges
    added = measure.rate(fine) - (measure.rate(rest) if rest.classes else 0.0)
    approx = "" if fine.density.exact and rest.density.exact else "≈ "
    needs = f"needs {edge_rate(own, measure)}"
    if rest.classes:
        needs += "; the others have all of them" if added <= 0 else f"; adds {approx}{number(added)} to the others'"
    if partial_set.window.is_sliced:
        yield from fact("edges", needs)
    answers = measure.pace * TICKS_PER_SECOND / window.slide_ticks
    most = "" if partial_set.window.is_sliced else "at most "
    yield from fact("answers", f"{most}{number(answers)} per second for every group")
    for label, text in costs.query_facts(partial_set, tree):
        yield from fact(label, text)


def _own_edges(plan: Plan, query: Query) -> EdgeSet:
    """The edges and marks a query would need alone."""
    slicing = find_slicing(plan.slicing)
    return EdgeSet.of((*slicing.edges(query.window), *slicing.marks(query.window)))


def _edges_without(plan: Plan, tree: Tree, query: Query) -> EdgeSet:
    """The edges and marks that a tree would need without one of its queries."""
    slicing = find_slicing(plan.slicing)
    windows = {planned.query.window for planned in tree.queries if planned.name != query.name}
    return EdgeSet.of(
        edge_class for window in windows for edge_class in (*slicing.edges(window), *slicing.marks(window))
    )


def one_join_lines(plan: Plan, planned: PlannedJoin, costs: CostView) -> Iterator[str]:
    """The lines that follow the text of the query."""
    join = planned.join
    yield from wrapped(f"Join {joined_text(join)}", "", "  ")
    label = "links"
    for link in join.links:
        yield from fact(label, link_text(join, link))
        label = ""
    yield from fact("plan", bits_text(plan, planned))
    yield from fact("fold", fold_text(plan, planned))
    if planned.tuples:
        yield from fact("", tuples_text(planned))
    yield from fact("executors", shards_text(plan, planned, sharding_of(plan)))
    for side, place in enumerate(planned.sides):
        partial_set, tree, _ = plan.side(place)
        yield ""
        yield from wrapped(f"Side {join.sides[side].alias}", "", "  ")
        yield from fact("reads", side_text(plan, planned, side))
        yield from fact("→ scan", fed_text(plan, partial_set))
        yield from fact("→ tree", rate_text(partial_set, tree.edges))
        yield from fact("shares", partners_text(plan, planned, place))
    yield ""
    yield "Answer"
    window = join.window
    yield from fact("window", f"{window}: window_end is common to all sides, window_start the earliest")
    yield from fact("reported", f"once the watermarks of {_watermarks(plan, planned)} pass {window.passed_text}")
    for label, text in pattern_facts(planned.query):
        yield from fact(label, text)
    yield from fact("columns", f"window_start, window_end, {answer_text(planned)}")
    if not planned.query.is_plain:
        why = why_spark(plan.shapes[planned.shape])
        by = "without Spark" if why is None else f"by Spark: Windloom does not evaluate {one_line(why)} itself"
        yield from fact("", f"evaluated {by}")
    for name, text in costs.join_facts(planned):
        yield from fact(name, text)


def _watermarks(plan: Plan, planned: PlannedJoin) -> str:
    found = []
    for name in planned.query.streams:
        delay = plan.stream(name).delay_ticks
        found.append(f"{one_line(name)} (latest event − {format_duration(delay)})" if delay else one_line(name))
    return " and ".join(found)
