"""Numbers, durations and names as people read them; every explanation speaks through these."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, log10

from windloom.model.time import TICKS_PER_SECOND, format_duration
from windloom.model.window import Window

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
_SHORT_UNITS = {
    "week": "w",
    "day": "d",
    "hour": "h",
    "minute": "min",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "µs",
}
#: Beyond this many years a pattern of slices repeats in theory only.
_ASTRONOMIC_YEARS = 10_000


def number(value: float) -> str:
    """Three significant digits below a thousand, whole numbers with separators above.

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


def count(how_many: int, one: str, many: str | None = None) -> str:
    """
    >>> count(1, "query", "queries"), count(1200, "query", "queries"), count(0, "tree")
    ('1 query', '1,200 queries', '0 trees')
    """
    return f"{how_many:,} {one if how_many == 1 else (many or one + 's')}"


def share(part: float) -> str:
    """
    >>> share(0.5), share(0.9999), share(0.0004), share(0.0), share(1.0)
    ('50 %', '>99 %', '<1 %', '0 %', '100 %')
    """
    percent = round(100 * part)
    if percent == 100 and part < 1:
        return ">99 %"
    if percent == 0 and part > 0:
        return "<1 %"
    return f"{percent} %"


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


def short_duration(ticks: int) -> str:
    """
    >>> short_duration(3_600_000_000), short_duration(1_000_000_000), short_duration(1_500_000)
    ('1 h', '1000 s', '1500 ms')
    """
    how_many, unit = format_duration(ticks).split()
    return f"{how_many} {_SHORT_UNITS[unit.removesuffix('s')]}"


def short_window(window: Window) -> str:
    """
    >>> short_window(Window(3_600_000_000, 60_000_000)), short_window(Window(60_000_000, 60_000_000, 1_000_000))
    ('1 h / 1 min', '1 min tumbling + 1 s')
    >>> short_window(Window.landmark(3_600_000_000))
    'landmark / 1 h'
    >>> short_window(Window.rows(1000, 10))
    '1000 rows / 10'
    """
    short = str if window.is_rows else short_duration
    text = "landmark" if window.is_landmark else short(window.range_ticks) + (" rows" if window.is_rows else "")
    text += " tumbling" if window.is_tumbling else f" / {short(window.slide_ticks)}"
    return text + (f" + {short(window.offset_ticks)}" if window.offset_ticks else "")


def windows_of_a_tuple(windows: Iterable[Window]) -> str:
    """In how many windows of queries a tuple lies.

    >>> windows_of_a_tuple([Window(60, 10), Window.landmark(60)])
    '6 windows, and in every later one of 1 landmark query'
    """
    every = list(windows)
    growing = sum(one.is_landmark for one in every)
    text = f"{number(sum(one.overlap for one in every if not one.is_landmark))} windows"
    return text + (
        f", and in every later one of {count(growing, 'landmark query', 'landmark queries')}" if growing else ""
    )


def one_line(text: str) -> str:
    """Any text on one line and safe to print: names and SQL may hold line breaks and control characters.

    >>> one_line("SELECT a\\n  FROM b\\x1b[31m")
    'SELECT a FROM b�[31m'
    """
    return "".join(letter if letter.isprintable() else "�" for letter in " ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """
    >>> shorten("a rather long name", 8)
    'a rathe…'
    """
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def listing(parts: Iterable[str], at_most: int = 6) -> str:
    """
    >>> listing(["a", "b", "c"], at_most=2)
    'a, b and 1 more'
    """
    every = list(parts)
    shown = ", ".join(every[:at_most])
    return shown if len(every) <= at_most else f"{shown} and {len(every) - at_most} more"
