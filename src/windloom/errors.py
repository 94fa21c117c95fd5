"""The one exception for users: what happened, a fact, an action."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

Entry = TypeVar("Entry")

#: What to do about columns of Parquet that Spark does not read.
NANOSECONDS_HINT = (
    "round them when they are written: df.to_parquet(…, coerce_timestamps='us', allow_truncated_timestamps=True)"
)
NANOSECONDS_READ_HINT = (
    "give loom.stream the path of the file instead, which reads nanoseconds: loom.stream(name, 'file.parquet')"
)
TIME_HINT = "write the time of day as text, or as a whole number"


class WindloomError(Exception):
    """Something the user can act on. Anything else that escapes Windloom is a bug of ours."""

    def __init__(self, message: str, detail: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[type[WindloomError], tuple[str, str, str]]:
        # Errors cross process borders when the final step runs on executors.
        return (type(self), (self.message, self.detail, self.hint))


class QueryError(WindloomError):
    """A query or catalog text that cannot be accepted; the detail shows line, column and caret."""


class WrongJoinError(QueryError):
    """A join that means nothing sensible, however it would be computed: its keys differ in type, or it has none."""


class SinkDownError(WindloomError):
    """What a sink writes to is away for now: the round waits, and is given to the sink again."""


class WindloomWarning(UserWarning):
    """Something that is accepted, and will not do what it seems to ask for."""


def closest(wanted: str, known: list[str]) -> list[str]:
    """The known names that may have been meant, the closest first."""
    folded = {name.lower(): name for name in known}
    return [folded[name] for name in get_close_matches(str(wanted).lower(), list(folded), n=3, cutoff=0.6)]


def near_names(wanted: str, known: list[str]) -> str:
    """A hint listing the known names closest to `wanted`.

    >>> near_names("prise", ["price", "symbol"])
    "did you mean 'price'?"
    >>> near_names("zzz", ["price", "symbol"])
    'known names: price, symbol'
    """
    close = closest(wanted, known)
    return meant(close) if close else known_names(known)


def meant(close: list[str]) -> str:
    """A hint that names what may have been meant."""
    return "did you mean " + " or ".join(f"'{name}'" for name in close) + "?"


def known_names(known: list[str]) -> str:
    """A hint that lists names, or some of them if there are many."""
    if not known:
        return "there are none yet"
    shown = sorted(known)[:20]
    return "known names: " + ", ".join(shown) + (", …" if len(known) > len(shown) else "")


def find_named(kind: str, name: str, entries: Mapping[str, Entry], fact: str, *also: str) -> Entry:
    """The entry with this name; otherwise an error that names the nearest of them and of `also`."""
    if name not in entries:
        raise WindloomError(f"unknown {kind} '{name}'", fact, near_names(name, [*also, *entries]))
    return entries[name]
