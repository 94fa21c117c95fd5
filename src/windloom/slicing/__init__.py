"""Partial aggregation: where a stream is cut into slices, and the number of edges."""

from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.identify import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId, choose_slice_id
from windloom.slicing.registry import SLICINGS, Slicing, find_slicing

__all__ = [
    "SLICINGS",
    "EdgeClass",
    "EdgeSet",
    "GreatestSlice",
    "LookupSlice",
    "PaneSlice",
    "RegularSlice",
    "SliceId",
    "Slicing",
    "choose_slice_id",
    "find_slicing",
]
