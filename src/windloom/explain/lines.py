"""Lines of a terminal: a label and its text, wrapped, and texts that fit on one line and are safe to print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

WIDTH = 110
_LABEL_WIDTH = 12


def fact(label: str, text: str, indent: int = 2) -> list[str]:
    """A label and its text, wrapped to the right of the label."""
    head = " " * indent + f"{label:{_LABEL_WIDTH}}  "
    return wrapped(text, head, " " * len(head)) or [head.rstrip()]


def wrapped(text: str, head: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)


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
