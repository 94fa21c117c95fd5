"""The oracle: answers a query by the definition of its windows, tuple by tuple, in plain Python.

It knows nothing of slices, partials, plans or kernels, and imports the model only. It defines what a query means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from windloom.model.aggregate import Aggregate, UserDefined
from windloom.model.query import Query
from windloom.model.windows import Window
from windloom.testing.holistic import holistic

Row = Mapping[str, Any]
Answer = dict[str, Any]

#: The functions that pick one tuple, and those that are answered from the frequencies of all values.
_PICKS = ("min_by", "max_by", "first", "last")
_HOLISTIC = ("count_distinct", "quantile", "top")

_BITS: dict[str, Callable[[int, int], int]] = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}

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


def answer(query: Query, rows: Sequence[Row], tick: str = "tick", stream: Sequence[Row] | None = None) -> list[Answer]:
    """Every row of the answer. Expressions must be bare columns; `tick` names the column of event-time ticks.

    `rows` are the tuples that pass the query's predicate, `stream` all tuples of the stream, these among them, if there
    are others: a landmark is before the first of all, and positions are among all.
    """
    return _KINDS[query.window.kind](query, rows, tick, rows if stream is None else stream)


def _by_time(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    span = query.window.range_ticks
    return _answers(query, rows, lambda row: [(one, one + span) for one in windows_of(query.window, row[tick])], tick)


def _by_landmark(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    ticks = [row[tick] for row in stream]
    if not ticks:
        return []
    start, last = query.window.last_start(min(ticks)), query.window.last_start(max(ticks))
    return answer_from(query, rows, start, last + query.window.slide_ticks, tick)


def _by_position(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    places, count = positions(query.window, stream, tick), query.window.range_ticks
    return _answers(
        query, rows, lambda row: [(one, one + count) for one in windows_of(query.window, places[id(row)])], tick
    )


def _by_session(query: Query, rows: Sequence[Row], tick: str, stream: Sequence[Row]) -> list[Answer]:
    found = sessions(query, rows, tick)
    return _answers(query, rows, lambda row: [found[id(row)]], tick)


def sessions(query: Query, rows: Iterable[Row], tick: str = "tick") -> dict[int, tuple[int, int]]:
    """The session of every tuple, by its `id`: a pause longer than the gap ends it, one of exactly the gap does not."""
    gap = query.window.range_ticks
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = tuple(_group_key(row[_column(grouping.expression)]) for grouping in query.group_by)
        groups.setdefault(key, []).append(row)
    found: dict[int, tuple[int, int]] = {}
    for members in groups.values():
        ordered = sorted(members, key=lambda row: row[tick])
        first = 0
        for i, row in enumerate(ordered):
            if i + 1 == len(ordered) or ordered[i + 1][tick] - row[tick] > gap:
                whole = (ordered[first][tick], row[tick] + gap)
                found.update((id(one), whole) for one in ordered[first : i + 1])
                first = i + 1
    return found


#: By kind of window: the query, the tuples that pass, the column of ticks, all tuples of the stream.
_KINDS: dict[str, Callable[[Query, Sequence[Row], str, Sequence[Row]], list[Answer]]] = {
    "range": _by_time,
    "landmark": _by_landmark,
    "rows": _by_position,
    "session": _by_session,
}


def positions(window: Window, stream: Sequence[Row], tick: str = "tick") -> dict[int, int]:
    """The position of every tuple, by its `id`: counted per key, in order of time and then of all its values."""
    counted: dict[tuple[Any, ...], int] = {}
    found = {}
    for row in sorted(stream, key=lambda row: (row[tick], *(_order(value) for value in row.values()))):
        key = tuple(_group_key(row[_column(one)]) for one in window.counted_by or ())
        found[id(row)] = counted.get(key, 0)
        counted[key] = found[id(row)] + 1
    return found


def answer_from(query: Query, rows: Iterable[Row], start: int, last_end: int, tick: str = "tick") -> list[Answer]:
    """Every row of a landmark query from a landmark to every end up to the last one."""

    def windows(row: Row) -> list[tuple[int, int]]:
        ends = landmark_ends(query.window, row[tick], last_end) if row[tick] >= start else []
        return [(start, end) for end in ends]

    return _answers(query, rows, windows, tick)


def _answers(
    query: Query, rows: Iterable[Row], windows: Callable[[Row], list[tuple[int, int]]], tick: str
) -> list[Answer]:
    held: dict[tuple[tuple[int, int], tuple[Any, ...]], list[Row]] = {}
    shown: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        values = tuple(row[_column(grouping.expression)] for grouping in query.group_by)
        key = tuple(_group_key(value) for value in values)
        shown.setdefault(key, values)
        for window in windows(row):
            held.setdefault((window, key), []).append(row)
    answers = []
    for ((start, end), key), members in held.items():
        found: Answer = {"window_start": start, "window_end": end}
        found.update(zip((grouping.name for grouping in query.group_by), shown[key], strict=True))
        for output in query.outputs:
            if output.aggregate is None:
                raise ValueError("the oracle does not evaluate expressions over aggregates")
            found[output.name] = evaluate(query.aggregates[output.aggregate], members, tick)
        answers.append(found)
    return answers


def evaluate(aggregate: Aggregate, rows: list[Row], tick: str = "tick") -> Any:
    """One aggregate over tuples, exact where numbers are exact, correctly rounded where they are floats."""
    if aggregate.where is not None:
        condition = _column(aggregate.where)
        rows = [row for row in rows if row[condition] is True]
    if aggregate.argument is None:
        return len(rows)
    if aggregate.function in _PICKS:
        return _pick(aggregate, rows, tick)
    values = [row[_column(aggregate.argument)] for row in rows]
    values = [value for value in values if value is not None]
    if aggregate.own is not None:
        return _user_defined(aggregate.own, values)
    if aggregate.function == "count":
        return len(values)
    if aggregate.function in _HOLISTIC:
        return holistic(aggregate.function, aggregate.parameters, values)
    if not values:
        return None
    match aggregate.function:
        case "sum":
            return _total(values)
        case "avg":
            return _mean(values)
        case "min" | "bool_and":
            return min(values, key=_order)
        case "max" | "bool_or":
            return max(values, key=_order)
        case "bit_and" | "bit_or" | "bit_xor":
            return reduce(_BITS[aggregate.function], values)
        case _:
            return _spread(aggregate.function, values)


def _user_defined(own: UserDefined, values: list[Any]) -> Any:
    """The user's functions in plain Python; other numbers are cast to the type of the argument."""
    kind = int if own.argument.name == "bigint" else float
    lifted = [own.lift(kind(value)) for value in values]
    return own.lower(reduce(own.combine, lifted)) if lifted else None


def _pick(aggregate: Aggregate, rows: list[Row], tick: str) -> Any:
    """The argument of the tuple that is first or last in the order of (what is compared, argument), NULL lowest."""
    by = tick if aggregate.by is None else _column(aggregate.by)
    pairs = [(row[by], row[_column(aggregate.argument)]) for row in rows if row[by] is not None]
    if not pairs:
        return None
    ordered = sorted(pairs, key=lambda pair: (_order(pair[0]), () if pair[1] is None else (_order(pair[1]),)))
    return ordered[0 if aggregate.function in ("min_by", "first") else -1][1]


def _column(expression: Any) -> str:
    if expression.column is None:
        raise ValueError(f"the oracle reads bare columns only, not '{expression}'")
    return str(expression.column)


def _group_key(value: Any) -> Any:
    return _NAN_KEY if isinstance(value, float) and math.isnan(value) else value


def _order(value: Any) -> Any:
    """Spark's order: NULL below everything, NaN above every other number."""
    if value is None:
        return (-1, 0.0)
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
