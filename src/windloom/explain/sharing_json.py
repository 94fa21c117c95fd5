"""EXPLAIN SHARING as JSON, added to a plan's under `sharing`.

`sharing`
    unit             "seconds of work per second of event time": the unit of every figure below, if no other is given
    constants        where the constants come from
    total, job       the cost of the whole plan; of starting one Spark job per round
    sets[]           {number, strategy, statistics, scan, partials, merge, total, trees[]}
      statistics     as in the plan
      trees[]        {name, own, answers, techniques {component: seconds}, total, weaveability | null,
                      mergers[] {tree, weaveability, more}}
    queries {name}   {seconds, share, alone, saved, added_edges_per_second, hindrance | null, advice[]}; a join has its
                      part of its sides, which are also listed under names of their own
      advice[]       {slide_ticks, saves}
    folds {name}     the cost of folding each join
"""

from __future__ import annotations

from typing import Any

from windloom.explain.labels import tree_name
from windloom.explain.statistics import statistics_json
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
        "sets": [
            _set(plan, partial_set, costs, report)
            for partial_set, costs in zip(plan.sets, report.seconds.sets, strict=True)
        ],
        "queries": {name: _query(found, total) for name, found in {**report.queries, **report.joins}.items()},
        "folds": dict(report.seconds.folds),
    }


def _set(plan: Plan, partial_set: PartialSet, costs: SetSeconds, report: SharingReport) -> Json:
    return {
        "number": partial_set.number,
        "strategy": partial_set.strategy,
        "statistics": statistics_json(partial_set),
        "scan": costs.scan,
        "partials": costs.partials,
        "merge": costs.merge,
        "total": costs.total,
        "trees": [
            {
                "name": tree_name(plan, partial_set, tree),
                "own": tree_cost.own,
                "answers": tree_cost.answers,
                "techniques": {
                    str(component.component): seconds
                    for component, seconds in zip(partial_set.components, tree_cost.techniques, strict=True)
                    if seconds
                },
                "total": tree_cost.total,
                "weaveability": report.common.get((partial_set.number, tree.number)),
                "mergers": [
                    {"tree": merger.other, "weaveability": merger.weaveability, "more": merger.more}
                    for merger in report.mergers.get((partial_set.number, tree.number), ())
                ],
            }
            for tree, tree_cost in zip(partial_set.trees, costs.trees, strict=True)
        ],
    }


def _query(found: QueryShare, total: float) -> Json:
    return {
        "seconds": found.seconds,
        "share": found.seconds / total,
        "alone": found.alone,
        "saved": found.saved,
        "added_edges_per_second": found.added_edges_per_second,
        "hindrance": None
        if found.hindrance is None
        else {"query": found.hindrance[0], "common_ticks": found.hindrance[1]},
        "advice": [{"slide_ticks": advice.slide_ticks, "saves": advice.saves} for advice in found.advice],
    }
