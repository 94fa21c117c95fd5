"""The first window from which a query that was added later is exact.

Tuples of the rounds so far have ticks up to some M. A window that starts after M is always exact. One that starts
earlier is exact if everything it covers is kept, with all components the query needs, and if it fits every slicing that
was in force: each of its edges lies after the last tuple of that slicing, or is an edge of the slicing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm

import numpy as np

from windloom.model.time import TICK_MIN
from windloom.plan.plan import Member, PartialSet
from windloom.slicing.edges import EdgeClass
from windloom.state.cells import Cells
from windloom.state.state import CellCoverage, PastSlicing

#: After this many window edges have been examined, the next earlier one counts as missing. Windows are then reported
#: later than they could be, but only where their edges are divided among classes with an astronomically long composite
#: slide.
MOST_EDGES = 1 << 20


def first_exact(partial_set: PartialSet, planned: Member, history: CellCoverage, seen: int | None) -> int | None:
    """Return the start of the first window from which all are exact, None if all are; `seen` is the latest tick."""
    if seen is None:
        return None
    window = planned.query.window
    # If the watermark is ahead of the stream, what is no longer kept never existed.
    lowest = min(kept_from(partial_set, planned, history), seen + 1)
    last_wrong: int | None = None if lowest == TICK_MIN else -((window.offset_ticks - lowest) // window.slide_ticks) - 1
    starts = EdgeClass(window.slide_ticks, window.offset_ticks)
    ends = EdgeClass(window.slide_ticks, window.offset_ticks + window.range_ticks)
    for cut in history.cuts:
        for edges, shift in ((starts, 0), (ends, window.range_ticks)):
            missing = last_missing(edges, cut, lowest)
            if missing is not None:
                index = (missing - shift - window.offset_ticks) // window.slide_ticks
                last_wrong = index if last_wrong is None else max(last_wrong, index)
    return None if last_wrong is None else (last_wrong + 1) * window.slide_ticks + window.offset_ticks


def kept_from(partial_set: PartialSet, planned: Member, history: CellCoverage) -> int:
    """Return the tick since which cells hold every tuple and every component of the query."""
    wanted = set(planned.query.components)
    known = [tick for index, tick in history.known_from.items() if partial_set.components[index].component in wanted]
    return max([history.kept_from, *known])


def last_missing(wanted: EdgeClass, cut: PastSlicing, lowest: int) -> int | None:
    """Return the latest tick of `wanted`, between `lowest` and the end of the cut, that is not an edge of the cut."""
    if any(edge_class.covers(wanted) for edge_class in cut.edges.classes):
        return None
    tick = cut.until - (cut.until - wanted.residue) % wanted.period
    looked_at, size = 0, 64
    pattern = lcm(cut.edges.composite_slide, wanted.period) // wanted.period
    while tick >= lowest and looked_at < pattern:
        if looked_at >= MOST_EDGES:
            return tick
        # In this order, so that the first one found is the latest; never far below TICK_MIN.
        count = min(size, pattern - looked_at, (tick - lowest) // wanted.period + 1)
        ticks = tick - np.arange(count, dtype=np.int64) * wanted.period
        are_edges = np.zeros(len(ticks), np.bool_)
        for edge_class in cut.edges.classes:
            are_edges |= (ticks - edge_class.residue) % edge_class.period == 0
        missing = np.flatnonzero(~are_edges)
        if len(missing):
            return int(ticks[missing[0]])
        tick, looked_at, size = int(ticks[-1]) - wanted.period, looked_at + count, min(8 * size, 1 << 16)
    return None


#: Gives the cells of a set from past rounds, and from when on they hold everything; None if past rounds lack it.
Past = Callable[[PartialSet], tuple[Cells | None, CellCoverage] | None]
