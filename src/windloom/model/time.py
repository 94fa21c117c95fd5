"""Event time as 64-bit integer ticks of one microsecond, and durations people can read."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

import numpy as np

from windloom.errors import WindloomError

TICKS_PER_SECOND = 1_000_000

#: Beyond every instant that Spark can hold (years 0001 to 9999); used as −∞ and +∞ of the watermark.
TICK_MIN = -(2**62)
TICK_MAX = 2**62

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": TICKS_PER_SECOND,
    "minute": 60 * TICKS_PER_SECOND,
    "hour": 3_600 * TICKS_PER_SECOND,
    "day": 86_400 * TICKS_PER_SECOND,
    "week": 7 * 86_400 * TICKS_PER_SECOND,
}
_ALIASES = {
    "us": "microsecond",
    "µs": "microsecond",
    "ms": "millisecond",
    "msec": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
}
_CALENDAR = {"month", "mon", "quarter", "year", "yr", "y"}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zµ]+)\s*", re.IGNORECASE)

#: Ticks in one unit of an integer time column.
INTEGER_UNITS = {"us": 1, "ms": 1_000, "s": TICKS_PER_SECOND}


def unit_ticks(word: str) -> int:
    """Return ticks in one `word` (`hour`, `Minutes`, `ms`, …); months and years have no fixed length."""
    name = word.lower()
    name = _ALIASES.get(name, name)
    if name not in _UNITS and name.endswith("s"):
        name = _ALIASES.get(name[:-1], name[:-1])
    if name in _CALENDAR:
        raise WindloomError(
            f"'{word}' is not a duration of fixed length",
            "months and years differ in length, so windows of that length cannot be aligned",
            "use days or weeks, for example 30 days",
        )
    if name not in _UNITS:
        raise WindloomError(
            f"unknown time unit '{word}'",
            "a duration is a number and a unit",
            "use microseconds, milliseconds, seconds, minutes, hours, days or weeks",
        )
    return _UNITS[name]


def parse_duration(value: str | timedelta) -> int:
    """Return the ticks of a duration given as text or `timedelta`; zero and negative ones are accepted.

    >>> parse_duration("10 seconds")
    10000000
    >>> parse_duration("1 hour 30 minutes") == parse_duration("1.5 hours") == parse_duration("INTERVAL 90 min")
    True
    """
    if isinstance(value, timedelta):
        return (value.days * 86_400 + value.seconds) * TICKS_PER_SECOND + value.microseconds
    if not isinstance(value, str):
        raise WindloomError(
            f"a duration must be text or a timedelta, not {type(value).__name__}",
            f"it is {value!r}, and its unit is not known",
            "for example '10 seconds'",
        )
    text = re.sub(r"^\s*interval\b", "", value, flags=re.IGNORECASE)
    total, position = Fraction(0), 0
    while position < len(text) and text[position:].strip():
        match = _PART.match(text, position)
        if match is None:
            break
        total += Fraction(match.group(1)) * unit_ticks(match.group(2))
        position = match.end()
    if position == 0 or text[position:].strip():
        raise WindloomError(
            f"cannot read the duration '{value}'",
            "a duration is a number and a unit, or several of them",
            "for example '10 seconds' or '1 hour 30 minutes'",
        )
    if total.denominator != 1:
        raise WindloomError(
            f"the duration '{value}' is finer than one microsecond", "time is counted in microseconds", "round it"
        )
    return int(total)


def format_duration(ticks: int) -> str:
    """Return a duration in the largest unit that divides it.

    >>> format_duration(3_600_000_000), format_duration(90_000_000), format_duration(0)
    ('1 hour', '90 seconds', '0 seconds')
    """
    if ticks == 0:
        return "0 seconds"
    for name in ("week", "day", "hour", "minute", "second", "millisecond", "microsecond"):
        count, rest = divmod(ticks, _UNITS[name])
        if rest == 0:
            return f"{count} {name}" if count in (1, -1) else f"{count} {name}s"
    raise AssertionError("a tick is a whole microsecond")


def spoken_duration(ticks: int) -> str:
    """Return a duration exactly, in several units if one alone would need a large number.

    >>> spoken_duration(90_000_000), spoken_duration(5_545_795_000), spoken_duration(-90_500_000)
    ('90 seconds', '1 hour 32 minutes 25 seconds 795 milliseconds', '-1 minute -30 seconds -500 milliseconds')
    """
    plain = format_duration(ticks)
    if len(plain.split()[0].lstrip("-")) <= 3:
        return plain
    sign, rest, parts = -1 if ticks < 0 else 1, abs(ticks), []
    for name in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        count, rest = divmod(rest, _UNITS[name])
        if count:
            parts.append(format_duration(sign * count * _UNITS[name]))
    return " ".join(parts)


def sufficient_duration(ticks: int) -> str:
    """Return a duration that people would write, and that is at least this long.

    >>> sufficient_duration(5_545_795_000), sufficient_duration(90_000_000), sufficient_duration(172_805_000_000)
    ('93 minutes', '90 seconds', '49 hours')
    """
    units = ("day", "hour", "minute", "second", "millisecond", "microsecond")
    first = next((place for place, name in enumerate(units) if ticks >= _UNITS[name]), len(units) - 1)
    least = _UNITS[units[min(first + 1, len(units) - 1)]]
    return spoken_duration(ticks if len(format_duration(ticks).split()[0]) <= 3 else -(-ticks // least) * least)


def format_instant(tick: int) -> str:
    """Return an instant in ISO format, to the microsecond.

    >>> format_instant(1_767_571_200_000_000)
    '2026-01-05T00:00:00.000000'
    """
    return str(np.datetime64(tick, "us"))
