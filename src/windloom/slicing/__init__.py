"""Partial aggregation: where a stream is cut into slices, and the number of edges."""

from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.identify import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, choose_slice_id
from windloom.slicing.registry import SLICINGS, find_slicing

__all__ = [
    "SLICINGS",
    "EdgeClass",
    "EdgeSet",
    "GreatestSlice",
    "LookupSlice",
    "PaneSlice",
    "RegularSlice",
    "choose_slice_id",
    "find_slicing",
]
