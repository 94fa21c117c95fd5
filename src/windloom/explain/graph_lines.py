"""The graph of a plan as lines of text and as JSON: which node feeds which, from streams to answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windloom.explain.labels import tree_name
from windloom.explain.lines import one_line, shorten
from windloom.model.figures import count
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

_ARROW = " → "
_NAME_WIDTH = 28
#: A graph with more lines shows the first few only.
_MANY_LINES = 16


def graph_lines(plan: Plan, everything: bool = False) -> Iterator[str]:
    """A line for every path from a stream to answers; the part that several paths have in common is written once."""
    graph = graph_of(plan)
    drawn: set[str] = set()
    lines = [line for root in graph.roots for line in _lines(plan, graph, root, drawn)]
    if not lines:
        return
    shown = lines if everything else lines[:_MANY_LINES]
    yield "Graph"
    for line in shown:
        yield f"  {line}"
    if len(shown) < len(lines):
        yield f"  … and {count(len(lines) - len(shown), 'more line')} (loom.explain(queries=True) shows all)"


def _lines(plan: Plan, graph: PlanGraph, node: Node, drawn: set[str]) -> list[str]:
    """The node and everything that it feeds; a node with several inputs is continued after the last of them."""
    head = _name(plan, node)
    drawn.add(node.id)
    fed: list[list[str]] = []
    answers = [each for each in graph.consumers_of(node) if isinstance(each, AnswerNode)]
    for each in graph.consumers_of(node):
        if isinstance(each, AnswerNode):
            continue
        is_last = all(other in drawn for other in each.inputs)
        fed.append(_lines(plan, graph, each, drawn) if is_last else [_name(plan, each)])
    if answers:
        partial_set = shorten(one_line(answers[0].planned.name), _NAME_WIDTH)
        fed.append([partial_set if len(answers) == 1 else count(len(answers), "query", "queries")])
    found: list[str] = []
    for first, *others in fed:
        found.append((" " * len(head) if found else head) + _ARROW + first)
        found += [" " * (len(head) + len(_ARROW)) + line for line in others]
    return found or [head]


def _name(plan: Plan, node: Node) -> str:
    match node:
        case StreamNode(stream=stream):
            return shorten(one_line(stream.name), _NAME_WIDTH)
        case RelationNode(planned=planned):
            return shorten(f"relation {one_line(planned.name)}", _NAME_WIDTH)
        case EnrichedNode(stream=stream):
            return shorten(one_line(" + ".join([stream.base, *stream.relations])), _NAME_WIDTH)
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


def graph_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {"id": node.id, "kind": node.kind, "inputs": list(node.inputs), **_place(node)} for node in graph_of(plan).nodes
    ]


def _place(node: Node) -> dict[str, Any]:
    """The place of the node's details in the rest of the JSON."""
    match node:
        case StreamNode(stream=stream):
            return {"stream": stream.name}
        case RelationNode(planned=planned):
            return {"relation": planned.name}
        case EnrichedNode(stream=stream):
            return {"enriched": stream.name}
        case ScanNode(scan=scan):
            return {"scan": scan.number}
        case SetNode(partial_set=partial_set):
            return {"set": partial_set.number}
        case TreeNode(partial_set=partial_set, tree=tree):
            return {"set": partial_set.number, "tree": tree.number}
        case FoldNode(planned=join):
            return {"join": join.name}
        case RowsNode(planned=rows):
            return {"rows": rows.name}
        case AnswerNode(planned=planned):
            return {"query": planned.name, "shape": planned.shape}
    return {}
