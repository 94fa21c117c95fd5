"""Pairs (Krishnamurthy et al.): edges where windows start and end, so at most two slices per slide."""

from __future__ import annotations

from windloom.model.windows import Window
from windloom.slicing.edges import EdgeClass


class Pairs:
    name = "pairs"

    def edges(self, window: Window) -> tuple[EdgeClass, ...]:
        starts = EdgeClass(window.slide_ticks, window.offset_ticks)
        ends = EdgeClass(window.slide_ticks, window.offset_ticks + window.range_ticks)
        return (starts,) if starts == ends else (starts, ends)

    def marks(self, window: Window) -> tuple[EdgeClass, ...]:
        return ()
