"""The whole plan as one tree of facts: its streams, relations, scans, sets, joins, row queries and results."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from windloom.explain.costs import CostView
from windloom.explain.joins import join_node
from windloom.explain.node import ExplainNode, Fact, json_only
from windloom.explain.rows import enriched_node, relation_node, rows_node, store_node
from windloom.explain.scans import scan_node
from windloom.explain.sets import set_node
from windloom.explain.sharing import sharing
from windloom.explain.update_patterns import pattern_node
from windloom.explain.words import NAME_WIDTH, one_line, origin_text, shorten, strategy_name, tree_name
from windloom.model.formatting import amount, count
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.plan import graph
from windloom.plan.outputs import why_spark
from windloom.plan.plan import Plan, Shape


def plan_tree(plan: Plan, costs: CostView, everything: bool = True) -> ExplainNode:
    """Return the plan with all its parts; unless `everything` is asked for, long lists have only their beginning."""
    counts = {
        "queries": sum(1 for _ in plan.queries),
        "streams": len(plan.streams),
        "relations": len(plan.relations),
        "scans": len(plan.scans),
        "sets": len(plan.sets),
        "trees": sum(1 for _ in plan.trees),
    }
    parts = [count(counts["queries"], "query", "queries"), count(counts["streams"], "stream")]
    parts += [count(counts["relations"], "relation")] if plan.relations else []
    parts += [count(counts["scans"], "scan"), count(counts["sets"], "set") + " of partials"]
    parts += [count(counts["trees"], "tree")]
    parts += [count(len(plan.rows), "row query", "row queries")] if plan.rows else []
    chosen = f"strategy {strategy_name(plan)}, slicing {plan.slicing}, technique {plan.technique}"
    cost = costs.plan_fact()
    shared = sharing(plan)
    facts = [
        Fact("strategy", plan.strategy, chosen),
        *json_only(slicing=plan.slicing, technique=plan.technique, intake=plan.intake, join_plan=plan.join_plan),
        Fact("fold", plan.fold, f"joins {plan.join_plan}, fold {plan.fold}" if plan.joins else ()),
        Fact("cost", cost.value, cost.text if counts["queries"] else ()),
        Fact("counts", counts),
    ]
    children = {
        "nodes": [_graph_node(plan, node) for node in graph.graph_of(plan).nodes],
        "streams": [_stream_node(plan, stream) for stream in plan.streams],
        "relations": [relation_node(plan, planned) for planned in plan.relations],
        "enriched": [enriched_node(stream) for stream in plan.enriched],
        "scans": [scan_node(plan, scan, everything) for scan in plan.scans],
        "sets": [set_node(plan, partial_set, costs, shared, everything) for partial_set in plan.sets],
        "joins": [join_node(plan, planned, costs) for planned in plan.joins],
        "stores": [store_node(plan, store) for store in plan.stores],
        "rows": [rows_node(plan, planned) for planned in plan.rows],
        "results": [pattern_node(planned.query) for planned in plan.queries],
        "shapes": [_shape_node(shape) for shape in plan.shapes],
    }
    return ExplainNode("Plan: " + ", ".join(parts), facts, children=children)


def _graph_node(plan: Plan, node: graph.PlanNode) -> ExplainNode:
    """Return the name of a node of the plan's graph, and the place of its details in the rest of the tree."""
    name, place = node.id, dict[str, Any]()
    match node:
        case graph.StreamNode(stream=stream):
            name, place = one_line(stream.name), {"stream": stream.name}
        case graph.RelationNode(planned=relation):
            name, place = f"relation {one_line(relation.name)}", {"relation": relation.name}
        case graph.EnrichedNode(stream=stream):
            name, place = one_line(" + ".join([stream.base, *stream.relations])), {"enriched": stream.name}
        case graph.ScanNode(scan=scan):
            name = f"scan {scan.number}" + ("" if scan.feeds else ", which counts late tuples")
            place = {"scan": scan.number}
        case graph.SetNode(partial_set=partial_set):
            name = f"set {partial_set.number}" + ("" if node.inputs else ", which no tuple can be part of")
            place = {"set": partial_set.number}
        case graph.TreeNode(partial_set=partial_set, tree=tree):
            name = tree_name(plan, partial_set, tree)
            place = {"set": partial_set.number, "tree": tree.number}
        case graph.FoldNode(planned=join):
            name, place = "fold", {"join": join.name}
        case graph.RowsNode(planned=rows):
            name, place = "rows", {"rows": rows.name}
        case graph.AnswerNode(planned=planned):
            name, place = one_line(planned.name), {"query": planned.name, "shape": planned.shape}
    if isinstance(node, graph.StreamNode | graph.RelationNode | graph.EnrichedNode | graph.AnswerNode):
        name = shorten(name, NAME_WIDTH)  # users' own names may be long
    return ExplainNode(name, json_only(id=node.id, kind=node.kind, inputs=list(node.inputs), **place))


def _stream_node(plan: Plan, stream: Stream) -> ExplainNode:
    rate, origin = plan.rate_of(stream)
    windows = [window for planned in plan.queries for window in planned.query.source.windows_over(stream.name)]
    per_tuple = [window.windows_per_tuple for window in windows]
    in_all, growing = sum(number or 0.0 for number in per_tuple), per_tuple.count(None)
    landmarks = f", and in every later one of {count(growing, 'landmark query', 'landmark queries')}" if growing else ""
    lies_in = f"{amount(in_all, 'window')}{landmarks}, all queries together"
    facts = [
        *json_only(name=stream.name, time=stream.time, delay_ticks=stream.delay_ticks),
        Fact("events_per_second", rate, f"{amount(rate, 'event/s', 'events/s')} ({origin_text(origin)})", "rate"),
        *json_only(rate=origin.source, origin=asdict(origin)),
        Fact("windows_per_tuple", in_all, lies_in, "a tuple lies in"),
    ]
    return ExplainNode(f"stream {stream.name}", facts)


def _shape_node(shape: Shape) -> ExplainNode:
    def columns(pairs: tuple[tuple[str, DataType], ...]) -> list[dict[str, str]]:
        return [{"name": name, "type": type_.name} for name, type_ in pairs]

    why, select = why_spark(shape), None
    if shape.select is not None:
        select = [{"name": name, "sql": expression.sql} for name, expression in shape.select]
    facts = json_only(
        groups=columns(shape.groups),
        columns=columns(shape.columns),
        select=select,
        having=shape.having and shape.having.sql,
        evaluated_by=None if select is None else "windloom" if why is None else "spark",
        why_spark=why,
    )
    return ExplainNode("shape", facts)
