"""EXPLAIN as JSON: the whole plan for programs, under stable keys.

    format           "windloom-plan/2"; the number changes when a key changes its meaning or goes away
    strategy, slicing, technique, intake, join_plan, fold
                     the choices the plan was made with
    cost             {unit, total, exact; predicted: constants, job; of the papers: read, combine}
    counts           {queries, streams, relations, scans, sets, trees}
    nodes[]          {id, kind: "stream" | "relation" | "enriched" | "scan" | "set" | "tree" | "fold" | "rows" |
                      "answer", inputs[] of ids, and the stream, relation, enriched stream, scan, set, tree, join,
                      row query, query or shape that it is}; every node comes after its inputs
    streams[]        {name, time, delay_ticks, events_per_second, rate: "given" | "observed" | "assumed", origin,
                      windows_per_tuple}
      origin           {source, rounds, trend}; trend: the share by which the figure changes per round, if certain
    relations[]      {name, retroactive, columns {name: type}, version | null, sets[] that hold it, projects[] columns
                      of it, read_by[] queries}
      version          {number, round, rows | null, bytes | null}
    enriched[]       {name, stream, joined[] {relation, label, kind: "inner" | "left" | "semi" | "anti", on}}: streams
                      whose tuples are joined with relations as they come in; scans and sets call them by these names
    scans[]          {number, stream, intake: "woven" | "native", why, where, predicates[], feeds[] {set, bit | null}},
                      woven: columns[], read_by: "driver" if the driver reads it, rolled_up {sets, signatures} if any;
                      native: group_by[], components[], edges_per_second
    sets[]           {number, stream, where, group_by[] {expression, type}, counted_by[] | null, pace, components[],
                      statistics, strategy, cost, edges, slice_id, trees[]}
      statistics       {tuples_per_second, stream_events_per_second, selectivity, groups, cells_per_slice,
                        round_seconds, regularity, spread, tuples_per_slice_and_group,
                        origins {rate, selectivity, groups, round, evenness}}
      components[]     {name, kind, argument, by, where, type, family, properties[], asked_by}
      edges            {per_second, exact, mean_slice_seconds, composite_slide, composite_slide_ticks, per_composite,
                        classes[] {period_ticks, residue_ticks}}
      slice_id         {way, text, …} and the numbers of the way
      cost             {total; predicted: scan, partials, merge; of the papers: read}
      trees[]          {number, name, edges, marks, techniques {component: technique}, cost, queries[]}
        cost             {total, exact; predicted: own, combine, answers; of the papers: edges_per_second,
                          operations_per_edge, weaveability}
        queries[]        {name, text, answer, having, shape,
                          window {kind: "range" | "landmark" | "rows" | "session" | "version" of a relation,
                                  range_ticks, slide_ticks, offset_ticks, text},
                          shares {slices_with, partials_with, same_window, components {name: {in_tree, in_set}}}}
    joins[]          {name, text, window, sides[], links[] {parent, child, kind, text}, plan: "LAP" | "EAP…", fold,
                      matrix_with[] of joins, order[] of links, cost {fold} | null, executors, answer, having, shape}
      sides[]          {alias, stream, window, where, group_by[], components[], set, tree, query, early, shared_with};
                        among the queries of that tree, the side has this name and no shape
    stores[]         {stream, columns[], where[] | null, kept_ticks, tuples, bytes, origin}: tuples that a stream keeps
    rows[]           {name, text, window, reports, strands[] {alias, stream, window | null, where | null},
                      orders[] of strands, by selection, expected_rows, keeps[] as text, shape}: row queries
    results          {query: {emits, pattern: "monotonic" | "weakest" | "weak" | "strict", reason, sinks}}
    shapes[]         {groups[] {name, type}, columns[] {name, type}, select[] {name, sql} | null, having | null,
                      evaluated_by: windloom | spark | null, why_spark | null}

Ticks are microseconds. In a set with `counted_by`, whose windows are of rows, they are positions of tuples, a second is
a million of them, and `pace` such seconds pass per second of event time. `composite_slide_ticks` and `per_composite`
are null if they exceed 2^53, which many readers of JSON cannot hold; `composite_slide` gives the same in words. `exact`
is false if a density was estimated. `marks` is null unless the slicing reads running values inside slices. Counts in
`shares` are of other queries.
"""

from __future__ import annotations

from typing import Any

from windloom.explain.cost_views import CostView
from windloom.explain.durations import period
from windloom.explain.graph_lines import graph_json
from windloom.explain.joins import joins_json
from windloom.explain.labels import output_text, property_names, spelled_out, tree_name, windows_over
from windloom.explain.partners import Sharing, asked, sharing
from windloom.explain.patterns import pattern_json
from windloom.explain.relations import enriched_json, relations_json
from windloom.explain.rows import rows_json, stores_json
from windloom.explain.scans import scans_json
from windloom.explain.slices import mean_slice_ticks, measure_of, slice_id_text
from windloom.explain.statistics import origin_json, statistics_json
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.plan.outputs import why_spark
from windloom.plan.physical import Member, PartialSet, Plan, PlannedSide, Shape, Tree
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.identify import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId

