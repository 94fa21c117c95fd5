"""Urgency: by when the answers of a query are wanted, and before which other queries."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.errors import WindloomError
from windloom.model.time import format_duration

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
        """The clause that stands before AS; empty for a query that names neither deadline nor priority.

        >>> str(Urgency(30_000_000, 2)), str(Urgency(priority=1)), str(Urgency())
        ('WITHIN 30 seconds PRIORITY 2', 'PRIORITY 1', '')
        """
        words = [] if self.within_ticks is None else [f"WITHIN {format_duration(self.within_ticks)}"]
        words += [] if self.priority == USUAL_PRIORITY else [f"PRIORITY {self.priority}"]
        return " ".join(words)
