"""Landmark windows: `[LANDMARK SLIDE 1 hour]`, from the beginning of the stream up to each slide."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.clauses import Emits
from windloom.model.time import format_duration
from windloom.model.windows.window import Window


@dataclass(frozen=True, slots=True)
class LandmarkWindow(Window):
    """Windows that all begin at the landmark, and end at every `k·slide + offset` after it.

    Their range is their slide: these are the stretches that a window grows by. So slicings cut them as they cut
    tumbling windows.

    >>> LandmarkWindow(3_600_000_000).short
    'landmark / 1 h'
    """

    slide_ticks: int
    offset_ticks: int = 0

    kind = "landmark"
    listed_at = 1
    example = "[LANDMARK SLIDE 1 hour]"
    plural = "windows from a landmark on"
    tuple_phrase = "lies in every window that ends after it"
    slices_phrase = "grows at every slide by {}"
    keeps_slices = False  # behind the watermark they are folded into one
    is_tumbling = False
    windows_per_tuple = None
    extent_ticks = None
    emission_obstacles = {  # noqa: RUF012 - a constant
        Emits.EMPTY: "a group has a row at every slide from its first tuple on already"
    }

    def __post_init__(self) -> None:
        self._check([("slide", self.slide_ticks)])
        object.__setattr__(self, "offset_ticks", self.offset_ticks % self.slide_ticks)

    @property
    def range_ticks(self) -> int:
        return self.slide_ticks

    def with_slide(self, slide_ticks: int) -> LandmarkWindow:
        return LandmarkWindow(slide_ticks, self.offset_ticks)

    def _written(self) -> str:
        return f"LANDMARK SLIDE {format_duration(self.slide_ticks)}"

    def _short_lengths(self) -> str:
        return f"landmark / {self.short_length(self.slide_ticks)}"

    def intervals_text(self) -> str:
        ends = f"t = {self._multiples()}"
        return f"[landmark, t) for every {ends}; the landmark is the last such t at or before the first event"
