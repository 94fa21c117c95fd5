"""Clauses around a query: EMIT, when it reports a row of a window; WITHIN and PRIORITY, how urgent its answers are;
and the select list and ORDER BY, which decide what readers see of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windloom.errors import WindloomError
from windloom.model.time import format_duration


class Emits(StrEnum):
    """Which rows are reported."""

    FINAL = "final"  # every row of every window, once, when the window is closed
    CHANGES = "changes"  # only final rows that differ from those of the window before, and rows that have vanished
    EMPTY = "empty"  # final rows, and a row for every window in which a known group has no tuple
    EARLY = "early"  # final rows, and provisional rows of windows that are open


#: The column of EMIT CHANGES that shows what happened to the row of a group.
CHANGE = "change"
#: Columns of EMIT EARLY: whether a row is provisional, final or withdrawn; and, for open windows, the time it reflects.
REPORT, AS_OF = "report", "as_of"
#: The columns that a way of emitting adds to the rows of a query.
ADDED_COLUMNS = {Emits.CHANGES: (CHANGE,), Emits.EARLY: (REPORT, AS_OF)}
#: The column that shows, when a row enters, when it will leave: the end of the first window without it.
VALID_UNTIL = "valid_until"


def added_types(kind: Emits, time: str) -> dict[str, str]:
    """Return the columns that a way of emitting adds, with their Spark types; `time` is the type of window edges.

    >>> added_types(Emits.EARLY, "timestamp")
    {'report': 'string', 'as_of': 'timestamp'}
    """
    return {name: time if name == AS_OF else "string" for name in ADDED_COLUMNS.get(kind, ())}


@dataclass(frozen=True, slots=True)
class Emission:
    """The clause EMIT of a query; `every_ticks` is how often it reports provisional rows, in event time."""

    kind: Emits = Emits.FINAL
    every_ticks: int = 0

    def __str__(self) -> str:
        every = f" EVERY {format_duration(self.every_ticks)}" if self.kind is Emits.EARLY else ""
        return f"EMIT {self.kind.upper()}{every}"


#: Priorities go from the first, which is answered before all others, to the last.
FIRST_PRIORITY, USUAL_PRIORITY, LAST_PRIORITY = 1, 5, 9


@dataclass(frozen=True, slots=True)
class Urgency:
    """A window is wanted `within_ticks` after it closes; None means within a slide, before the next window closes.

    If not everything can be answered in time, a lower `priority` comes first.
    """

    within_ticks: int | None = None
    priority: int = USUAL_PRIORITY

    def __post_init__(self) -> None:
        if self.within_ticks is not None and self.within_ticks < 0:
            raise WindloomError(
                "a deadline cannot be negative",
                f"it is {format_duration(self.within_ticks)}",
                "say how long after a window is closed its answer is wanted: WITHIN 30 seconds",
            )
        if not FIRST_PRIORITY <= self.priority <= LAST_PRIORITY:
            raise WindloomError(
                f"there is no priority {self.priority}",
                f"{FIRST_PRIORITY} is answered first, {LAST_PRIORITY} last, and {USUAL_PRIORITY} is usual",
                f"give a number from {FIRST_PRIORITY} to {LAST_PRIORITY}",
            )

    def __str__(self) -> str:
        """Return the clause that stands before AS; empty for a query that names neither deadline nor priority.

        >>> str(Urgency(30_000_000, 2)), str(Urgency(priority=1)), str(Urgency())
        ('WITHIN 30 seconds PRIORITY 2', 'PRIORITY 1', '')
        """
        words = [] if self.within_ticks is None else [f"WITHIN {format_duration(self.within_ticks)}"]
        words += [] if self.priority == USUAL_PRIORITY else [f"PRIORITY {self.priority}"]
        return " ".join(words)


#: The columns with which every row begins: the edges of its window.
WINDOW_EDGES = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column as a text selects it; `column` is the column of the rows that it shows, None the window as a struct."""

    name: str
    column: str | None


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of ORDER BY: a column of the rows."""

    column: str
    is_descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        nulls = "" if self.nulls_first != self.is_descending else f" NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        return f"{self.column}{' DESC' if self.is_descending else ''}{nulls}"


@dataclass(frozen=True, slots=True)
class Presentation:
    """What readers see of the rows of a query: the columns that its text selects, and the order of the rows.

    Rows themselves always have their window and their groups, which tell them apart: sinks need these. With `columns`
    None, readers see all columns, as for a window in brackets.
    """

    columns: tuple[ShownColumn, ...] | None = None
    order: tuple[SortKey, ...] = ()
