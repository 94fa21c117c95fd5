"""Pairs (Krishnamurthy et al.): edges where windows start and end, so at most two slices per slide."""

from __future__ import annotations

from math import gcd
from typing import Protocol

from windloom.errors import find_named
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


# Panes (Li et al.): slices of equal length gcd(range, slide), so a window has range/gcd partials.


class Panes:
    name = "panes"

    def edges(self, window: Window) -> tuple[EdgeClass, ...]:
        return (EdgeClass(gcd(window.range_ticks, window.slide_ticks), window.offset_ticks),)

    def marks(self, window: Window) -> tuple[EdgeClass, ...]:
        return ()


# Cutty-slicing (Carbone et al.): a slice starts only where a window starts, so a window has ⌈range/slide⌉ partials.
#
# If a window ends inside a slice, the final step reads the slice's running value there: the end is a *mark*.
# The intake aggregates tuples between edges and marks; a slice is stored as one partial plus its running
# values at the marks inside it. Storage and final operations are Cutty's, correctness is that of Pairs.


class Cutty:
    name = "cutty"

    def edges(self, window: Window) -> tuple[EdgeClass, ...]:
        return (EdgeClass(window.slide_ticks, window.offset_ticks),)

    def marks(self, window: Window) -> tuple[EdgeClass, ...]:
        ends = EdgeClass(window.slide_ticks, window.offset_ticks + window.range_ticks)
        return () if (ends,) == self.edges(window) else (ends,)


# The slicings by name; a new one is one file and one line here.


class Slicing(Protocol):
    """Where partials begin (`edges`) and where a running value is read inside a partial (`marks`)."""

    @property
    def name(self) -> str: ...

    def edges(self, window: Window) -> tuple[EdgeClass, ...]: ...

    def marks(self, window: Window) -> tuple[EdgeClass, ...]: ...


SLICINGS: dict[str, Slicing] = {slicing.name: slicing for slicing in (Pairs(), Panes(), Cutty())}


def find_slicing(name: str) -> Slicing:
    return find_named("slicing", name, SLICINGS, "it says where streams are cut into slices")
