"""Windows: which intervals, of time or of tuple positions, a query reports on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from windloom.errors import WindloomError
from windloom.model.expression import Expression
from windloom.model.time import format_duration

#: Longest range, slide or offset accepted (about 10,000 years): keeps window arithmetic inside 64 bits.
MAX_TICKS = 2**58


class WindowKind(StrEnum):
    """`range`: a stretch of time. `landmark`: from the beginning up to each slide. `rows`: a number of tuples."""

    RANGE = "range"
    LANDMARK = "landmark"
    ROWS = "rows"


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Windows `[k·slide + offset, k·slide + offset + range)` for every integer k, half-open, aligned to the epoch.

    A slide longer than the range is legal: tuples in the gaps belong to no window.
    The offset is kept modulo the slide, so equal windows compare equal.

    Of a landmark window these are the stretches it grows by: each of its windows ends where one of them ends, and all
    begin at the landmark. Of a window of rows a tick is the position of a tuple, counted by itself for every value of
    `partition_by`.

    >>> Window(10, 5, -2) == Window(10, 5, 3)
    True
    """

    range_ticks: int
    slide_ticks: int
    offset_ticks: int = 0
    kind: WindowKind = WindowKind.RANGE
    partition_by: tuple[Expression, ...] = ()

    @classmethod
    def landmark(cls, slide_ticks: int, offset_ticks: int = 0) -> Window:
        return cls(slide_ticks, slide_ticks, offset_ticks, WindowKind.LANDMARK)

    @classmethod
    def rows(cls, count: int, slide: int, offset: int = 0, partition_by: tuple[Expression, ...] = ()) -> Window:
        """Partitions have no order: `PARTITION BY a, b` counts as `PARTITION BY b, a` does."""
        return cls(count, slide, offset, WindowKind.ROWS, tuple(sorted(set(partition_by))))

    def __post_init__(self) -> None:
        lengths = [("slide", self.slide_ticks)]
        if self.is_landmark:
            object.__setattr__(self, "range_ticks", self.slide_ticks)
        else:
            lengths.insert(0, ("number of rows" if self.is_rows else "range", self.range_ticks))
        for what, ticks in lengths:
            if ticks <= 0:
                raise WindloomError(
                    f"the {what} of a window must be positive, not {self.length_text(ticks)}",
                    hint=f"for example {_EXAMPLES[self.kind]}",
                )
            if ticks > MAX_TICKS:
                raise WindloomError(
                    f"the {what} {self.length_text(ticks)} is too long", hint=f"at most {self.length_text(MAX_TICKS)}"
                )
        object.__setattr__(self, "offset_ticks", self.offset_ticks % self.slide_ticks)

    @property
    def is_landmark(self) -> bool:
        return self.kind is WindowKind.LANDMARK

    @property
    def is_rows(self) -> bool:
        return self.kind is WindowKind.ROWS

    @property
    def is_tumbling(self) -> bool:
        return self.range_ticks == self.slide_ticks and not self.is_landmark

    @property
    def overlap(self) -> float:
        """How many windows hold one tuple, on average: range / slide. Of a landmark window: that it is the first in."""
        return self.range_ticks / self.slide_ticks

    def last_start(self, tick: int) -> int:
        """The latest `k·slide + offset` at or before the tick."""
        return tick - (tick - self.offset_ticks) % self.slide_ticks

    def length_text(self, ticks: int) -> str:
        """A length as people write it: a duration, or a number of rows."""
        return str(ticks) if self.is_rows else format_duration(ticks)

    def __str__(self) -> str:
        slide = f"SLIDE {self.length_text(self.slide_ticks)}"
        match self.kind:
            case WindowKind.LANDMARK:
                text = f"LANDMARK {slide}"
            case WindowKind.ROWS:
                keys = ", ".join(str(one) for one in self.partition_by)
                text = (f"PARTITION BY {keys} " if keys else "") + f"ROWS {self.length_text(self.range_ticks)} {slide}"
            case _ if self.is_tumbling:
                text = f"TUMBLE {format_duration(self.range_ticks)}"
            case _:
                text = f"RANGE {format_duration(self.range_ticks)} {slide}"
        if self.offset_ticks:
            text += f" OFFSET {self.length_text(self.offset_ticks)}"
        return f"[{text}]"


_EXAMPLES = {
    WindowKind.RANGE: "[RANGE 1 hour SLIDE 1 minute]",
    WindowKind.LANDMARK: "[LANDMARK SLIDE 1 hour]",
    WindowKind.ROWS: "[ROWS 1000 SLIDE 100]",
}
