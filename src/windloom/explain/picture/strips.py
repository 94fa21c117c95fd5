"""Strips of the picture: the edges of sets and trees to scale, and windows as lines on one logarithmic axis."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import log

from windloom.explain.picture.canvas import FAINT, INK, PAPER, RULE, WASH, Canvas, shown, text_width
from windloom.explain.picture.layout import LINE_WIDTH, QUERY_WIDTH, QUERY_X, SHOWN_STRIP_TREES, STRIP_ROW, SetBlock
from windloom.explain.words import is_astronomic, measure_of
from windloom.model.formatting import count, short_duration
from windloom.model.windows import Window
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import RegularSlice

#: The most edges that are drawn; more would run into each other.
_DRAWN_EDGES = 48
_REGULAR_SLICES = 12
_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 100, 120, 200, 300, 500)
_NICE_TICKS = sorted(
    {step * unit for unit in (1, 1_000, 10**6, 60 * 10**6, 3_600 * 10**6, 86_400 * 10**6) for step in _STEPS}
)


def strip_span(block: SetBlock) -> tuple[int, str]:
    """Return the number of ticks that the strip shows, and a text about their part of the whole."""
    edges = block.partial_set.edges
    if isinstance(block.partial_set.slice_id, RegularSlice):
        # Several trees with coarser slices need a longer stretch to show how they differ.
        slices = _REGULAR_SLICES if len(block.partial_set.trees) == 1 else 5 * _REGULAR_SLICES
        return slices * edges.pane.period, "regular slices"
    room = int(_DRAWN_EDGES / edges.density.value)
    composite, in_slide = edges.composite_slide, edges.count_per_composite
    if composite <= room:
        return composite, "one composite slide" + ("" if in_slide is None else f", {count(in_slide, 'edge')}")
    span = _NICE_TICKS[max(0, bisect_right(_NICE_TICKS, room) - 1)]
    whole = "an astronomic slide" if is_astronomic(composite) else measure_of(block.partial_set).length(composite)
    return span, f"first part of {whole}"


def draw_strip(canvas: Canvas, block: SetBlock) -> None:
    """Draw the edges of a set, and below them those of its trees if there are several."""
    x, width = block.card.x + 14.0, block.card.width - 28.0
    span, what = strip_span(block)
    trees = block.partial_set.trees
    top, height = block.strip_y, 24.0 if len(trees) == 1 else 16.0
    colour = block.trees[0].colour if len(trees) == 1 else INK

    def places(edges: EdgeSet) -> list[float]:
        """Return where the edges in [0, span) are drawn, in order."""
        ticks = {tick for each in edges.classes for tick in range(each.residue % each.period, span, each.period)}
        return [x + width * tick / span for tick in sorted(ticks)]

    canvas.rect(x, top, width, height, WASH)
    edges = places(block.partial_set.edges)
    for left, right in list(pairwise([*edges, x + width]))[::2]:
        canvas.rect(left, top, right - left, height, colour, extra=' fill-opacity="0.16"')
    _draw_edges(canvas, edges, places(trees[0].marks) if len(trees) == 1 else [], top, height, colour)
    y = top + height
    if len(trees) > 1:
        y += 3.0
        for tree, drawn in zip(trees[:SHOWN_STRIP_TREES], block.trees, strict=False):
            canvas.line(x, y + STRIP_ROW / 2, x + width, y + STRIP_ROW / 2, RULE, 0.7)
            _draw_edges(canvas, places(tree.edges), places(tree.marks), y + 1, STRIP_ROW - 2, drawn.colour)
            y += STRIP_ROW
    if len(trees) > SHOWN_STRIP_TREES:
        what += f", {SHOWN_STRIP_TREES} of {len(trees)} trees"
    measure = measure_of(block.partial_set)
    end = measure.short(span)
    canvas.text(x, y + 13.0, "0", 10, FAINT, room=30)
    canvas.text(x + width / 2, y + 13.0, what, 10, FAINT, room=width - 150, anchor="middle")
    canvas.text(x + width, y + 13.0, end if len(end) < 9 else measure.length(span), 10, FAINT, room=72, anchor="end")


def _draw_edges(canvas: Canvas, edges: list[float], marks: list[float], top: float, height: float, colour: str) -> None:
    """Draw edges as lines, and marks as dots, hollow because nothing begins there."""
    if edges:
        canvas.path("".join(f"M{shown(place)} {shown(top)}v{shown(height)}" for place in edges), colour, 1.4)
    for place in marks:
        canvas.dot(place, top + height / 2, 2.0, PAPER, extra=f' stroke="{colour}"')


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
    """A logarithmic axis of durations, which all windows of the picture share."""

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
        """Return the place of a duration: a little inside the room, so that dots at both ends stay whole."""
        fraction = log(ticks / self.shortest) / log(self.longest / self.shortest)
        return self.left + 4.0 + (LINE_WIDTH - 8.0) * fraction

    def draw(self, canvas: Canvas, top: float, bottom: float) -> None:
        """Draw a line for every round duration that has room for its label."""
        taken: list[tuple[float, float]] = []
        for ticks in (ticks for ticks in _LABELLED if self.shortest <= ticks <= self.longest):
            text, place = short_duration(ticks), self.at(ticks)
            half = text_width(text, 10) / 2 + 3.0
            if all(place + half <= left or right <= place - half for left, right in taken):
                taken.append((place - half, place + half))
                canvas.line(place, top, place, bottom, RULE, 0.7, extra=' stroke-dasharray="1 3"')
                canvas.text(place, top - 5.0, text, 10, FAINT, room=60, anchor="middle")


def draw_window(canvas: Canvas, axis: TimeAxis, window: Window, y: float, colour: str, height: float) -> None:
    """Draw a window from its slide (a tick) to its range (a dot); one that grows without bound has no dot."""
    if window.is_of_positions:
        return  # how long a number of rows lasts depends on the stream
    slide, range_end = axis.at(window.slide_ticks), axis.at(window.extent_ticks or axis.longest)
    gaps = ' stroke-dasharray="2 2"' if window.slide_ticks > window.range_ticks else ""
    left, right = min(slide, range_end), max(slide, range_end)
    thick = max(0.9, min(2.0, height / 3))
    canvas.line(left, y, right, y, colour, thick, extra=f' stroke-opacity="0.6"{gaps}')
    if height >= 8:
        canvas.line(slide, y - 3.5, slide, y + 3.5, colour, 1.4)
    if window.extent_ticks is not None and height >= 3:
        canvas.dot(range_end, y, 3.0 if height >= 8 else 1.4, colour)
