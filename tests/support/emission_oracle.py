"""The reports of EMIT CHANGES, EMIT EMPTY and EMIT EARLY, by definition, row by row in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windloom.model.query import Query

Row = Mapping[str, Any]


def last_end(query: Query, ticks: Iterable[int], closed: int | None = None) -> int | None:
    """The end of the last window that is reported: it is closed, and begins no later than the last tuple.

    >>> from windloom.model import TimeWindow
    >>> from types import SimpleNamespace
    >>> query = SimpleNamespace(window=TimeWindow(10, 5))
    >>> last_end(query, [3, 17]), last_end(query, [3, 17], 20)
    (25, 20)
    """
    window, found = query.window, max(ticks, default=None)
    if found is None:
        return None
    end = window.last_start(found) + window.range_ticks
    while closed is not None and end > closed:
        end -= window.slide_ticks
    return end


def changes(query: Query, answers: Sequence[Row], last: int) -> list[dict[str, Any]]:
    """The changes from window to window in all answers of a query, up to the window that ends at `last`."""
    slide, groups = query.window.slide_ticks, [grouping.name for grouping in query.group_by]
    by_window = {(row["window_end"], _key(row, groups)): row for row in answers}
    found = []
    for (end, key), row in by_window.items():
        before = by_window.get((end - slide, key))
        if before is None:
            found.append({**row, "change": "insert"})
        elif _values(before, groups) != _values(row, groups):
            found.append({**row, "change": "update"})
        if (end + slide, key) not in by_window and end + slide <= last:
            start = row["window_start"] + (0 if query.window.extent_ticks is None else slide)
            gone = {name: row[name] if name in groups else None for name in row}
            found.append({**gone, "window_start": start, "window_end": end + slide, "change": "delete"})
    return sorted(found, key=lambda row: row["window_end"])


def applied(query: Query, changed: Sequence[Row], end: int) -> list[dict[str, Any]]:
    """The answers of the window that ends at `end`, from all changes up to it; edges of windows are left out."""
    groups, held = [grouping.name for grouping in query.group_by], dict[Any, dict[str, Any]]()
    for row in sorted(changed, key=lambda row: row["window_end"]):
        if row["window_end"] <= end:
            held.pop(_key(row, groups), None)
            if row["change"] != "delete":
                edges = ("window_start", "window_end", "change")
                held[_key(row, groups)] = {name: value for name, value in row.items() if name not in edges}
    return list(held.values())


def windows_without_tuples(query: Query, answers: Sequence[Row], last: int) -> list[dict[str, Any]]:
    """The windows, up to the one that ends at `last`, in which a group that had a tuple before has none."""
    window, groups = query.window, [grouping.name for grouping in query.group_by]
    ends: dict[Any, set[int]] = {}
    shown: dict[Any, dict[str, Any]] = {}
    for row in answers:
        ends.setdefault(_key(row, groups), set()).add(row["window_end"])
        shown.setdefault(_key(row, groups), {name: row[name] for name in groups})
    return [
        {"window_start": end - window.range_ticks, "window_end": end, **shown[key]}
        for key, own in ends.items()
        for end in range(min(own), last + 1, window.slide_ticks)
        if end not in own
    ]


def _key(row: Row, groups: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_plain(row[name]) for name in groups)


def _values(row: Row, groups: Sequence[str]) -> list[Any]:
    edges = ("window_start", "window_end", *groups)
    return [_plain(value) for name, value in row.items() if name not in edges]


def _plain(value: Any) -> Any:
    """The value, made equal to all values that Windloom counts as the same: all NaN are one."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {name: _plain(held) for name, held in value.items()} if isinstance(value, dict) else value


def early(
    query: Query, standing: dict[Any, Row], final: Sequence[Row], shown: Sequence[Row] | None, closed: int, as_of: int
) -> list[dict[str, Any]]:
    """The reports of a round of EMIT EARLY. `standing` holds what was reported of open windows, and is updated.

    `final` are the rows of the windows that the round closes, `shown` those of all open windows if it reports them,
    None if it does not. Windows that end by `closed` are closed.
    """
    groups = [grouping.name for grouping in query.group_by]
    found = [{**row, "report": "final", "as_of": None} for row in final]
    by_key = {_window_key(row, groups): row for row in (*final, *(shown or ()))}
    for key, row in list(standing.items()):
        is_closed = row["window_end"] <= closed
        if (is_closed or shown is not None) and key not in by_key:
            kept = ("window_start", "window_end", *groups)
            gone = {name: value if name in kept else None for name, value in row.items()}
            found.append({**gone, "report": "withdrawn", "as_of": None if is_closed else as_of})
        if is_closed or (shown is not None and key not in by_key):
            del standing[key]
    for row in shown or ():
        key = _window_key(row, groups)
        if key not in standing or _values(standing[key], groups) != _values(row, groups):
            found.append({**row, "report": "early", "as_of": as_of})
        standing[key] = row
    return found


def last_words(query: Query, reports: Iterable[Row]) -> list[Row]:
    """The rows that remain of all reports of a query, in order, if each replaces the last of its window and group."""
    groups, held = [grouping.name for grouping in query.group_by], dict[Any, Row]()
    for row in reports:
        held.pop(_window_key(row, groups), None)
        if row["report"] != "withdrawn":
            held[_window_key(row, groups)] = row
    return list(held.values())


def _window_key(row: Row, groups: Sequence[str]) -> Any:
    return row["window_start"], row["window_end"], _key(row, groups)
