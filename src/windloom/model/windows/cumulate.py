"""Cumulating windows: `[CUMULATE 1 day SLIDE 1 minute]`, from the beginning of every day up to each minute of it."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.errors import WindloomError
from windloom.model.clauses import Emits
from windloom.model.formatting import number, short_duration
from windloom.model.time import format_duration
from windloom.model.windows.window import Window


@dataclass(frozen=True, slots=True)
class CumulateWindow(Window):
    """Windows that begin at every `k·period + offset` and end at every slide up to the next beginning.

    Their range is their slide, as for landmark windows: these are the stretches that a window grows by. The slide
    divides the period, so these stretches have all the edges.

    >>> CumulateWindow(86_400_000_000, 60_000_000).short
    'cumulate 1 d / 1 min'
    >>> CumulateWindow(20, 5, 8).begin(29), CumulateWindow(20, 5, -12).begin(28)
    (28, 28)
    """

    period_ticks: int
    slide_ticks: int
    offset_ticks: int = 0

    kind = "cumulate"
    listed_at = 2
    example = "[CUMULATE 1 day SLIDE 1 minute]"
    plural = "cumulating windows"
    slices_phrase = "grows at every slide by {}"
    keeps_slices = False  # a window has another number of them at every slide
    join_obstacle = "they are reported for one stream only"
    reports_rows = False
    emission_obstacles = {  # noqa: RUF012 - a constant
        Emits.EARLY: "an open window is reported at every slide already",
        **dict.fromkeys(
            (Emits.CHANGES, Emits.EMPTY), "the window after the last one of a period begins anew, and continues none"
        ),
    }

    def __post_init__(self) -> None:
        self._check([("length", self.period_ticks), ("slide", self.slide_ticks)])
        if self.period_ticks % self.slide_ticks:
            raise WindloomError(
                f"the slide {format_duration(self.slide_ticks)} of a cumulating window does not divide its length, "
                f"{format_duration(self.period_ticks)}",
                hint=f"use a slide that does, for example {self.example}",
            )
        object.__setattr__(self, "offset_ticks", self.offset_ticks % self.period_ticks)

    def begin(self, tick: int) -> int:
        """Return where the windows that hold the tick begin."""
        return tick - (tick - self.offset_ticks) % self.period_ticks

    def begin_after(self, tick: int) -> int:
        """Return the first beginning at or after the tick."""
        return tick + (self.offset_ticks - tick) % self.period_ticks

    @property
    def range_ticks(self) -> int:
        return self.slide_ticks

    @property
    def is_tumbling(self) -> bool:
        return self.period_ticks == self.slide_ticks

    @property
    def restart_ticks(self) -> int | None:
        return self.period_ticks

    @property
    def overlap(self) -> float:
        return (self.period_ticks // self.slide_ticks + 1) / 2

    @property
    def extent_ticks(self) -> int | None:
        return self.period_ticks

    def with_slide(self, slide_ticks: int) -> CumulateWindow:
        whole = max(1, round(self.period_ticks / slide_ticks)) * slide_ticks
        return CumulateWindow(whole, slide_ticks, self.offset_ticks)

    def _written(self) -> str:
        return f"CUMULATE {format_duration(self.period_ticks)} SLIDE {format_duration(self.slide_ticks)}"

    def _short_lengths(self) -> str:
        return f"cumulate {short_duration(self.period_ticks)} / {short_duration(self.slide_ticks)}"

    def intervals_text(self) -> str:
        offset = f" + {short_duration(self.offset_ticks)}" if self.offset_ticks else ""
        period, slide = short_duration(self.period_ticks), short_duration(self.slide_ticks)
        return f"[t, t + {slide}), [t, t + 2 · {slide}), … [t, t + {period}) for every t = k · {period}{offset}"

    def tuple_text(self) -> str:
        if self.is_tumbling:
            return "lies in exactly one window"
        return f"lies in every window of its period that ends after it: {number(self.overlap)} on average"
