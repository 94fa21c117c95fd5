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

from windloom.explain.costs import CostView
from windloom.explain.node import Json, node_json
from windloom.explain.tree import plan_tree
from windloom.plan.plan import Plan

FORMAT = "windloom-plan/2"


def explain_json(plan: Plan, costs: CostView) -> Json:
    """Return the plan as values that `json.dumps` takes."""
    tree = plan_tree(plan, costs)
    results = {node.name: node_json(node) for node in tree.children["results"]}
    return {"format": FORMAT, **node_json(tree), "results": results}
