"""EXPLAIN SHARING as JSON, added to a plan's under `sharing`.

`sharing`
    unit             "seconds of work per second of event time": of every figure below unless it says otherwise
    constants        where the constants come from
    total, job       of the whole plan; of starting one Spark job per round
    sets[]           {number, strategy, statistics, scan, partials, merge, total, trees[]}
      statistics     {tuples_per_second, groups, round_seconds, tuples_per_slice_and_group, sources {…}}
      trees[]        {name, own, answers, techniques {component: seconds}, total, weaveability | null,
                      mergers[] {tree, weaveability, more}}
    queries {name}   {seconds, share, alone, saved, added_edges_per_second, hindrance | null, advice[]}
      advice[]       {slide_ticks, saves}
"""

from __future__ import annotations

from typing import Any

from windloom.explain.reasons import tree_name
from windloom.plan.costs import QueryShare, SetSeconds, SharingReport
from windloom.plan.physical import PartialSet, Plan

Json = dict[str, Any]


def sharing_json(plan: Plan, report: SharingReport) -> Json:
    total = report.seconds.total
    return {
        "unit": "seconds of work per second of event time",
        "constants": report.seconds.source,
        "total": total,
        "job": report.seconds.job,
        "sets": [_set(plan, one, costs, report) for one, costs in zip(plan.sets, report.seconds.sets, strict=True)],
        "queries": {name: _query(one, total) for name, one in report.queries.items()},
    }


def _set(plan: Plan, one: PartialSet, costs: SetSeconds, report: SharingReport) -> Json:
    known = one.statistics
    return {
        "number": one.number,
        "strategy": one.strategy,
        "statistics": {
            "tuples_per_second": known.events_per_second,
            "groups": known.groups,
            "round_seconds": known.round_seconds,
            "regularity": known.regularity,
            "tuples_per_slice_and_group": known.events_per_second / (one.edges.edges_per_second * known.groups),
            "sources": {"rate": known.rate_source, "groups": known.groups_source, "round": known.round_source},
        },
        "scan": costs.scan,
        "partials": costs.partials,
        "merge": costs.merge,
        "total": costs.total,
        "trees": [
            {
                "name": tree_name(plan, one, tree),
                "own": part.own,
                "answers": part.answers,
                "techniques": {
                    str(component.component): seconds
                    for component, seconds in zip(one.components, part.techniques, strict=True)
                    if seconds
                },
                "total": part.total,
                "weaveability": report.common.get((one.number, tree.number)),
                "mergers": [
                    {"tree": merger.other, "weaveability": merger.weaveability, "more": merger.more}
                    for merger in report.mergers.get((one.number, tree.number), ())
                ],
            }
            for tree, part in zip(one.trees, costs.trees, strict=True)
        ],
    }


def _query(one: QueryShare, total: float) -> Json:
    return {
        "seconds": one.seconds,
        "share": one.seconds / total,
        "alone": one.alone,
        "saved": one.saved,
        "added_edges_per_second": one.added_edges_per_second,
        "hindrance": None if one.hindrance is None else {"query": one.hindrance[0], "common_ticks": one.hindrance[1]},
        "advice": [{"slide_ticks": advice.slide_ticks, "saves": advice.saves} for advice in one.advice],
    }
