"""The oracle: a query answered by the definition of its windows, tuple by tuple, in plain Python.

Knows nothing of slices, partials, plans or kernels; imports the model only. Use it to pin down what a query means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from windloom.model.aggregate import Aggregate
from windloom.model.holistic import COMPONENT_OF
from windloom.model.query import Query
from windloom.model.window import Window
from windloom.testing.holistic import holistic

Row = Mapping[str, Any]
Answer = dict[str, Any]

_NAN_KEY = object()


def windows_of(window: Window, tick: int) -> list[int]:
    """Starts of all windows that hold the tick.

    >>> windows_of(Window(10, 4), 9)
    [0, 4, 8]
    >>> windows_of(Window(2, 5), 3)
    []
    """
    slide, offset = window.slide_ticks, window.offset_ticks
    start = (tick - offset) // slide * slide + offset
    starts = []
    while start > tick - window.range_ticks:
        starts.append(start)
        start -= slide
    return starts[::-1]


def answer(query: Query, rows: Iterable[Row], tick: str = "tick") -> list[Answer]:
    """Every row of the answer. Expressions must be bare columns; `tick` names the column of event-time ticks."""
    held: dict[tuple[int, tuple[Any, ...]], list[Row]] = {}
    shown: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        values = tuple(row[_column(grouping.expression)] for grouping in query.group_by)
        key = tuple(_group_key(value) for value in values)
        shown.setdefault(key, values)
        for start in windows_of(query.window, row[tick]):
            held.setdefault((start, key), []).append(row)
    answers = []
    for (start, key), members in held.items():
        found: Answer = {"window_start": start, "window_end": start + query.window.range_ticks}
        found.update(zip((grouping.name for grouping in query.group_by), shown[key], strict=True))
        for output in query.outputs:
            if output.aggregate is None:
                raise ValueError("the oracle does not evaluate expressions over aggregates")
            found[output.name] = evaluate(query.aggregates[output.aggregate], members)
        answers.append(found)
    return answers


def evaluate(aggregate: Aggregate, rows: list[Row]) -> Any:
    """One aggregate over tuples, exact where numbers are exact, correctly rounded where they are floats."""
    if aggregate.argument is None:
        return len(rows)
    values = [row[_column(aggregate.argument)] for row in rows]
    values = [value for value in values if value is not None]
    if aggregate.function == "count":
        return len(values)
    if aggregate.function in COMPONENT_OF:
        return holistic(aggregate.function, aggregate.parameters, values)
    if not values:
        return None
    match aggregate.function:
        case "sum":
            return _total(values)
        case "avg":
            return _mean(values)
        case "min":
            return min(values, key=_order)
        case "max":
            return max(values, key=_order)
        case _:
            return _spread(aggregate.function, values)


def _column(expression: Any) -> str:
    if expression.column is None:
        raise ValueError(f"the oracle reads bare columns only, not '{expression}'")
    return str(expression.column)


def _group_key(value: Any) -> Any:
    return _NAN_KEY if isinstance(value, float) and math.isnan(value) else value


def _order(value: Any) -> Any:
    """Spark's order: NaN above every other number."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _total(values: list[Any]) -> Any:
    if not isinstance(values[0], float):
        return sum(values[1:], values[0])
    if all(math.isfinite(value) for value in values):
        return math.fsum(values)
    return sum(values)


def _mean(values: list[Any]) -> Any:
    total = _total(values)
    if isinstance(total, Decimal):
        exponent = int(total.as_tuple().exponent) - 4
        return (total / len(values)).quantize(Decimal(1).scaleb(exponent), rounding=ROUND_HALF_UP)
    return float(total) / len(values)


def _spread(function: str, values: list[Any]) -> float | None:
    numbers = [float(value) for value in values]
    count = len(numbers)
    less = 1 if function.endswith("samp") else 0
    if count == less:
        return None
    if not all(math.isfinite(number) for number in numbers):
        return math.nan
    mean = math.fsum(numbers) / count
    variance = math.fsum((number - mean) ** 2 for number in numbers) / (count - less)
    return math.sqrt(variance) if function.startswith("stddev") else variance
