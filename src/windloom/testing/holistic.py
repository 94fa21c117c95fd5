"""Holistic aggregates by their definition, over all values of a window."""

from __future__ import annotations

import math
from typing import Any

_NAN = object()


def holistic(function: str, parameters: tuple[float, ...], values: list[Any]) -> Any:
    """`values` are those that are not NULL."""
    found = frequencies(values)
    match function:
        case "count_distinct":
            return len(found)
        case "quantile":
            return quantile([value for value, count in found for _ in range(count)], parameters[0])
        case "top":
            ranked = sorted(enumerate(found), key=lambda item: (-item[1][1], item[0]))
            return [{"value": value, "count": count} for _, (value, count) in ranked[: int(parameters[0])]]
    raise KeyError(function)


def quantile(values: list[Any], share: float) -> float | None:
    """Of values in order: at that share of the way from the first to the last, straight between two neighbours."""
    if not values:
        return None
    place = (len(values) - 1) * share
    lower, higher = values[math.floor(place)], values[math.ceil(place)]
    if str(lower) == str(higher):
        return float(lower)
    return float(lower) + (place - math.floor(place)) * (float(higher) - float(lower))


def frequencies(values: list[Any]) -> list[tuple[Any, int]]:
    """Each value with how often it occurs, in Spark's order; NaN equals NaN, and -0.0 equals 0.0."""
    counts: dict[Any, int] = {}
    for value in values:
        key = value
        if isinstance(value, float):
            key = _NAN if math.isnan(value) else value + 0.0
        counts[key] = counts.get(key, 0) + 1
    found = sorted((item for item in counts.items() if item[0] is not _NAN), key=lambda item: item[0])
    return [*found, (math.nan, counts[_NAN])] if _NAN in counts else found
