"""The oracle: answers a query by the definition of its windows, tuple by tuple, in plain Python.

It knows nothing of slices, partials, plans or kernels, and imports the model only. It defines what a query means.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from windloom.model.query import Query
from windloom.model.windows import Window
from windloom_tools.oracle.aggregates import evaluate
from windloom_tools.oracle.scalar_functions import Row, order_of
from windloom_tools.oracle.scalars import scalar

Answer = dict[str, Any]

_NAN_KEY = object()


def windows_of(window: Window, tick: int) -> list[int]:
    """The starts of all windows that hold the tick.

    >>> from windloom.model import TimeWindow
    >>> windows_of(TimeWindow(10, 4), 9)
    [0, 4, 8]
    >>> windows_of(TimeWindow(2, 5), 3)
    []
    """
    slide, offset = window.slide_ticks, window.offset_ticks
    start = (tick - offset) // slide * slide + offset
    starts = []
    while start > tick - window.range_ticks:
        starts.append(start)
        start -= slide
    return starts[::-1]


def landmark_ends(window: Window, tick: int, last_end: int) -> list[int]:
    """The ends of all landmark windows that hold the tick, up to the last one.

    >>> from windloom.model import LandmarkWindow
    >>> landmark_ends(LandmarkWindow(10), 12, 45)
    [20, 30, 40]
    """
    return list(range(window.last_start(tick) + window.slide_ticks, last_end + 1, window.slide_ticks))


def cumulated(window: Window, tick: int) -> list[tuple[int, int]]:
    """All cumulating windows that hold the tick.

    >>> from windloom.model.windows.cumulate import CumulateWindow
    >>> cumulated(CumulateWindow(20, 5), 12)
    [(0, 15), (0, 20)]
    """
    period, slide = window.restart_ticks or 0, window.slide_ticks
    begin = (tick - window.offset_ticks) // period * period + window.offset_ticks
    return [(begin, end) for end in range(begin + slide, begin + period + 1, slide) if end > tick]


def answer(query: Query, rows: Sequence[Row], tick: str = "tick", stream: Sequence[Row] | None = None) -> list[Answer]:
    """Every row of the answer; `tick` names the column of event-time ticks. `testing.joins` answers joins.

    `rows` are the tuples that pass the query's predicate. `stream` are all tuples of the stream, if there are others: a
    landmark is before the first of all tuples, and positions count all tuples.
    """
    return _KINDS[query.window.kind](query, rows, tick, rows if stream is None else stream)


def _by_time(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    span = query.window.range_ticks
    return answers_of(
        query, rows, lambda row: [(start, start + span) for start in windows_of(query.window, row[tick])], tick
    )


def _by_period(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    return answers_of(query, rows, lambda row: cumulated(query.window, row[tick]), tick)


def _by_landmark(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    ticks = [row[tick] for row in stream]
    if not ticks:
        return []
    start, last = query.window.last_start(min(ticks)), query.window.last_start(max(ticks))
    return answer_from(query, rows, start, last + query.window.slide_ticks, tick)


def _by_position(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    """No window ends behind the last tuple of its key."""
    places, count = positions(query.window, stream, tick), query.window.range_ticks
    counted = Counter(_key_counted(query.window, row) for row in stream)

    def held(row: Row) -> list[tuple[int, int]]:
        most = counted[_key_counted(query.window, row)]
        starts = windows_of(query.window, places[id(row)])
        return [(start, start + count) for start in starts if start + count <= most]

    return answers_of(query, rows, held, tick)


def _by_session(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    found = sessions(query, rows, tick)
    return answers_of(query, rows, lambda row: [found[id(row)]], tick)


def sessions(query: Query, rows: Iterable[Row], tick: str = "tick") -> dict[int, tuple[int, int]]:
    """The session of every tuple, by its `id`: a pause longer than the gap ends it, one as long as the gap does not."""
    gap = query.window.range_ticks
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(group_key(scalar(grouping.expression.sql)(row)) for grouping in query.group_by)
        groups.setdefault(key, []).append(row)
    found: dict[int, tuple[int, int]] = {}
    for members in groups.values():
        ordered = sorted(members, key=lambda row: row[tick])
        first = 0
        for i, row in enumerate(ordered):
            if i + 1 == len(ordered) or ordered[i + 1][tick] - row[tick] > gap:
                whole = (ordered[first][tick], row[tick] + gap)
                found.update((id(joined), whole) for joined in ordered[first : i + 1])
                first = i + 1
    return found


#: By kind of window: the query, the tuples that pass, the column of ticks, all tuples of the stream.
_KINDS: dict[str, Callable[[Query, Sequence[Row], str, Sequence[Row]], list[Answer]]] = {
    "range": _by_time,
    "landmark": _by_landmark,
    "cumulate": _by_period,
    "rows": _by_position,
    "session": _by_session,
}


def positions(window: Window, stream: Sequence[Row], tick: str = "tick") -> dict[int, int]:
    """The position of every tuple, by its `id`: counted per key, in order of time and then of all its values."""
    counted: dict[tuple[Any, ...], int] = {}
    found = {}
    for row in sorted(stream, key=lambda row: (row[tick], *(order_of(value) for value in row.values()))):
        key = _key_counted(window, row)
        found[id(row)] = counted.get(key, 0)
        counted[key] = found[id(row)] + 1
    return found


def _key_counted(window: Window, row: Row) -> tuple[Any, ...]:
    return tuple(group_key(scalar(expression.sql)(row)) for expression in window.counted_by or ())


def answer_from(query: Query, rows: Iterable[Row], start: int, last_end: int, tick: str = "tick") -> list[Answer]:
    """Every row of a landmark query from a landmark to every end up to the last one."""

    def windows(row: Row) -> list[tuple[int, int]]:
        ends = landmark_ends(query.window, row[tick], last_end) if row[tick] >= start else []
        return [(start, end) for end in ends]

    return answers_of(query, rows, windows, tick)


def answers_of(
    query: Query, rows: Iterable[Row], windows: Callable[[Row], list[tuple[int, int]]], tick: str
) -> list[Answer]:
    """A row for every window (start, end) and group that holds a tuple, unless HAVING excludes it."""
    held: dict[tuple[tuple[int, int], tuple[Any, ...]], list[Row]] = {}
    shown: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        group = tuple(scalar(grouping.expression.sql)(row) for grouping in query.group_by)
        key = tuple(group_key(value) for value in group)
        shown.setdefault(key, group)
        for window in windows(row):
            held.setdefault((window, key), []).append(row)
    answers = []
    for ((start, end), key), members in held.items():
        found: Answer = {"window_start": start, "window_end": end}
        found.update(zip((grouping.name for grouping in query.group_by), shown[key], strict=True))
        values = {f"__g{i}": value for i, value in enumerate(shown[key])}
        values |= {f"__a{i}": evaluate(aggregate, members, tick) for i, aggregate in enumerate(query.aggregates)}
        for output in query.outputs:
            sql = f"__a{output.aggregate}" if output.expression is None else output.expression.sql
            found[output.name] = scalar(sql)(values)
        if query.having is None or scalar(query.having.sql)(values) is True:
            answers.append(found)
    return answers


def group_key(value: Any) -> Any:
    """The key by which a value is grouped: all NaN are one."""
    return _NAN_KEY if isinstance(value, float) and math.isnan(value) else value
