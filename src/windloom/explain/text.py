"""EXPLAIN as text for a terminal, at most 110 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from windloom.explain.costs import CostView
from windloom.explain.node import ExplainNode, node_lines, sections_lines
from windloom.explain.query import one_query_text
from windloom.explain.tree import plan_tree
from windloom.explain.update_patterns import results_lines
from windloom.explain.words import NAME_WIDTH, SHOW_ALL, WIDTH, one_line, shorten, wrapped
from windloom.model.formatting import count
from windloom.plan.graph import AnswerNode, PlanGraph, PlanNode, graph_of
from windloom.plan.plan import Plan

_ARROW = " → "
_ANSWER_WIDTH = 200
#: A graph with more lines shows the first few only.
_MANY_LINES = 16


def explain_text(plan: Plan, costs: CostView, *, all_queries: bool = False, query: str | None = None) -> str:
    """Return the plan as text; with `query`, everything about the query of that name."""
    if query is not None:
        return one_query_text(plan, query, costs)
    tree = plan_tree(plan, costs, all_queries)
    parts = tree.children
    lines = [tree.name, *(f"  {line}" for fact in tree.facts for line in fact.lines)]
    for node in parts["streams"] if any(plan.queries) else ():
        name = shorten(one_line(node["name"].value), NAME_WIDTH)
        lines.append(f"  rate of {name}: {node['events_per_second'].first_line}")
        lines.append(f"  a tuple of {name} lies in {node['windows_per_tuple'].first_line}")
    graph, names = graph_of(plan), {node["id"].value: node.name for node in parts["nodes"]}
    drawn: set[str] = set()
    paths = [line for root in graph.roots for line in _paths(graph, names, root, drawn)]
    lines += ["", *(["Graph"] if paths else [])]
    lines += [f"  {line}" for line in (paths if all_queries else paths[:_MANY_LINES])]
    if not all_queries and len(paths) > _MANY_LINES:
        lines.append(f"  … and {count(len(paths) - _MANY_LINES, 'more line')} {SHOW_ALL}")
    for node in (*parts["scans"], *parts["relations"]):
        lines += ["", *node_lines(node)]
    for partial_set, node in zip(plan.sets, parts["sets"], strict=True):
        lines += ["", *node_lines(node)]
        if partial_set.is_relation:  # a version has neither slices nor real trees, but queries
            queries = (query for tree in node.children["trees"] for query in tree.children["queries"])
            answers = (f"{one_line(query.name)}: {query['answer'].first_line}" for query in queries)
            lines += ["", *(line for answer in answers for line in wrapped(answer, "    ", "      "))]
            continue
        for tree in node.shown:
            lines += ["", *node_lines(tree, 2), "", *_query_lines(tree.shown)]
            lines += [f"    {tree.rest}"] if tree.rest else []
        lines += ["", f"  {node.rest}"] if node.rest else []
    lines += sections_lines(parts["joins"], all_queries, ("more join", "more joins"))
    lines += sections_lines(parts["stores"], everything=True)
    lines += sections_lines(parts["rows"], all_queries, ("more row query", "more row queries"))
    lines += results_lines(parts["results"])
    return "\n".join(lines) + "\n"


def _query_lines(queries: Sequence[ExplainNode]) -> Iterator[str]:
    """Yield a table: name, window and answer of each query, and below them what it shares."""
    names = [shorten(one_line(query.name), NAME_WIDTH) for query in queries]
    windows = [query["window"].first_line for query in queries]
    name_width, window_width = max(map(len, names)), max(map(len, windows))
    indent = " " * (6 + name_width)
    for query, name, window in zip(queries, names, windows, strict=True):
        head = f"    {name:{name_width}}  {window:{window_width}}  "
        answer = shorten(query["answer"].first_line, _ANSWER_WIDTH)
        if len(head) + len(answer) <= WIDTH:
            yield head + answer
        else:
            yield head.rstrip()
            yield from wrapped(answer, indent, indent)
        for reason in query.reasons:
            yield from wrapped(reason.first_line, indent, indent)


def _paths(graph: PlanGraph, names: Mapping[str, str], node: PlanNode, drawn: set[str]) -> list[str]:
    """Return the node and everything that it feeds; a node with several inputs is continued after the last of them."""
    head = names[node.id]
    drawn.add(node.id)
    consumers = graph.consumers_of(node)
    answers = [names[each.id] for each in consumers if isinstance(each, AnswerNode)]
    fed: list[list[str]] = []
    for each in consumers:
        if not isinstance(each, AnswerNode):
            is_last = all(other in drawn for other in each.inputs)
            fed.append(_paths(graph, names, each, drawn) if is_last else [names[each.id]])
    if answers:
        fed.append(answers if len(answers) == 1 else [count(len(answers), "query", "queries")])
    paths: list[str] = []
    for first, *others in fed:
        paths.append((" " * len(head) if paths else head) + _ARROW + first)
        paths += [" " * (len(head) + len(_ARROW)) + line for line in others]
    return paths or [head]
