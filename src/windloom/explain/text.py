"""EXPLAIN as text for a terminal, at most 110 columns wide."""

from __future__ import annotations

from collections.abc import Iterator

from windloom.explain.costs import CostView
from windloom.explain.joins import join_lines
from windloom.explain.query import one_query_text
from windloom.explain.rows import relation_lines, row_lines, version_set_lines
from windloom.explain.scans import scan_lines
from windloom.explain.sets import set_lines
from windloom.explain.sharing import sharing
from windloom.explain.update_patterns import pattern_lines
from windloom.explain.words import (
    NAME_WIDTH,
    one_line,
    origin_text,
    shorten,
    strategy_name,
    tree_name,
    windows_of_a_tuple,
    windows_over,
)
from windloom.model.figures import amount, count
from windloom.plan.graph import (
    AnswerNode,
    EnrichedNode,
    FoldNode,
    Node,
    PlanGraph,
    RelationNode,
    RowsNode,
    ScanNode,
    SetNode,
    StreamNode,
    TreeNode,
    graph_of,
)
from windloom.plan.physical import Plan


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
        lines += ["", *(own or set_lines(plan, partial_set, costs, shared, all_queries))]
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
        name = shorten(one_line(stream.name), NAME_WIDTH)
        yield f"  rate of {name}: {amount(rate, 'event/s', 'events/s')} ({origin_text(origin)})"
        yield f"  a tuple of {name} lies in {windows}, all queries together"


_ARROW = " → "


NODE_WIDTH = 28


#: A graph with more lines shows the first few only.
_MANY_LINES = 16


def graph_lines(plan: Plan, everything: bool = False) -> Iterator[str]:
    """A line for every path from a stream to answers; the part that several paths have in common is written once."""
    graph = graph_of(plan)
    drawn: set[str] = set()
    lines = [line for root in graph.roots for line in _graph_paths(plan, graph, root, drawn)]
    if not lines:
        return
    shown = lines if everything else lines[:_MANY_LINES]
    yield "Graph"
    for line in shown:
        yield f"  {line}"
    if len(shown) < len(lines):
        yield f"  … and {count(len(lines) - len(shown), 'more line')} (loom.explain(queries=True) shows all)"


def _graph_paths(plan: Plan, graph: PlanGraph, node: Node, drawn: set[str]) -> list[str]:
    """The node and everything that it feeds; a node with several inputs is continued after the last of them."""
    head = _node_name(plan, node)
    drawn.add(node.id)
    fed: list[list[str]] = []
    answers = [each for each in graph.consumers_of(node) if isinstance(each, AnswerNode)]
    for each in graph.consumers_of(node):
        if isinstance(each, AnswerNode):
            continue
        is_last = all(other in drawn for other in each.inputs)
        fed.append(_graph_paths(plan, graph, each, drawn) if is_last else [_node_name(plan, each)])
    if answers:
        partial_set = shorten(one_line(answers[0].planned.name), NODE_WIDTH)
        fed.append([partial_set if len(answers) == 1 else count(len(answers), "query", "queries")])
    found: list[str] = []
    for first, *others in fed:
        found.append((" " * len(head) if found else head) + _ARROW + first)
        found += [" " * (len(head) + len(_ARROW)) + line for line in others]
    return found or [head]


def _node_name(plan: Plan, node: Node) -> str:
    match node:
        case StreamNode(stream=stream):
            return shorten(one_line(stream.name), NODE_WIDTH)
        case RelationNode(planned=planned):
            return shorten(f"relation {one_line(planned.name)}", NODE_WIDTH)
        case EnrichedNode(stream=stream):
            return shorten(one_line(" + ".join([stream.base, *stream.relations])), NODE_WIDTH)
        case ScanNode(scan=scan):
            return f"scan {scan.number}" if scan.feeds else f"scan {scan.number}, which counts late tuples"
        case SetNode(partial_set=partial_set):
            return (
                f"set {partial_set.number}"
                if node.inputs
                else f"set {partial_set.number}, which no tuple can be part of"
            )
        case TreeNode(partial_set=partial_set, tree=tree):
            return tree_name(plan, partial_set, tree)
        case FoldNode():
            return "fold"
        case RowsNode():
            return "rows"
    return node.id
