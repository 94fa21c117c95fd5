"""EXPLAIN of update patterns: how the present result of each query changes, and what that means for sinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windloom.explain.lines import fact, listing, one_line
from windloom.model.emission import VALID_UNTIL, Emits
from windloom.model.figures import count
from windloom.model.patterns import Pattern, pattern_of
from windloom.model.query import Query
from windloom.plan.physical import Plan

_SHOWN = 6


def sink_text(query: Query) -> str:
    """What a sink receives from the query, and which sink keeps its present result."""
    rows, pattern = query.rows, pattern_of(query).pattern
    if rows is not None and rows.columns:
        if pattern is Pattern.MONOTONIC:
            return "rows are appended, and none is withdrawn"
        if rows.tells_end:
            return f"each row once, with `{VALID_UNTIL}`: nothing is withdrawn, and the sink 'current' drops it then"
        if query.emission.kind is Emits.CHANGES:
            return "rows that come and go, as insert and delete: only tuples to come tell when a row goes"
        adds = f"`{VALID_UNTIL}`" if pattern.is_predictable and rows.has_lifetimes else "insert and delete"
        return f"all rows of every window; EMIT CHANGES reports each once, with {adds}"
    if query.emission.kind is Emits.CHANGES:
        return "insert, update and delete by group: a sink applies them one after another"
    if query.emission.kind is Emits.EARLY:
        return (
            "a final row per window and group; before it provisional ones (`report`, `as_of`), each of which the next"
            f" replaces: about {_open_windows(query)} of each group are open, and a later report may withdraw one"
        )
    text = "a row per window and group, which the one of the next window replaces"
    if query.window.emission_obstacle(Emits.CHANGES) is None:
        text += "; EMIT CHANGES reports what differs"
    return text


def _open_windows(query: Query) -> str:
    """The number of windows that a new tuple lies in; a delay leaves more of them open."""
    windows = query.window.windows_per_tuple
    return "1 window" if windows is None else count(max(1, round(windows)), "window")


def pattern_facts(query: Query) -> Iterator[tuple[str, str]]:
    """The update pattern of one query, as labelled facts."""
    found = pattern_of(query)
    if query.emission.kind is not Emits.FINAL:
        yield "emits", str(query.emission).removeprefix("EMIT ")
    yield "pattern", f"{found.pattern}: {found.reason}"
    yield "sinks", sink_text(query)


def pattern_json(query: Query) -> dict[str, Any]:
    found = pattern_of(query)
    return {
        "emits": str(query.emission).removeprefix("EMIT ").lower(),
        "pattern": str(found.pattern),
        "reason": found.reason,
        "sinks": sink_text(query),
    }


def pattern_lines(plan: Plan) -> Iterator[str]:
    """The update patterns of all queries; queries with the same pattern share a line."""
    alike: dict[tuple[int, str, str], list[str]] = {}
    for planned in plan.queries:
        found = pattern_of(planned.query)
        alike.setdefault((found.pattern.rank, found.reason, sink_text(planned.query)), []).append(planned.name)
    if not alike:
        return
    yield ""
    yield "Results"
    for (rank, reason, sinks), names in sorted(alike.items()):
        shown = f"{count(len(names), 'query', 'queries')} ({listing(map(one_line, names), _SHOWN)})"
        yield from fact(list(Pattern)[rank], f"{shown}: {reason}")
        yield from fact("", sinks)
