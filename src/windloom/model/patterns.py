"""Update patterns: how the rows of a query's present result come and go, by rules over the parts of the query.

From the simplest to the most complex: no row ever goes (monotonic); every row goes after the same time (weakest); the
time at which a row goes is known when it comes (weak); that time depends on tuples to come (strict). A window of time
is weakest; a window of rows or a session is strict. Filters and projections change nothing; UNION ALL is as complex as
its most complex part; joins, EXISTS, DISTINCT, UNION and INTERSECT are at least weak; EXCEPT, NOT EXISTS, LEFT JOIN and
aggregation are strict.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windloom.model.join import JoinKind
from windloom.model.query import Query
from windloom.model.rows import Body, Reports, Selection, SetKind, SetOperation
from windloom.model.windows import Window

_LAST_EQUAL = "a row goes with the last of the equal ones"


class Pattern(StrEnum):
    MONOTONIC = "monotonic"
    WEAKEST = "weakest"
    WEAK = "weak"
    STRICT = "strict"

    @property
    def rank(self) -> int:
        return list(Pattern).index(self)

    @property
    def is_predictable(self) -> bool:
        """Whether it is known, when a row comes, when it will go."""
        return self in (Pattern.WEAKEST, Pattern.WEAK)


@dataclass(frozen=True, slots=True)
class Derived:
    """A pattern and the reason for it."""

    pattern: Pattern
    reason: str


def pattern_of(query: Query) -> Derived:
    """The update pattern of a query's present result.

    >>> from windloom.model import Aggregate, TimeWindow, WindowedStream
    >>> query = Query("q", WindowedStream("s", TimeWindow(10, 5)), None, (), (Aggregate("count"),), (), None, "")
    >>> pattern_of(query).pattern
    <Pattern.STRICT: 'strict'>
    """
    rows = query.rows
    if rows is None or not rows.columns:
        return Derived(Pattern.STRICT, "a group's row is replaced when tuples to come change it")
    if rows.within:
        return Derived(Pattern.MONOTONIC, "pairs of an interval join are reported once, and never go")
    if rows.reports is not Reports.STANDING and not rows.tells_end:
        word = "enter" if rows.reports is Reports.ENTERING else "leave"
        return Derived(Pattern.MONOTONIC, f"rows that {word} are reported once, and never go")
    return _of_body(rows.body)


def _of_body(body: Body) -> Derived:
    if isinstance(body, SetOperation):
        return _of_operation(body)
    derived = max([_of_window(strand.window) for strand in body.strands], key=_rank)
    if body.joined > 1:
        derived = _at_least(derived, Pattern.WEAK, "a joined row goes with the first of its tuples")
    for attached in body.attached:
        if attached.kind is JoinKind.LEFT:
            derived = _at_least(derived, Pattern.STRICT, "a match to come withdraws the row without one")
    for looked in body.looked:
        if looked.kind is JoinKind.ANTI:
            derived = _at_least(derived, Pattern.STRICT, "a match to come withdraws a row")
        else:
            derived = _at_least(derived, Pattern.WEAK, "a row goes with the last of its matches")
    return _at_least(derived, Pattern.WEAK, _LAST_EQUAL) if body.is_distinct else derived


def _of_operation(body: SetOperation) -> Derived:
    derived = max(_of_body(body.left), _of_body(body.right), key=_rank)
    if body.kind in (SetKind.EXCEPT, SetKind.EXCEPT_ALL):
        return _at_least(derived, Pattern.STRICT, "a row to come on the right withdraws one of the left")
    if body.kind in (SetKind.INTERSECT, SetKind.INTERSECT_ALL):
        return _at_least(derived, Pattern.WEAK, "a row goes with the first of both sides")
    if derived.pattern is Pattern.WEAKEST and len({window.range_ticks for window in _windows(body)}) > 1:
        derived = Derived(Pattern.WEAK, "rows of both sides stay for different times")
    return _at_least(derived, Pattern.WEAK, _LAST_EQUAL) if body.kind is SetKind.UNION else derived


def _of_window(window: Window) -> Derived:
    if window.is_of_positions or not window.is_sliced:
        return Derived(Pattern.STRICT, f"when a tuple leaves {window} depends on tuples to come")
    if window.extent_ticks is None:
        return Derived(Pattern.MONOTONIC, f"no tuple leaves {window}")
    return Derived(Pattern.WEAKEST, f"every tuple leaves {window} after the same time")


def _at_least(derived: Derived, pattern: Pattern, reason: str) -> Derived:
    return Derived(pattern, reason) if derived.pattern.rank < pattern.rank else derived


def _rank(derived: Derived) -> int:
    return derived.pattern.rank


def _windows(body: Body) -> list[Window]:
    if isinstance(body, Selection):
        return [strand.window for strand in body.strands]
    return [*_windows(body.left), *_windows(body.right)]
