"""What is promised of approximate aggregates, checked against their definition."""

from __future__ import annotations

import math
from typing import Any

from windloom.aggregates.aggregator import ListAggregator
from windloom.aggregates.registry import aggregator_for
from windloom.model import Aggregate, Window
from windloom_tools.oracle.holistic import frequencies, frequent, most_frequent

Row = dict[str, Any]


def check_promise(aggregate: Aggregate, window: Window, members: list[Row], start: int, answer: Any) -> None:
    """`members` are the tuples of the window that begins at `start`, of one group."""
    column = str(aggregate.argument.column) if aggregate.argument is not None else ""
    held = frequencies([member[column] for member in members if member[column] is not None])
    flat = [value for value, count in held for _ in range(count)]
    truth: Any = most_frequent(held)
    match aggregate.function:
        case "approx_count_distinct":
            truth = len(held)
        case "approx_quantile":
            place = math.floor(aggregate.parameters[0] * (len(flat) - 1))
            truth = float(flat[place]) if flat else None
        case "frequent":
            expected = frequent(int(aggregate.parameters[0]), sub_windows(window, members, start, column))
            assert str(answer) == str(expected)
    aggregator = aggregator_for(aggregate, None)
    assert isinstance(aggregator, ListAggregator)
    assert aggregator.is_within(aggregate, truth, answer), (aggregate, truth, answer)


def sub_windows(window: Window, members: list[Row], start: int, column: str) -> list[list[Any]]:
    """Values of a window between neighbouring edges of the query's windows, by definition."""
    edges = {start}
    for number in range(-(window.range_ticks // window.slide_ticks) - 2, window.range_ticks // window.slide_ticks + 2):
        other = start + number * window.slide_ticks
        edges |= {other, other + window.range_ticks}
    parts: dict[int, list[Any]] = {}
    for member in members:
        if member[column] is not None:
            parts.setdefault(max(edge for edge in edges if edge <= member["tick"]), []).append(member[column])
    return [parts[edge] for edge in sorted(parts)]
