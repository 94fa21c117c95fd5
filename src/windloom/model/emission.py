"""When a query reports a row of a window: once it is final, only if it has changed, or also if it is empty."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Emits(StrEnum):
    """Which rows are reported."""

    FINAL = "final"  # every row of every window, once, when the window is closed
    CHANGES = "changes"  # of these only rows that differ from those of the window before, and what has vanished
    EMPTY = "empty"  # these, and rows of windows in which a group that is known has no tuple


#: The column that a way of emitting adds to the rows of a query, with its Spark type.
ADDED_COLUMNS = {Emits.CHANGES: ("change", "string")}
#: The column of rows that tell, when they enter, when they will leave: the end of the first window without them.
VALID_UNTIL = "valid_until"


@dataclass(frozen=True, slots=True)
class Emission:
    """The clause EMIT of a query."""

    kind: Emits = Emits.FINAL

    def __str__(self) -> str:
        return f"EMIT {self.kind.upper()}"
