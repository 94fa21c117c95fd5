"""The sides of joins as hidden plain queries, which sets and trees treat like any other query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from windloom.model.query import Grouping, Query
from windloom.plan.plan import Plan, PlannedJoin
from windloom.plan.scans import NativeScan


def sides_of(query: Query) -> Iterator[Query]:
    """Yield the hidden queries of a join query, in the order of its sides; none for other queries.

    The name of a side describes it completely, so joins that ask the same of a stream have the same side. A side whose
    windows grow from a landmark belongs to one join only, because its landmark depends on when the join was added.
    """
    for side in () if query.join is None else query.join.sides:
        parts = [f"{side.source.stream} {side.window}"]
        parts += [f"WHERE {side.where.sql}"] if side.where is not None else []
        parts += [f"GROUP BY {', '.join(expression.sql for expression in side.group_by)}"]
        parts += [f"closed with {', '.join(query.streams)}"]
        parts += [f"for {query.name}"] if side.window.extent_ticks is None and not side.is_relation else []
        yield Query(
            f"⋈ {' '.join(parts)}",
            replace(side.source, alias=None),
            side.where,
            tuple(Grouping(expression.sql, expression) for expression in side.group_by),
            aggregates=(),
            outputs=(),
            having=None,
            text=f"side of a join: {' '.join(parts)}",
            predicate=side.predicate,
            keeps=side.components,
            closes_with=query.streams,
        )


def with_sides(queries: Iterable[Query]) -> list[Query]:
    """Queries of one stream each: the plain ones, and for joins their sides, each once, with all that joins need.

    Row queries are left out, because they are not answered from partials.
    """
    by_name: dict[str, Query] = {}
    for query in queries:
        if query.rows is not None:
            continue
        for side in (query,) if query.join is None else sides_of(query):
            known = by_name.get(side.name)
            if known is not None:
                side = replace(known, keeps=tuple(dict.fromkeys(known.keeps + side.keeps)))
            by_name[side.name] = side
    return list(by_name.values())


# The sides of a join that Spark aggregates early, as one bit per side, and the names of such plans in source D.


def early_sides(plan: Plan, join: PlannedJoin) -> tuple[bool, ...]:
    """Return whether each side of a join is early: aggregated by Spark before anything leaves it."""
    return tuple(isinstance(plan.scan_of(plan.sets[place.set]), NativeScan) for place in join.sides)


def plan_name(early: tuple[bool, ...]) -> str:
    """Return the name of the plan in source D.

    >>> plan_name((True, False)), plan_name((False, False, False))
    ('EAP10', 'LAP')
    """
    return f"EAP{''.join('1' if is_early else '0' for is_early in early)}" if any(early) else "LAP"
