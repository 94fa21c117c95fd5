"""Slices in words: how a tuple finds its slice, how many edges there are, when they repeat."""

from __future__ import annotations

from windloom.model.time import TICKS_PER_SECOND, format_duration
from windloom.plan.explain.words import count, is_astronomic, length, number, period
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.identify import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId

#: Edge classes are listed one by one up to this many.
_LISTED_CLASSES = 4


def slice_id_text(slice_id: SliceId) -> str:
    """How a tuple finds its slice, with the numbers of the chosen way.

    >>> slice_id_text(RegularSlice(EdgeClass(1_000_000)))
    'regular: every 1 second'
    """
    match slice_id:
        case RegularSlice(edges=edges):
            return f"{slice_id.way}: {every(edges)}"
        case LookupSlice():
            where = f"{len(slice_id.table):,} entries over {format_duration(slice_id.composite_ticks)}"
            return f"{slice_id.way}: {where}, in steps of {format_duration(slice_id.pane_ticks)}"
        case GreatestSlice(classes=classes):
            text = f"{slice_id.way} of {len(classes)} edge classes"
            if len(classes) <= _LISTED_CLASSES:
                text += ": " + "; ".join(every(one) for one in classes)
            return text
        case PaneSlice(edges=edges):
            return f"{slice_id.way}: {every(edges)}"


def every(edges: EdgeClass) -> str:
    """
    >>> every(EdgeClass(60_000_000, 5_000_000))
    'every 1 minute + 5 seconds'
    """
    text = f"every {format_duration(edges.period)}"
    return text if edges.residue == 0 else f"{text} + {format_duration(edges.residue)}"


def about(edges: EdgeSet) -> str:
    """`≈ ` before a figure that rests on an estimated density, nothing otherwise."""
    return "" if edges.density.exact else "≈ "


def edge_rate(edges: EdgeSet) -> str:
    rate = number(edges.edges_per_second)
    return f"{about(edges)}{rate} {'edge' if rate == '1' else 'edges'}/s"


def mean_slice_ticks(edges: EdgeSet) -> float:
    return TICKS_PER_SECOND / edges.edges_per_second


def mean_slice(edges: EdgeSet) -> str:
    return about(edges) + length(mean_slice_ticks(edges))


def repeats(edges: EdgeSet) -> str:
    """When the pattern of edges begins again, and how many edges that takes."""
    slide = edges.composite_slide
    if is_astronomic(slide):
        return f"astronomically late: the composite slide is {period(slide)} long"
    edges_in_slide = edges.count_per_composite
    if edges_in_slide is None:
        return f"every {period(slide)} (composite slide)"
    return f"every {period(slide)} (composite slide of {count(edges_in_slide, 'edge')})"
