"""What EMIT CHANGES and EMIT EMPTY report, by definition, row by row in plain Python."""

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
    """A value that equals what Windloom counts as the same: all NaN are one."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {name: _plain(held) for name, held in value.items()} if isinstance(value, dict) else value
