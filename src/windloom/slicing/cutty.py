"""Cutty-slicing (Carbone et al.): a slice starts only where a window starts, so a window has ⌈range/slide⌉ partials.

If a window ends inside a slice, the final step reads the slice's running value there: the end is a *mark*.
The intake aggregates tuples between edges and marks; a slice is stored as one partial plus its running
values at the marks inside it. Storage and final operations are Cutty's, correctness is that of Pairs.
"""

from __future__ import annotations

from windloom.model.windows import Window
from windloom.slicing.edges import EdgeClass


class Cutty:
    name = "cutty"

    def edges(self, window: Window) -> tuple[EdgeClass, ...]:
        return (EdgeClass(window.slide_ticks, window.offset_ticks),)

    def marks(self, window: Window) -> tuple[EdgeClass, ...]:
        ends = EdgeClass(window.slide_ticks, window.offset_ticks + window.range_ticks)
        return () if (ends,) == self.edges(window) else (ends,)
