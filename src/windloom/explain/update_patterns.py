"""Update patterns: how the rows of a query's present result come and go, by rules over the parts of the query.

From the simplest to the most complex: no row ever goes (monotonic); every row goes after the same time (weakest); the
time at which a row goes is known when it comes (weak); that time depends on tuples to come (strict). A window of time
is weakest; a window of rows or a session is strict. Filters and projections change nothing; UNION ALL is as complex as
its most complex part; joins, EXISTS, DISTINCT, UNION and INTERSECT are at least weak; EXCEPT, NOT EXISTS, LEFT JOIN and
aggregation are strict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from windloom.explain.node import ExplainNode, Fact
from windloom.explain.words import labelled, listing, one_line
from windloom.model.clauses import VALID_UNTIL, Emits
from windloom.model.formatting import count
from windloom.model.query import Query
from windloom.model.rows import Body, Reports, Selection, SetKind, SetOperation
from windloom.model.stream import JoinKind
from windloom.model.windows import Window

_RANK = attrgetter("pattern.rank")
#: Of queries with the same pattern, this many are named.
_SHOWN = 6


class Pattern(StrEnum):
    """How rows of a present result come and go, from the simplest to the most complex."""

    MONOTONIC = "monotonic"
    WEAKEST = "weakest"
    WEAK = "weak"
    STRICT = "strict"

    @property
    def rank(self) -> int:
        return list(Pattern).index(self)


@dataclass(frozen=True, slots=True)
class UpdatePattern:
    """An update pattern and the reason for it."""

    pattern: Pattern
    reason: str


def pattern_of(query: Query) -> UpdatePattern:
    """Return the update pattern of a query's present result.

    >>> from windloom.model import Aggregate, TimeWindow, WindowedStream
    >>> query = Query("q", WindowedStream("s", TimeWindow(10, 5)), None, (), (Aggregate("count"),), (), None, "")
    >>> pattern_of(query).pattern
    <Pattern.STRICT: 'strict'>
    """
    rows = query.rows
    if rows is None or not rows.columns:
        return UpdatePattern(Pattern.STRICT, "a group's row is replaced when tuples to come change it")
    if rows.within:
        return UpdatePattern(Pattern.MONOTONIC, "pairs of an interval join are reported once, and never go")
    if rows.reports is not Reports.STANDING and not rows.tells_end:
        word = "enter" if rows.reports is Reports.ENTERING else "leave"
        return UpdatePattern(Pattern.MONOTONIC, f"rows that {word} are reported once, and never go")
    return _of_body(rows.body)


def _of_body(body: Body) -> UpdatePattern:
    """Return the most complex pattern that a part of the body gives to its rows; of equal ones, the first."""
    rules: list[tuple[bool, Pattern, str]]
    if isinstance(body, SetOperation):
        update, is_distinct = max(_of_body(body.left), _of_body(body.right), key=_RANK), body.kind is SetKind.UNION
        is_except = body.kind in (SetKind.EXCEPT, SetKind.EXCEPT_ALL)
        is_intersect = body.kind in (SetKind.INTERSECT, SetKind.INTERSECT_ALL)
        is_mixed = update.pattern is Pattern.WEAKEST and len({window.range_ticks for window in _windows(body)}) > 1
        rules = [
            (is_except, Pattern.STRICT, "a row to come on the right withdraws one of the left"),
            (is_intersect, Pattern.WEAK, "a row goes with the first of both sides"),
            (is_mixed, Pattern.WEAK, "rows of both sides stay for different times"),
        ]
    else:
        update, is_distinct = max((_of_window(each.window) for each in body.strands), key=_RANK), body.is_distinct
        is_outer = any(attached.kind is JoinKind.LEFT for attached in body.attached)
        is_anti = [looked.kind is JoinKind.ANTI for looked in body.looked]
        rules = [
            (body.joined > 1, Pattern.WEAK, "a joined row goes with the first of its tuples"),
            (is_outer, Pattern.STRICT, "a match to come withdraws the row without one"),
            (any(is_anti), Pattern.STRICT, "a match to come withdraws a row"),
            (not all(is_anti), Pattern.WEAK, "a row goes with the last of its matches"),
        ]
    for applies, pattern, reason in [*rules, (is_distinct, Pattern.WEAK, "a row goes with the last of the equal ones")]:
        if applies and update.pattern.rank < pattern.rank:
            update = UpdatePattern(pattern, reason)
    return update


def _of_window(window: Window) -> UpdatePattern:
    if window.is_of_positions or not window.is_sliced:
        return UpdatePattern(Pattern.STRICT, f"when a tuple leaves {window} depends on tuples to come")
    if window.extent_ticks is None:
        return UpdatePattern(Pattern.MONOTONIC, f"no tuple leaves {window}")
    return UpdatePattern(Pattern.WEAKEST, f"every tuple leaves {window} after the same time")


def _windows(body: Body) -> list[Window]:
    if isinstance(body, Selection):
        return [strand.window for strand in body.strands]
    return [*_windows(body.left), *_windows(body.right)]


def sink_text(query: Query) -> str:
    """Return what a sink receives from the query, and which sink keeps its present result."""
    rows, pattern = query.rows, pattern_of(query).pattern
    if rows is not None and rows.columns:
        if pattern is Pattern.MONOTONIC:
            return "rows are appended, and none is withdrawn"
        if rows.tells_end:
            return f"each row once, with `{VALID_UNTIL}`: nothing is withdrawn, and the sink 'current' drops it then"
        if query.emission.kind is Emits.CHANGES:
            when = ": only tuples to come tell when a row goes" if pattern is Pattern.STRICT else ""
            return f"rows that come and go, as insert and delete{when}"
        # Of these patterns it is known, when a row comes, when it will go.
        adds = (
            f"`{VALID_UNTIL}`"
            if pattern in (Pattern.WEAKEST, Pattern.WEAK) and rows.has_lifetimes
            else "insert and delete"
        )
        return f"all rows of every window; EMIT CHANGES reports each once, with {adds}"
    if query.emission.kind is Emits.CHANGES:
        return "insert, update and delete by group: a sink applies them one after another"
    if query.emission.kind is Emits.EARLY:
        # A new tuple lies in this many windows; a delay leaves more of them open.
        windows = query.window.windows_per_tuple
        open_windows = "1 window" if windows is None else count(max(1, round(windows)), "window")
        return (
            "a final row per window and group; before it provisional ones (`report`, `as_of`), each of which the next"
            f" replaces: about {open_windows} of each group are open, and a later report may withdraw one"
        )
    text = "a row per window and group, which the one of the next window replaces"
    if Emits.CHANGES not in query.window.emission_obstacles:
        text += "; EMIT CHANGES reports what differs"
    return text


def pattern_node(query: Query) -> ExplainNode:
    """Return the update pattern of one query, with the name of the query."""
    update, sinks = pattern_of(query), sink_text(query)
    emits = str(query.emission).removeprefix("EMIT ")
    facts = [
        Fact("emits", emits.lower(), () if query.emission.kind is Emits.FINAL else emits),
        Fact("pattern", str(update.pattern), f"{update.pattern}: {update.reason}"),
        Fact("reason", update.reason),
        Fact("sinks", sinks, sinks),
    ]
    return ExplainNode(query.name, facts)


def results_lines(patterns: Sequence[ExplainNode]) -> Iterator[str]:
    """Yield the update patterns of all queries; queries with the same pattern share a line."""
    alike: dict[tuple[int, str, str], list[str]] = {}
    for node in patterns:
        rank = Pattern(node["pattern"].value).rank
        alike.setdefault((rank, node["reason"].value, node["sinks"].value), []).append(one_line(node.name))
    if alike:
        yield ""
        yield "Results"
    for (rank, reason, sinks), names in sorted(alike.items()):
        shown = f"{count(len(names), 'query', 'queries')} ({listing(names, _SHOWN)})"
        yield from labelled(list(Pattern)[rank], f"{shown}: {reason}")
        yield from labelled("", sinks)
