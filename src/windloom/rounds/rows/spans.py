"""The windows of a row query that a round reports, and the tuples of its strands that these need."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.rows import Reports, Rows
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import Window
from windloom.plan.rows import PlannedRows

#: Stands for no round: no tuple was there before.
NO_ROUND = -1


@dataclass(frozen=True, slots=True)
class RowSpan:
    """The ends `first, first + slide, …, last` of a query's windows; None: from the first tuple on, to the last.

    `seen` is the last round whose tuples were there when the window before `first` was reported, `NO_ROUND` if none
    was: a tuple that came later found that window closed, even if it belongs to it.
    """

    first: int | None = None
    last: int | None = None
    seen: int = NO_ROUND

    @property
    def follows(self) -> bool:
        """Whether the window before was reported."""
        return self.seen != NO_ROUND and self.first is not None


def first_end_after(window: Window, tick: int) -> int:
    """Return the first end after a tick.

    >>> from windloom.model.windows import TimeWindow
    >>> [first_end_after(TimeWindow(10, 4), tick) for tick in (-1, 1, 2)]
    [2, 2, 6]
    """
    return tick - (tick - window.end_ticks) % window.slide_ticks + window.slide_ticks


def last_end_upto(window: Window, tick: int) -> int:
    """Return the last end at or before a tick."""
    return tick - (tick - window.end_ticks) % window.slide_ticks


def row_span(window: Window, after: int, until: int, seen: int) -> RowSpan | None:
    """Return the span of ends in `(after, until]`; None if there are none."""
    first = None if after == TICK_MIN else first_end_after(window, after)
    last = None if until == TICK_MAX else last_end_upto(window, until)
    if until == TICK_MIN or (first is not None and last is not None and first > last):
        return None
    return RowSpan(first, last, seen if first is not None else NO_ROUND)


@dataclass(frozen=True, slots=True)
class AskedRows:
    """A row query, and which of its windows a round reports."""

    planned: PlannedRows
    span: RowSpan


def needed_from(rows: Rows, window: Window, span: RowSpan) -> int:
    """Return the first tick whose tuples are needed of a strand that is read through `window`."""
    if span.first is None:
        return TICK_MIN
    looks_back = span.follows and (rows.reports is Reports.LEAVING or not rows.has_lifetimes)
    return span.first - window.range_ticks - (window.slide_ticks if looks_back else 0)


def needed_until(span: RowSpan) -> int:
    """Return the tick before which tuples are needed."""
    return TICK_MAX if span.last is None else span.last
