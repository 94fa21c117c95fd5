"""Aggregates by their definition, over all tuples of a window and group."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from windloom.model.aggregate import Aggregate, UserDefined
from windloom_tools.oracle.holistic import holistic
from windloom_tools.oracle.moments import OF_TWO, pair_of, shape_of
from windloom_tools.oracle.scalar_functions import Row, order_of
from windloom_tools.oracle.scalars import names_in, scalar

#: The functions that pick one tuple, and those that are answered from the frequencies of all values.
_PICKS = ("min_by", "max_by", "first", "last")
_HOLISTIC = ("count_distinct", "quantile", "top", "mode", "approx_percentile", "collect_set")

#: More digits than any product or sum of decimals has.
_DIGITS = 200

_BITS: dict[str, Callable[[int, int], int]] = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}


def evaluate(aggregate: Aggregate, rows: list[Row], tick: str = "tick") -> Any:
    """One aggregate over tuples, exact if numbers are exact, correctly rounded if they are floats."""
    with localcontext(prec=_DIGITS):
        return _evaluate(aggregate, rows, tick)


def _evaluate(aggregate: Aggregate, rows: list[Row], tick: str) -> Any:
    if aggregate.where is not None:
        condition = scalar(aggregate.where.sql)
        rows = [row for row in rows if condition(row) is True]
    if aggregate.argument is None:
        return len(rows)
    if aggregate.function in _PICKS:
        return _pick(aggregate, rows, tick)
    argument = scalar(aggregate.argument.sql)
    if aggregate.function == "collect_list":
        time = scalar(_tick_of(aggregate.argument.sql, rows, tick))
        timed = [(time(row), value) for row in rows if (value := argument(row)) is not None]
        return [value for _, value in sorted(timed, key=lambda pair: (pair[0], order_of(pair[1]), str(pair[1])))]
    if aggregate.function in OF_TWO:
        assert aggregate.by is not None
        by = scalar(aggregate.by.sql)
        pairs = [pair for row in rows if None not in (pair := (argument(row), by(row)))]
        return pair_of(aggregate.function, [(float(first), float(second)) for first, second in pairs])
    values = [value for row in rows if (value := argument(row)) is not None]
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
        case "avg" | "try_avg":
            return _mean(values)
        case "try_sum":
            total = _total(values)
            return None if isinstance(total, int) and not -(2**63) <= total < 2**63 else total
        case "skewness" | "kurtosis":
            return shape_of(aggregate.function, list(map(float, values)))
        case "min" | "bool_and":
            return min(values, key=order_of)
        case "max" | "bool_or":
            return max(values, key=order_of)
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
    """The argument of the tuple that is first or last in the order of (compared value, picked values), NULL lowest."""
    assert aggregate.argument is not None
    picked = [each.sql for each in aggregate.picked or (aggregate.argument,)]
    by = scalar(_tick_of(picked[0], rows, tick) if aggregate.by is None else aggregate.by.sql)
    values = [scalar(each) for each in picked]
    found = [(compared, *(value(row) for value in values)) for row in rows if (compared := by(row)) is not None]
    if not found:
        return None
    ordered = sorted(found, key=lambda each: [() if value is None else (order_of(value),) for value in each])
    chosen = ordered[0 if aggregate.function in ("min_by", "first") else -1]
    return chosen[1 + picked.index(aggregate.argument.sql)]


def _tick_of(argument: str, rows: list[Row], tick: str) -> str:
    """The column of a tuple's time; in a join, that of the tuple that the argument reads."""
    if not rows or tick in rows[0]:
        return tick
    aliases = {name.split(".")[0] for name in names_in(argument)}
    if len(aliases) != 1:
        raise ValueError(f"the oracle does not know the time of '{argument}'")
    return f"`{aliases.pop()}`.{tick}"


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
