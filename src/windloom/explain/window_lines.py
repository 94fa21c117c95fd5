"""Windows in the picture, each a line on one logarithmic axis: a tick at the slide, a dot at the range.

The line of a landmark window, which grows without bound, goes to the end of the axis and has no dot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

from windloom.explain.blocks import LINE_WIDTH, QUERY_WIDTH, QUERY_X
from windloom.explain.canvas import FAINT, RULE, Canvas, text_width
from windloom.model.figures import short_duration
from windloom.model.windows import Window

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
#: Durations worth a label, the most common ones first.
_LABELLED = (
    *(_SECOND, 60 * _SECOND, 3_600 * _SECOND, _DAY, 7 * _DAY, 1_000, 1),
    *(10 * _SECOND, 600 * _SECOND, 6 * 3_600 * _SECOND, 30 * _DAY, 365 * _DAY, 3_650 * _DAY, 36_500 * _DAY),
    *(100_000, 10_000, 100, 10),
)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    shortest: int
    longest: int

    @classmethod
    def of(cls, windows: Iterable[Window]) -> TimeAxis:
        timed = [window for window in windows if not window.is_of_positions]
        ticks = [length for window in timed for length in (window.range_ticks, window.slide_ticks)] or [_SECOND]
        shortest, longest = min(ticks), max(ticks)
        return cls(shortest, max(longest, shortest * 10))

    @property
    def left(self) -> float:
        return QUERY_X + QUERY_WIDTH - LINE_WIDTH

    def at(self, ticks: int) -> float:
        """The place of a duration. The line ends a little inside its room, so that dots at both ends stay whole."""
        fraction = log(ticks / self.shortest) / log(self.longest / self.shortest)
        return self.left + 4.0 + (LINE_WIDTH - 8.0) * fraction

    def labels(self) -> list[tuple[float, str]]:
        """Round durations that have room next to each other."""
        found: list[tuple[float, str]] = []
        taken: list[tuple[float, float]] = []
        for ticks in _LABELLED:
            if not self.shortest <= ticks <= self.longest:
                continue
            text, place = short_duration(ticks), self.at(ticks)
            half = text_width(text, 10) / 2 + 3.0
            if all(place + half <= left or right <= place - half for left, right in taken):
                found.append((place, text))
                taken.append((place - half, place + half))
        return found

    def draw(self, canvas: Canvas, top: float, bottom: float) -> None:
        for place, text in self.labels():
            canvas.line(place, top, place, bottom, RULE, 0.7, extra=' stroke-dasharray="1 3"')
            canvas.text(place, top - 5.0, text, 10, FAINT, room=60, anchor="middle")


def draw_window(canvas: Canvas, axis: TimeAxis, window: Window, y: float, colour: str, height: float) -> None:
    if window.is_of_positions:
        return  # how long a number of rows lasts depends on the stream
    slide, range_end = axis.at(window.slide_ticks), axis.at(window.extent_ticks or axis.longest)
    gaps = ' stroke-dasharray="2 2"' if window.slide_ticks > window.range_ticks else ""
    left, right = min(slide, range_end), max(slide, range_end)
    thick = max(0.9, min(2.0, height / 3))
    canvas.line(left, y, right, y, colour, thick, extra=f' stroke-opacity="0.6"{gaps}')
    if height >= 8:
        canvas.line(slide, y - 3.5, slide, y + 3.5, colour, 1.4)
    if window.extent_ticks is None:
        return  # it grows without bound
    if height >= 8:
        canvas.dot(range_end, y, 3.0, colour)
    elif height >= 3:
        canvas.dot(range_end, y, 1.4, colour)
