"""The slicings: where the streams of a window are cut into slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from windloom.errors import find_named
from windloom.model.windows import Window
from windloom.slicing.edges import EdgeClass


@dataclass(frozen=True, slots=True, eq=False)
class Slicing:
    """Where partials begin (`edges`) and where a running value is read inside a partial (`marks`)."""

    name: str
    edges: Callable[[Window], tuple[EdgeClass, ...]]
    marks: Callable[[Window], tuple[EdgeClass, ...]] = lambda window: ()


def _start_and_end(window: Window) -> tuple[EdgeClass, ...]:
    start = EdgeClass(window.slide_ticks, window.offset_ticks)
    end = EdgeClass(window.slide_ticks, window.offset_ticks + window.range_ticks)
    return (start,) if start == end else (start, end)


#: Edges where windows start and end, so at most two slices per slide (Krishnamurthy et al.).
_PAIRS = Slicing("pairs", _start_and_end)

#: Slices of equal length gcd(range, slide), so a window has range/gcd partials (Li et al.).
_PANES = Slicing("panes", lambda window: (EdgeClass(gcd(window.range_ticks, window.slide_ticks), window.offset_ticks),))

#: A slice starts only where a window starts, so a window has ⌈range/slide⌉ partials (Carbone et al.).
#:
#: If a window ends inside a slice, the final step reads the running value of the slice there: the end is a *mark*. The
#: intake aggregates tuples between edges and marks; a slice is stored as one partial plus its running values at the
#: marks inside it. Storage and final operations are Cutty's, correctness is that of Pairs.
_CUTTY = Slicing("cutty", lambda window: _start_and_end(window)[:1], lambda window: _start_and_end(window)[1:])

SLICINGS = {slicing.name: slicing for slicing in (_PAIRS, _PANES, _CUTTY)}


def find_slicing(name: str) -> Slicing:
    return find_named("slicing", name, SLICINGS, "it says where streams are cut into slices")
