"""Lengths and periods of time as people read them, however long they are."""

from __future__ import annotations

from math import log10

from windloom.model.figures import number
from windloom.model.time import TICKS_PER_SECOND, format_duration

_TICKS_PER_YEAR = 31_557_600 * TICKS_PER_SECOND  # of 365.25 days
_LONG = (
    ("year", _TICKS_PER_YEAR),
    ("day", 86_400 * TICKS_PER_SECOND),
    ("hour", 3_600 * TICKS_PER_SECOND),
    ("minute", 60 * TICKS_PER_SECOND),
    ("second", TICKS_PER_SECOND),
    ("millisecond", 1_000),
    ("microsecond", 1),
)
#: Beyond this many years, a pattern of slices repeats only in theory.
_ASTRONOMIC_YEARS = 10_000


def length(ticks: float) -> str:
    """A length that need not be whole, in the largest unit it fills.

    >>> length(1_666_667), length(7_042_811_000_000), length(400)
    ('1.67 seconds', '81.5 days', '400 microseconds')
    """
    for name, size in _LONG:
        if ticks >= size:
            text = number(ticks / size)
            return f"{text} {name}" if text == "1" else f"{text} {name}s"
    return f"{number(ticks)} microseconds"


def period(ticks: int) -> str:
    """A whole duration, however long: the engine may find slices that repeat after more years than atoms exist.

    >>> period(1_000_000_000), period(7_042_811_000_000)
    ('1000 seconds', '7,042,811 seconds, which is 81.5 days')
    >>> period(10**20), period(10**5000)
    ('about 3.17 million years', 'about 10^4987 years')
    """
    years = ticks // _TICKS_PER_YEAR
    if years >= _ASTRONOMIC_YEARS:
        for name, size in (("thousand", 10**3), ("million", 10**6), ("billion", 10**9)):
            if years < 1_000 * size:
                return f"about {number(years / size)} {name} years"
        return f"about 10^{round(log10(ticks) - log10(_TICKS_PER_YEAR))} years"
    plain = format_duration(ticks)
    how_many, unit = plain.split()
    if len(how_many) <= 4:
        return plain
    return f"{int(how_many):,} {unit}, which is {length(ticks)}"


def is_astronomic(ticks: int) -> bool:
    return ticks // _TICKS_PER_YEAR >= _ASTRONOMIC_YEARS