FORMAT = "windloom-plan/2"
_LARGEST_SAFE = 2**53

Json = dict[str, Any]


def explain_json(plan: Plan, costs: CostView) -> Json:
    """The plan as values that `json.dumps` takes."""
    shared = sharing(plan)
    return {
        "format": FORMAT,
        "strategy": plan.strategy,
        "slicing": plan.slicing,
        "technique": plan.technique,
        "intake": plan.intake,
        "join_plan": plan.join_plan,
        "fold": plan.fold,
        "cost": costs.plan_json(),
        "counts": {
            "queries": sum(1 for _ in plan.queries),
            "streams": len(plan.streams),
            "relations": len(plan.relations),
            "scans": len(plan.scans),
            "sets": len(plan.sets),
            "trees": sum(1 for _ in plan.trees),
        },
        "nodes": graph_json(plan),
        "streams": [_stream(plan, stream) for stream in plan.streams],
        "relations": relations_json(plan),
        "enriched": enriched_json(plan),
        "scans": scans_json(plan),
        "sets": [_set(plan, partial_set, costs, shared) for partial_set in plan.sets],
        "joins": joins_json(plan, costs),
        "stores": stores_json(plan),
        "rows": rows_json(plan),
        "results": {planned.name: pattern_json(planned.query) for planned in plan.queries},
        "shapes": [_shape(shape) for shape in plan.shapes],
    }


def _stream(plan: Plan, stream: Stream) -> Json:
    rate, origin = plan.rate_of(stream)
    return {
        "name": stream.name,
        "time": stream.time,
        "delay_ticks": stream.delay_ticks,
        "events_per_second": rate,
        "rate": origin.source,
        "origin": origin_json(origin),
        "windows_per_tuple": sum(window.windows_per_tuple or 0.0 for window in windows_over(plan, stream)),
    }


def _set(plan: Plan, partial_set: PartialSet, costs: CostView, shared: dict[str, Sharing]) -> Json:
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
        "edges": _edges(partial_set.edges),
        "slice_id": {"way": partial_set.slice_id.way, "text": how, **_slice_id(partial_set.slice_id)},
        "trees": [_tree(plan, partial_set, tree, costs, shared) for tree in partial_set.trees],
    }


def _tree(plan: Plan, partial_set: PartialSet, tree: Tree, costs: CostView, shared: dict[str, Sharing]) -> Json:
    wanted = {component for planned in tree.queries for component in planned.query.components}
    return {
        "number": tree.number,
        "name": tree_name(plan, partial_set, tree),
        "edges": _edges(tree.edges),
        "marks": _edges(tree.marks) if tree.marks.classes else None,
        "techniques": {
            str(planned.component): technique
            for planned, technique in zip(partial_set.components, tree.techniques, strict=True)
            if planned.component in wanted
        },
        "cost": costs.tree_json(partial_set, tree),
        "queries": [_query(planned, shared[planned.name]) for planned in tree.queries],
    }


def _query(planned: Member, shared: Sharing) -> Json:
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
        "having": _having(query),
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


def _having(query: Query) -> str | None:
    return None if query.having is None else spelled_out(query, query.having.sql)


def _shape(shape: Shape) -> Json:
    def columns(pairs: tuple[tuple[str, DataType], ...]) -> list[Json]:
        return [{"name": name, "type": type_.name} for name, type_ in pairs]

    return {
        "groups": columns(shape.groups),
        "columns": columns(shape.columns),
        "select": None
        if shape.select is None
        else [{"name": name, "sql": expression.sql} for name, expression in shape.select],
        "having": None if shape.having is None else shape.having.sql,
        "evaluated_by": None if shape.select is None else "windloom" if why_spark(shape) is None else "spark",
        "why_spark": why_spark(shape),
    }


def _edges(edges: EdgeSet) -> Json:
    in_composite = edges.count_per_composite
    return {
        "per_second": edges.edges_per_second,
        "exact": edges.density.exact,
        "mean_slice_seconds": mean_slice_ticks(edges) / 1e6,
        "composite_slide": period(edges.composite_slide),
        "composite_slide_ticks": _safe(edges.composite_slide),
        "per_composite": None if in_composite is None else _safe(in_composite),
        "classes": [_class(each) for each in edges.classes],
    }


def _slice_id(slice_id: SliceId) -> Json:
    match slice_id:
        case RegularSlice(edges=edges) | PaneSlice(edges=edges):
            return _class(edges)
        case LookupSlice():
            return {
                "composite_slide_ticks": slice_id.composite_ticks,
                "pane_ticks": slice_id.pane_ticks,
                "origin_ticks": slice_id.origin,
                "entries": len(slice_id.table),
            }
        case GreatestSlice(classes=classes):
            return {"classes": len(classes)}


def _class(edges: EdgeClass) -> Json:
    return {"period_ticks": edges.period, "residue_ticks": edges.residue}


def _safe(value: int) -> int | None:
    return value if value <= _LARGEST_SAFE else None
