"""A time window: which intervals a query reports on."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.errors import WindloomError
from windloom.model.time import format_duration

#: Longest range, slide or offset accepted (about 10,000 years): keeps window arithmetic inside 64 bits.
MAX_TICKS = 2**58


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Windows `[k·slide + offset, k·slide + offset + range)` for every integer k, half-open, aligned to the epoch.

    A slide longer than the range is legal: tuples in the gaps belong to no window.
    The offset is kept modulo the slide, so equal windows compare equal.

    >>> Window(10, 5, -2) == Window(10, 5, 3)
    True
    """

    range_ticks: int
    slide_ticks: int
    offset_ticks: int = 0

    def __post_init__(self) -> None:
        for what, ticks in (("range", self.range_ticks), ("slide", self.slide_ticks)):
            if ticks <= 0:
                raise WindloomError(
                    f"the {what} of a window must be positive, not {format_duration(ticks)}",
                    hint="for example [RANGE 1 hour SLIDE 1 minute]",
                )
            if ticks > MAX_TICKS:
                raise WindloomError(
                    f"the {what} {format_duration(ticks)} is too long", hint=f"at most {format_duration(MAX_TICKS)}"
                )
        object.__setattr__(self, "offset_ticks", self.offset_ticks % self.slide_ticks)

    @property
    def is_tumbling(self) -> bool:
        return self.range_ticks == self.slide_ticks

    @property
    def overlap(self) -> float:
        """How many windows hold one tuple, on average: range / slide."""
        return self.range_ticks / self.slide_ticks

    def __str__(self) -> str:
        if self.is_tumbling:
            text = f"TUMBLE {format_duration(self.range_ticks)}"
        else:
            text = f"RANGE {format_duration(self.range_ticks)} SLIDE {format_duration(self.slide_ticks)}"
        if self.offset_ticks:
            text += f" OFFSET {format_duration(self.offset_ticks)}"
        return f"[{text}]"
