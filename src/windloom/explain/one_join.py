"""EXPLAIN of one join: its text, the path of each side through the plan, how sides are folded, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

from windloom.explain.cost_views import CostView
from windloom.explain.joins import (
    bits_text,
    fold_text,
    joined_text,
    link_text,
    partners_text,
    shards_text,
    side_text,
    tuples_text,
)
from windloom.explain.labels import answer_text
from windloom.explain.lines import fact, one_line, wrapped
from windloom.explain.patterns import pattern_facts
from windloom.explain.scans import fed_text
from windloom.explain.slices import rate_text
from windloom.model.time import format_duration
from windloom.plan.outputs import why_spark
from windloom.plan.physical import Plan, PlannedJoin
from windloom.plan.sharding import sharding_of


def one_join_lines(plan: Plan, planned: PlannedJoin, costs: CostView) -> Iterator[str]:
    """The lines that follow the text of the query."""
    join = planned.join
    yield from wrapped(f"Join {joined_text(join)}", "", "  ")
    label = "links"
    for link in join.links:
        yield from fact(label, link_text(join, link))
        label = ""
    yield from fact("plan", bits_text(plan, planned))
    yield from fact("fold", fold_text(plan, planned))
    if planned.tuples:
        yield from fact("", tuples_text(planned))
    yield from fact("executors", shards_text(plan, planned, sharding_of(plan)))
    for number, place in enumerate(planned.sides):
        partial_set, tree, _ = plan.side(place)
        yield ""
        yield from wrapped(f"Side {join.sides[number].alias}", "", "  ")
        yield from fact("reads", side_text(plan, planned, number))
        yield from fact("→ scan", fed_text(plan, partial_set))
        yield from fact("→ tree", rate_text(partial_set, tree.edges))
        yield from fact("shares", partners_text(plan, planned, place))
    yield ""
    yield "Answer"
    window = join.window
    yield from fact("window", f"{window}: window_end is common to all sides, window_start the earliest")
    yield from fact("reported", f"once the watermarks of {_watermarks(plan, planned)} pass {window.passed_text}")
    for label, text in pattern_facts(planned.query):
        yield from fact(label, text)
    yield from fact("columns", f"window_start, window_end, {answer_text(planned)}")
    if not planned.query.is_plain:
        why = why_spark(plan.shapes[planned.shape])
        by = "without Spark" if why is None else f"by Spark: Windloom does not evaluate {one_line(why)} itself"
        yield from fact("", f"evaluated {by}")
    for name, text in costs.join_facts(planned):
        yield from fact(name, text)


def _watermarks(plan: Plan, planned: PlannedJoin) -> str:
    found = []
    for name in planned.query.streams:
        delay = plan.stream(name).delay_ticks
        found.append(f"{one_line(name)} (latest event − {format_duration(delay)})" if delay else one_line(name))
    return " and ".join(found)
