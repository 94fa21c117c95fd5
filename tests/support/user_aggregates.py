"""Aggregates that a user might define, for tests of all that is done with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


def geo_mean() -> dict[str, Any]:
    """The geometric mean. Functions are made in here so that they travel to executors by value, as those of scripts."""

    class Sum(NamedTuple):
        total: float
        count: int

    return {
        "lift": lambda x: Sum(math.log(x), 1),
        "combine": lambda a, b: Sum(a.total + b.total, a.count + b.count),
        "lower": lambda value: math.exp(value.total / value.count),
        "neutral": Sum(0.0, 0),
    }


def product() -> dict[str, Any]:
    return {"lift": lambda x: x, "combine": lambda a, b: a * b, "lower": lambda value: value, "neutral": 1.0}


def parity() -> dict[str, Any]:
    """Whole numbers that can be taken away again: how often odd, and the exclusive or of all."""

    class Bits(NamedTuple):
        odd: int
        all: int

    return {
        "lift": lambda x: Bits(x & 1, x),
        "combine": lambda a, b: Bits(a.odd + b.odd, a.all ^ b.all),
        "lower": lambda value: value.odd * 1000 + (value.all & 127),
        "neutral": Bits(0, 0),
        "inverse": lambda whole, part: Bits(whole.odd - part.odd, whole.all ^ part.all),
        "argument": "bigint",
    }


def farthest() -> dict[str, Any]:
    """The value farthest from zero, the positive one of two: selective."""
    return {
        "lift": lambda x: x,
        "combine": lambda a, b: a if abs(a) > abs(b) or (abs(a) == abs(b) and a > b) else b,
        "lower": lambda value: value,
        "neutral": 0.0,
        "properties": ("associative", "commutative", "selective"),
    }


DEFINITIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "geo_mean": geo_mean,
    "product_of": product,
    "parity": parity,
    "farthest": farthest,
}
