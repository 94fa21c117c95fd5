"""Numbers and durations as people read them, for the texts of windows and for every explanation."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

from windloom.errors import WindloomError
from windloom.model.time import format_duration

_SIZES = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
_SHORT_UNITS = {
    "week": "w",
    "day": "d",
    "hour": "h",
    "minute": "min",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "µs",
}


def number(value: float) -> str:
    """Return three significant digits below a thousand, whole numbers with separators above.

    >>> number(1234567), number(12.345), number(0.000123456), number(40.0), number(3.2e18)
    ('1,234,567', '12.3', '0.000123', '40', '3.2e+18')
    """
    if not isfinite(value):
        return "∞" if value > 0 else ("−∞" if value < 0 else "not a number")
    if abs(value) >= 1e15 or 0 < abs(value) < 1e-6:
        return f"{value:.3g}"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    if "e" in text:  # Python leaves fixed notation below 1e-4
        text = f"{value:.9f}".rstrip("0")
    return text


def size_text(size: int) -> str:
    """Return bytes as people read them.

    >>> size_text(512), size_text(1_536), size_text(3 << 30)
    ('512 bytes', '1.5 KiB', '3 GiB')
    """
    unit = next((unit for unit in _SIZES if size >= _SIZES[unit]), None)
    return f"{size:,} bytes" if unit is None else f"{number(size / _SIZES[unit])} {unit}"


def parse_size(given: str | int) -> int:
    """Return a number of bytes, from bytes or from a text as Spark and people write it.

    >>> parse_size("2g"), parse_size("512 MiB"), parse_size("1.5 GB"), parse_size(4096)
    (2147483648, 536870912, 1610612736, 4096)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)?\s*", str(given), re.IGNORECASE)
    size = int(float(match[1]) * 1024 ** (" kmgt".index((match[2] or " ").lower()))) if match else 0
    if not size:
        raise WindloomError(
            f"cannot read the size {given!r}", "it is a number of bytes", "write it as '2 GiB', or '512m'"
        )
    return size


def count(how_many: int, singular: str, many: str | None = None) -> str:
    """Return a whole number with its noun.

    >>> count(1, "query", "queries"), count(1200, "query", "queries"), count(0, "tree")
    ('1 query', '1,200 queries', '0 trees')
    """
    return f"{how_many:,} {singular if how_many == 1 else (many or singular + 's')}"


def amount(value: float, singular: str, many: str | None = None) -> str:
    """Return a number that need not be whole, with its unit.

    >>> amount(1.0004, "window"), amount(0.5, "window"), amount(1.0, "edge/s", "edges/s"), amount(1200, "tuple")
    ('1 window', '0.5 windows', '1 edge/s', '1,200 tuples')
    """
    text = number(value)
    return f"{text} {singular if text == '1' else (many or singular + 's')}"


def share(part: float) -> str:
    """Return a share in whole per cent, which is 0 % or 100 % only if it is exactly that.

    >>> share(0.5), share(0.9999), share(0.0004), share(0.0), share(1.0)
    ('50 %', '>99 %', '<1 %', '0 %', '100 %')
    """
    percent = round(100 * part)
    if percent == 100 and part < 1:
        return ">99 %"
    if percent == 0 and part > 0:
        return "<1 %"
    return f"{percent} %"


def short_duration(ticks: int) -> str:
    """Return a duration with the shortest name of its unit.

    >>> short_duration(3_600_000_000), short_duration(1_000_000_000), short_duration(1_500_000)
    ('1 h', '1000 s', '1500 ms')
    """
    how_many, unit = format_duration(ticks).split()
    return f"{how_many} {_SHORT_UNITS[unit.removesuffix('s')]}"


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: in the service, in PostgreSQL's JSON columns, in posts to a webhook.

    >>> plain(Decimal("1.50")), plain(float("nan")), plain(datetime(2026, 1, 5, tzinfo=UTC)), plain([b"a"])
    ('1.50', 'NaN', '2026-01-05T00:00:00Z', ['61'])
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < 2**53 else str(value)
        case float():
            return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value.tzinfo else value.isoformat()
        case date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(key): plain(item_value) for key, item_value in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)
