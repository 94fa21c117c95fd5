"""The whole plan as one tree of facts: its streams, relations, scans, sets, joins, row queries and results."""

from __future__ import annotations

from windloom.explain.costs import CostView
from windloom.explain.joins import join_node
from windloom.explain.node import ExplainNode, Fact
from windloom.explain.rows import enriched_node, relation_node, rows_node, store_node
from windloom.explain.scans import scan_node
from windloom.explain.sets import set_node
from windloom.explain.sharing import sharing
from windloom.explain.update_patterns import pattern_node
from windloom.explain.words import origin_json, origin_text, strategy_name, windows_of_a_tuple, windows_over
from windloom.model.figures import amount, count
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.plan.expressions import why_spark
from windloom.plan.physical import Plan, Shape


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
    parts = (
        count(counts["queries"], "query", "queries"),
        count(counts["streams"], "stream"),
        *([count(counts["relations"], "relation")] if plan.relations else []),
        count(counts["scans"], "scan"),
        count(counts["sets"], "set") + " of partials",
        count(counts["trees"], "tree"),
        *([count(len(plan.rows), "row query", "row queries")] if plan.rows else []),
    )
    chosen = f"strategy {strategy_name(plan)}, slicing {plan.slicing}, technique {plan.technique}"
    cost = costs.plan_fact()
    shared = sharing(plan)
    facts = [
        Fact("strategy", plan.strategy, chosen),
        Fact("slicing", plan.slicing),
        Fact("technique", plan.technique),
        Fact("intake", plan.intake),
        Fact("join_plan", plan.join_plan),
        Fact("fold", plan.fold, f"joins {plan.join_plan}, fold {plan.fold}" if plan.joins else ()),
        Fact("cost", cost.value, cost.text if counts["queries"] else ()),
        Fact("counts", counts),
    ]
    children = {
        "streams": [stream_node(plan, stream) for stream in plan.streams],
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


def stream_node(plan: Plan, stream: Stream) -> ExplainNode:
    rate, origin = plan.rate_of(stream)
    windows = windows_over(plan, stream)
    facts = [
        Fact("name", stream.name),
        Fact("time", stream.time),
        Fact("delay_ticks", stream.delay_ticks),
        Fact("events_per_second", rate, f"{amount(rate, 'event/s', 'events/s')} ({origin_text(origin)})", "rate"),
        Fact("rate", origin.source),
        Fact("origin", origin_json(origin)),
        Fact(
            "windows_per_tuple",
            sum(window.windows_per_tuple or 0.0 for window in windows),
            f"{windows_of_a_tuple(windows)}, all queries together",
            "a tuple lies in",
        ),
    ]
    return ExplainNode(f"stream {stream.name}", facts)


def _shape_node(shape: Shape) -> ExplainNode:
    def columns(pairs: tuple[tuple[str, DataType], ...]) -> list[dict[str, str]]:
        return [{"name": name, "type": type_.name} for name, type_ in pairs]

    why, select = why_spark(shape), None
    if shape.select is not None:
        select = [{"name": name, "sql": expression.sql} for name, expression in shape.select]
    facts = [
        Fact("groups", columns(shape.groups)),
        Fact("columns", columns(shape.columns)),
        Fact("select", select),
        Fact("having", None if shape.having is None else shape.having.sql),
        Fact("evaluated_by", None if select is None else "windloom" if why is None else "spark"),
        Fact("why_spark", why),
    ]
    return ExplainNode("shape", facts)
