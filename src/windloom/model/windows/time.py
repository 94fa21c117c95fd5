"""Windows of time: `[RANGE 1 hour SLIDE 1 minute]`."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.formatting import short_duration
from windloom.model.time import format_duration
from windloom.model.windows.window import Window


@dataclass(frozen=True, slots=True)
class TimeWindow(Window):
    """Windows `[k·slide + offset, k·slide + offset + range)` for every integer k, half-open, aligned to the epoch.

    A slide longer than the range is legal: tuples in the gaps belong to no window.
    The offset is kept modulo the slide, so equal windows compare equal.

    >>> TimeWindow(10, 5, -2) == TimeWindow(10, 5, 3)
    True
    >>> TimeWindow(3_600_000_000, 60_000_000).short, TimeWindow(60_000_000, 60_000_000, 1_000_000).short
    ('1 h / 1 min', '1 min tumbling + 1 s')
    """

    range_ticks: int
    slide_ticks: int
    offset_ticks: int = 0

    kind = "range"
    listed_at = 0
    example = "[RANGE 1 hour SLIDE 1 minute]"
    further_examples = ("[TUMBLE 1 hour]",)
    function = "window"
    plural = "windows of time"

    def __post_init__(self) -> None:
        self._check([("range", self.range_ticks), ("slide", self.slide_ticks)])
        object.__setattr__(self, "offset_ticks", self.offset_ticks % self.slide_ticks)

    def with_slide(self, slide_ticks: int) -> TimeWindow:
        return TimeWindow(self._range_at(slide_ticks), slide_ticks, self.offset_ticks)

    def _written(self) -> str:
        if self.is_tumbling:
            return f"TUMBLE {format_duration(self.range_ticks)}"
        return f"RANGE {format_duration(self.range_ticks)} SLIDE {format_duration(self.slide_ticks)}"

    def intervals_text(self) -> str:
        """
        >>> TimeWindow(3_600_000_000, 60_000_000, 5_000_000).intervals_text()
        '[t, t + 1 h) for every t = k · 1 min + 5 s'
        """
        return f"[t, t + {short_duration(self.range_ticks)}) for every t = {self._multiples()}"
