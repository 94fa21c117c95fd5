"""EXPLAIN of one query: its text, its path through the plan, what it shares with others, its windows, its cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from windloom.errors import WindloomError, near_names
from windloom.explain import words
from windloom.explain.costs import CostView
from windloom.explain.joins import join_node, joined_text
from windloom.explain.node import ExplainNode, Fact, facts_lines, words_only
from windloom.explain.rows import rows_node
from windloom.explain.scans import fed_text
from windloom.explain.sharing import SharedParts, apart, sharing
from windloom.explain.update_patterns import pattern_node
from windloom.explain.words import one_line, rate_text, tree_name, wrapped
from windloom.model.formatting import amount, count, number
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND, format_duration
from windloom.model.windows import Window
from windloom.plan.obstacles import obstacle
from windloom.plan.outputs import why_spark
from windloom.plan.plan import Member, PartialSet, Plan, Planned, PlannedJoin, PlannedQuery, Tree
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slicings import find_slicing

_NAMED_PARTNERS = 8
_SHOWN_APART = 8


def one_query_text(plan: Plan, name: str, costs: CostView) -> str:
    query, sections = _sections(plan, name, costs)
    lines = [*wrapped(f"Query {one_line(name)}", "", "  "), ""]
    for line in query.expandtabs(4).strip().splitlines():  # as its author laid it out, unless a line is too long
        indent = "  " + " " * (len(line) - len(line.lstrip()))
        lines += wrapped(one_line(line), indent, indent + "  ")
    for section in sections:
        lines += ["", *wrapped(section.name, "", "  "), *facts_lines(section.in_text_order)]
    return "\n".join(lines) + "\n"


def _sections(plan: Plan, name: str, costs: CostView) -> tuple[str, list[ExplainNode]]:
    """Return the text of a query, and the parts of its explanation."""
    for join in plan.joins:
        if join.name == name:
            return join.query.text, _join_sections(plan, join, costs)
    for rows in plan.rows:
        if rows.name == name:
            facts = [*rows_node(plan, rows).facts, *pattern_node(rows.query).facts, *_in_process(plan, rows)]
            return rows.query.text, [ExplainNode("Rows", facts)]
    try:
        partial_set, tree, planned = plan.find(name)
    except KeyError:
        known = [each.name for each in plan.queries]
        raise WindloomError(f"there is no query '{name}' in the plan", hint=near_names(name, known)) from None
    shared = sharing(plan)[name]
    return planned.query.text, [
        ExplainNode("Path", list(_path(plan, partial_set, tree, planned))),
        ExplainNode("Windows", list(_windows(plan, tree, planned))),
        ExplainNode("Shares", list(_shares(plan, partial_set, tree, planned, shared))),
        ExplainNode("Costs", list(_costs(plan, partial_set, tree, planned, costs))),
    ]


def _path(plan: Plan, partial_set: PartialSet, tree: Tree, planned: Member) -> Iterator[Fact]:
    rate, origin = plan.rate_of(plan.stream(partial_set.stream))
    events = f"{amount(rate, 'event/s', 'events/s')} ({words.origin_text(origin)})"
    where = "every tuple" if partial_set.where is None else f"tuples where {one_line(partial_set.where.sql)}"
    slices = f"set {partial_set.number}: {where}; grouped by {words.grouping(partial_set)}"
    members = f"{tree_name(plan, partial_set, tree)} of {count(len(tree.queries), 'query', 'queries')}"
    answered = f"{rate_text(partial_set, tree.edges)}; {words.techniques(partial_set, tree, [planned])}"
    yield words_only("stream", f"{one_line(partial_set.stream)}, {events}")
    yield words_only("→ scan", fed_text(plan, partial_set))
    yield words_only("→ slices", slices, words.cut_text(partial_set, partial_set.edges))
    yield words_only("→ tree", members, answered)
    yield words_only("→ answer", f"window_start, window_end, {words.answer_text(planned)}")
    yield from _presented(planned.query)
    if isinstance(planned, PlannedQuery) and not planned.query.is_plain:
        yield _evaluated(plan, planned, "by Spark, in one job with other such queries")


def _evaluated(plan: Plan, planned: PlannedQuery | PlannedJoin, by_spark: str) -> Fact:
    """Return whether Spark evaluates HAVING and expressions over aggregates, and why."""
    why = why_spark(plan.shapes[planned.shape])
    by = "without Spark" if why is None else f"{by_spark}: Windloom does not evaluate {one_line(why)} itself"
    return words_only("", f"evaluated {by}")


def _presented(query: Query) -> Iterator[Fact]:
    """Return what readers see of the rows, if that is not all of them in any order."""
    presentation = query.presentation
    if presentation.columns is not None:
        yield words_only("→ read as", one_line(", ".join(shown.name for shown in presentation.columns)))
    if presentation.order:
        keys = ", ".join(map(str, presentation.order))
        yield words_only("", f"batch results in the order of {one_line(keys)}; rounds of a stream come as they are")


def _windows(plan: Plan, tree: Tree, planned: Member) -> Iterator[Fact]:
    query, window = planned.query, planned.query.window
    yield words_only("window", f"{window}: {window.intervals_text()}")
    if str(query.urgency):
        within = format_duration(query.deadline_ticks)
        urgency = f"within {within} after a window is closed, priority {query.urgency.priority} of 9"
        yield words_only("urgent", urgency)
    yield words_only("a tuple", window.tuple_text())
    slices = window.range_ticks / TICKS_PER_SECOND * tree.edges_per_second
    mean = "" if slices.is_integer() else ", on average"
    spanned = f"{words.about(tree.edges)}{amount(slices, 'slice')} of its tree{mean}"
    yield words_only("a window", window.slices_phrase.format(spanned))
    stream = query.streams[0]
    delay = plan.stream(stream).delay_ticks
    latest = f"latest event − {format_duration(delay)}" if delay else "latest event"
    yield words_only("reported", f"once the watermark of {one_line(stream)} ({latest}) passes {window.passed_text}")
    yield from pattern_node(query).facts
    if isinstance(planned, PlannedQuery):
        yield from _in_process(plan, planned)


def _in_process(plan: Plan, planned: Planned) -> Iterator[Fact]:
    """Return why `loom.answers` does not answer a query, if it does not."""
    for is_stream, where in ((False, "in process"), (True, "in process as a stream")):
        why = obstacle(plan, planned, is_stream=is_stream)
        if why is not None:
            yield words_only("answered", f"{where}, and not by a Spark operator: {why}")
            return


def _shares(plan: Plan, partial_set: PartialSet, tree: Tree, planned: Member, shared: SharedParts) -> Iterator[Fact]:
    def others(how_many: int) -> str:
        return f"with {count(how_many, 'other query', 'other queries')}" if how_many else "with nobody"

    yield words_only("partials", f"of set {partial_set.number} {others(shared.in_set)}")
    slices = f"of {tree_name(plan, partial_set, tree)} {others(shared.in_tree)}"
    same = f", {shared.same_window:,} of them with the very same window" if shared.same_window else ""
    yield words_only("slices", slices + same)
    names = [words.component_name(str(each.component)) for each in shared.components]
    lines = []
    for name, each in zip(names, shared.components, strict=True):
        of_set = f", {others(each.in_set)} of the set" if shared.in_set > shared.in_tree else ""
        lines.append(f"{name:{max(map(len, names))}}  {others(each.in_tree)} of the tree{of_set}")
    yield words_only("components", *lines)
    near = [one_line(other.name) for other in tree.queries if other.name != planned.name]
    if near:
        yield words_only("neighbours", words.listing(near, _NAMED_PARTNERS))
    shown = list(islice(apart(plan, partial_set, tree), _SHOWN_APART))
    rest = sum(1 for _ in plan.queries) - len(tree.queries) - sum(queries for queries, _ in shown)
    yield words_only("apart from", *(text for _, text in shown))
    if rest > 0:
        yield words_only("", f"… and {count(rest, 'query', 'queries')} of further trees and sets")


def _costs(plan: Plan, partial_set: PartialSet, tree: Tree, planned: Member, costs: CostView) -> Iterator[Fact]:
    slicing, measure = find_slicing(plan.slicing), words.measure_of(partial_set)

    def needed(windows: set[Window]) -> EdgeSet:
        """Return the edges and marks of a tree with these windows alone."""
        return EdgeSet.of(each for window in windows for each in (*slicing.edges(window), *slicing.marks(window)))

    own = needed({planned.query.window})
    rest = needed({other.query.window for other in tree.queries if other.name != planned.name})
    if is_sliced := partial_set.window.is_sliced:
        added = measure.rate(tree.fine_edges) - (measure.rate(rest) if rest.classes else 0.0)
        approx = "" if tree.fine_edges.density.exact and rest.density.exact else "≈ "
        needs = f"needs {words.edge_rate(own, measure)}"
        if rest.classes:
            needs += "; the others have all of them" if added <= 0 else f"; adds {approx}{number(added)} to the others'"
        yield words_only("edges", needs)
    answers = measure.pace * TICKS_PER_SECOND / planned.query.window.slide_ticks
    yield words_only("answers", f"{'' if is_sliced else 'at most '}{number(answers)} per second for every group")
    yield from costs.query_facts(partial_set, tree)


def _join_sections(plan: Plan, planned: PlannedJoin, costs: CostView) -> list[ExplainNode]:
    """Return the parts of a join's explanation: the path of each side, how sides are folded, and what that costs."""
    node, join = join_node(plan, planned, costs), planned.join
    links = words_only("links", *(link["text"] for link in node["links"].value))
    sections = [ExplainNode(f"Join {joined_text(join)}", [links, node["plan"], node["fold"], node["executors"]])]
    texts = node["sides"].lines  # a line for what a side reads, and one for those that share it
    for side, place, reads, partners in zip(join.sides, planned.sides, texts[::2], texts[1::2], strict=True):
        partial_set, tree, _ = plan.side(place)
        facts = [
            words_only("reads", reads),
            words_only("→ scan", fed_text(plan, partial_set)),
            words_only("→ tree", rate_text(partial_set, tree.edges)),
            words_only("shares", partners),
        ]
        sections.append(ExplainNode(f"Side {side.alias}", facts))
    watermarks = []
    for name in planned.query.streams:
        delay = plan.stream(name).delay_ticks
        watermarks.append(f"{one_line(name)} (latest event − {format_duration(delay)})" if delay else one_line(name))
    answer = [
        words_only("window", *node["window"].lines),
        words_only("reported", f"once the watermarks of {' and '.join(watermarks)} pass {join.window.passed_text}"),
        *pattern_node(planned.query).facts,
        *_in_process(plan, planned),
        words_only("columns", f"window_start, window_end, {words.answer_text(planned)}"),
        *_presented(planned.query),
        *([] if planned.query.is_plain else [_evaluated(plan, planned, "by Spark")]),
        costs.join_fact(planned),
    ]
    return [*sections, ExplainNode("Answer", answer)]
