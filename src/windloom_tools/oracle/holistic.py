"""Holistic aggregates by their definition, over all values of a window."""

from __future__ import annotations

import math
from typing import Any

_NAN = object()


def holistic(function: str, parameters: tuple[float, ...], values: list[Any]) -> Any:
    """One aggregate over `values`, those that are not NULL."""
    found = frequencies(values)
    match function:
        case "count_distinct":
            return len(found)
        case "quantile":
            return quantile([value for value, count in found for _ in range(count)], parameters[0])
        case "top":
            return most_frequent(found)[: int(parameters[0])]
        case "collect_set":
            return [value for value, _ in found]
        case "mode":
            return most_frequent(found)[0]["value"] if found else None
        case "approx_percentile":
            ordered = [value for value, count in found for _ in range(count)]
            return ordered[max(math.ceil(len(ordered) * parameters[0]), 1) - 1] if ordered else None
    raise KeyError(function)


def most_frequent(found: list[tuple[Any, int]]) -> list[dict[str, Any]]:
    """The most frequent values first; among equally frequent ones, the smallest first."""
    ranked = sorted(enumerate(found), key=lambda item: (-item[1][1], item[0]))
    return [{"value": value, "count": count} for _, (value, count) in ranked]


def frequent(k: int, parts: list[list[Any]]) -> dict[str, Any]:
    """Algorithm 6 (source E): `parts` are the values of each sub-window of a window."""
    counts: dict[str, int] = {}
    values: dict[str, Any] = {}
    threshold = 0
    for part in parts:
        listed = most_frequent(frequencies(part))[:k]
        threshold += listed[-1]["count"] if len(listed) == k else 0
        for item in listed:
            counts[str(item["value"])] = counts.get(str(item["value"]), 0) + item["count"]
            values[str(item["value"])] = item["value"]
    order = [str(value) for value, _ in frequencies(list(values.values()))]
    above = [name for name in order if counts[name] > threshold]
    items = sorted(above, key=lambda name: (-counts[name], order.index(name)))
    return {"items": [{"value": values[name], "count": counts[name]} for name in items], "threshold": threshold}


def quantile(values: list[Any], share: float) -> float | None:
    """The quantile of ordered values, with linear interpolation between two neighbours."""
    if not values:
        return None
    place = (len(values) - 1) * share
    lower, higher = values[math.floor(place)], values[math.ceil(place)]
    if str(lower) == str(higher):
        return float(lower)
    return float(lower) + (place - math.floor(place)) * (float(higher) - float(lower))


def frequencies(values: list[Any]) -> list[tuple[Any, int]]:
    """Each value with its count, in Spark's order; NaN equals NaN, and -0.0 equals 0.0."""
    counts: dict[Any, int] = {}
    for value in values:
        key = value
        if isinstance(value, float):
            key = _NAN if math.isnan(value) else value + 0.0
        counts[key] = counts.get(key, 0) + 1
    found = sorted((item for item in counts.items() if item[0] is not _NAN), key=lambda item: item[0])
    return [*found, (math.nan, counts[_NAN])] if _NAN in counts else found
