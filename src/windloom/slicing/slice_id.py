"""How Spark finds the slice of a tuple: four ways to compute the start of the slice that holds a tick.

A slice is identified by its start, the latest edge at or before the tuple's time. This is global, independent of any
composite slide, and readable. Spark evaluates the chosen expression as generated code, tuple by tuple.
"""

from __future__ import annotations

from dataclasses import dataclass

from windloom.slicing.edges import EdgeClass, EdgeSet

#: The longest table that a generated expression may carry (measured: no penalty at 1,000 entries).
LOOKUP_ENTRIES = 2_048
#: Evaluating `greatest` over a few classes costs less than carrying a table.
FEW_CLASSES = 6
#: Panes that are coarsened afterwards pay off if they multiply the partials by no more than this.
PANE_BLOW_UP = 16.0


@dataclass(frozen=True, slots=True)
class RegularSlice:
    """One remainder, for edges at equal distances."""

    edges: EdgeClass
    way: str = "regular"


@dataclass(frozen=True, slots=True)
class LookupSlice:
    """A table over one composite slide: `table[i]` is the last edge at or before pane i of the slide."""

    composite_ticks: int
    pane_ticks: int
    origin: int
    table: tuple[int, ...]
    way: str = "lookup"


@dataclass(frozen=True, slots=True)
class GreatestSlice:
    """The greatest of the last edges of every class."""

    classes: tuple[EdgeClass, ...]
    way: str = "greatest"


@dataclass(frozen=True, slots=True)
class PaneSlice:
    """Panes as long as the common divisor; the step coarsens them to slices."""

    edges: EdgeClass
    way: str = "panes, coarsened in the step"


SliceId = RegularSlice | LookupSlice | GreatestSlice | PaneSlice


def choose_slice_id(edges: EdgeSet) -> SliceId:
    """Return the cheapest exact way, or panes if the composite slide is too long for a table."""
    pane = edges.pane
    if len(edges.classes) == 1 or edges.density.value * pane.period == 1:
        return RegularSlice(pane)
    if len(edges.classes) <= FEW_CLASSES:
        return GreatestSlice(edges.classes)
    entries = edges.composite_slide // pane.period
    if entries <= LOOKUP_ENTRIES:
        return LookupSlice(edges.composite_slide, pane.period, edges.classes[0].residue, _table(edges, entries))
    blow_up = 1.0 / (float(edges.density.value) * pane.period)
    return PaneSlice(pane) if blow_up <= PANE_BLOW_UP else GreatestSlice(edges.classes)


def _table(edges: EdgeSet, entries: int) -> tuple[int, ...]:
    """Return slice starts relative to the composite slide's origin, which is an edge of the first class."""
    pane_ticks, origin = edges.pane.period, edges.classes[0].residue
    is_edge = [False] * entries
    for edge_class in edges.classes:
        first = (edge_class.residue - origin) % edge_class.period // pane_ticks
        for index in range(first, entries, edge_class.period // pane_ticks):
            is_edge[index] = True
    table, last = [], 0
    for index in range(entries):
        if is_edge[index]:
            last = index * pane_ticks
        table.append(last)
    return tuple(table)
