"""The names of the parts of a plan: trees, sets, components, techniques, answers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from windloom.explain.lines import one_line, shorten
from windloom.model.figures import amount, count
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.model.windows import Window
from windloom.plan.physical import Member, PartialSet, Plan, PlannedComponent, PlannedJoin, Tree

_COMPONENT_WIDTH = 40


def tree_name(plan: Plan, partial_set: PartialSet, tree: Tree) -> str:
    """The name of a tree. Trees are numbered within their set, so the set's number comes first if there are several."""
    return f"tree {tree.number}" if len(plan.sets) == 1 else f"tree {partial_set.number}.{tree.number}"


def strategy_name(plan: Plan) -> str:
    """The strategy; for `auto`, also the strategies that it chose, which may differ from set to set."""
    chosen = sorted({partial_set.strategy for partial_set in plan.sets} - {plan.strategy})
    return f"{plan.strategy} ({', '.join(chosen)})" if chosen else plan.strategy


def predicate_text(partial_set: PartialSet) -> str:
    return "every tuple" if partial_set.where is None else one_line(partial_set.where.sql)


def grouping(partial_set: PartialSet) -> str:
    return ", ".join(one_line(expression.sql) for expression in partial_set.group_by) or "none"


def counting(partial_set: PartialSet) -> str | None:
    """How the tuples of a set of windows of rows are counted; None if slices are of time."""
    if partial_set.counted_by is None:
        return None
    keys = ", ".join(one_line(expression.sql) for expression in partial_set.counted_by)
    return f"tuples of each {keys} in order of time" if keys else "all tuples in order of time"


def techniques(partial_set: PartialSet, tree: Tree, queries: Iterable[Member]) -> str:
    """The technique that answers each component that these queries of the tree ask for."""
    if not partial_set.window.is_sliced:
        return "none: a window is one cell"
    wanted = {component for planned in queries for component in planned.query.components}
    by_technique: dict[str, list[str]] = {}
    for planned_component, technique in zip(partial_set.components, tree.techniques, strict=True):
        if planned_component.component in wanted:
            by_technique.setdefault(technique, []).append(component_name(str(planned_component.component)))
    return "; ".join(f"{', '.join(parts)} by {technique}" for technique, parts in by_technique.items())


def component_name(text: str) -> str:
    return shorten(one_line(text), _COMPONENT_WIDTH)


def property_names(planned: PlannedComponent) -> list[str]:
    """The known properties of a component's operation."""
    return [str(has.name).lower().replace("_", " ") for has in planned.family.has]


def windows_over(plan: Plan, stream: Stream) -> list[Window]:
    """The windows of all queries through which a stream is read."""
    return [window for planned in plan.queries for window in planned.query.source.windows_over(stream.name)]


def windows_of_a_tuple(windows: Iterable[Window]) -> str:
    """The number of windows of queries that a tuple lies in.

    >>> from windloom.model import LandmarkWindow, TimeWindow
    >>> windows_of_a_tuple([TimeWindow(60, 10), LandmarkWindow(60)])
    '6 windows, and in every later one of 1 landmark query'
    >>> windows_of_a_tuple([TimeWindow(60, 60)])
    '1 window'
    """
    found = [window.windows_per_tuple for window in windows]
    growing = found.count(None)
    text = amount(sum(each for each in found if each is not None), "window")
    return text + (
        f", and in every later one of {count(growing, 'landmark query', 'landmark queries')}" if growing else ""
    )


def answer_text(planned: Member | PlannedJoin) -> str:
    """The columns of the answer, and the condition for rows to be reported."""
    if planned.query.is_side:
        kept = ", ".join(component_name(str(part)) for part in planned.query.keeps)
        return f"{kept} by {', '.join(one_line(each.name) for each in planned.query.group_by)}, for folds of joins"
    text = output_text(planned.query)
    having = planned.query.having
    return text if having is None else f"{text} HAVING {one_line(spelled_out(planned.query, having.sql))}"


def output_text(query: Query) -> str:
    """The answer's columns after those of the window, as the user would write them: `symbol, avg(price) AS p`."""
    parts = [_named(grouping.expression.sql, grouping.name) for grouping in query.group_by]
    for output in query.outputs:
        if output.aggregate is not None:
            parts.append(_named(str(query.aggregates[output.aggregate]), output.name))
        elif output.expression is not None:
            parts.append(_named(spelled_out(query, output.expression.sql), output.name))
    return one_line(", ".join(parts))


def _named(sql: str, name: str) -> str:
    return sql if sql == name else f"{sql} AS {name}"


def spelled_out(query: Query, sql: str) -> str:
    """SQL over a query's aggregates and groupings, with those written in place of `__a0`, `__g0`, …"""

    def spell(match: re.Match[str]) -> str:
        index = int(match.group(2))
        if match.group(1) == "a":
            return str(query.aggregates[index])
        return query.group_by[index].expression.sql

    return re.sub(r"\b__([ag])(\d+)\b", spell, sql)
