"""Slices in words: how a tuple finds its slice, how many edges there are, when they repeat.

If slices are of positions, their lengths are shown in rows, and their rates follow from the rate of the stream.
"""

from __future__ import annotations

from dataclasses import dataclass

from windloom.explain.durations import is_astronomic, length, period
from windloom.model.figures import amount, count, short_duration
from windloom.model.time import TICKS_PER_SECOND, format_duration
from windloom.plan.physical import PartialSet
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.identify import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId

#: Edge classes are listed one by one up to this many.
_LISTED_CLASSES = 4


@dataclass(frozen=True, slots=True)
class Measure:
    """How lengths and rates of a set's slices are shown; `pace` is that of its statistics.

    >>> Measure(is_of_positions=True).whole(1000), Measure().whole(1_000_000), Measure(is_of_positions=True).short(1)
    ('1,000 rows', '1 second', '1 row')
    """

    pace: float = 1.0
    is_of_positions: bool = False

    def whole(self, ticks: int) -> str:
        return count(ticks, "row") if self.is_of_positions else format_duration(ticks)

    def short(self, ticks: int) -> str:
        return count(ticks, "row") if self.is_of_positions else short_duration(ticks)

    def length(self, ticks: float) -> str:
        return amount(ticks, "row") if self.is_of_positions else length(ticks)

    def period(self, ticks: int) -> str:
        return count(ticks, "row") if self.is_of_positions else period(ticks)

    def rate(self, edges: EdgeSet) -> float:
        """Edges per second of event time."""
        return edges.edges_per_second * self.pace


TIME = Measure()


def measure_of(partial_set: PartialSet) -> Measure:
    return Measure(partial_set.statistics.pace, partial_set.window.is_of_positions)


def slice_id_text(slice_id: SliceId, measure: Measure = TIME) -> str:
    """How a tuple finds its slice, with the numbers of the chosen slice id.

    >>> slice_id_text(RegularSlice(EdgeClass(1_000_000)))
    'regular: every 1 second'
    """
    match slice_id:
        case RegularSlice(edges=edges):
            return f"{slice_id.way}: {every(edges, measure)}"
        case LookupSlice():
            where = f"{len(slice_id.table):,} entries over {measure.whole(slice_id.composite_ticks)}"
            return f"{slice_id.way}: {where}, in steps of {measure.whole(slice_id.pane_ticks)}"
        case GreatestSlice(classes=classes):
            text = f"{slice_id.way} of {len(classes)} edge classes"
            if len(classes) <= _LISTED_CLASSES:
                text += ": " + "; ".join(every(edge_class, measure) for edge_class in classes)
            return text
        case PaneSlice(edges=edges):
            return f"{slice_id.way}: {every(edges, measure)}"


def every(edges: EdgeClass, measure: Measure = TIME) -> str:
    """
    >>> every(EdgeClass(60_000_000, 5_000_000))
    'every 1 minute + 5 seconds'
    """
    text = f"every {measure.whole(edges.period)}"
    return text if edges.residue == 0 else f"{text} + {measure.whole(edges.residue)}"


def about(edges: EdgeSet) -> str:
    """`≈ ` before a figure that rests on an estimated density, nothing otherwise."""
    return "" if edges.density.exact else "≈ "


def edge_rate(edges: EdgeSet, measure: Measure = TIME) -> str:
    return about(edges) + amount(measure.rate(edges), "edge/s", "edges/s")


def rate_text(partial_set: PartialSet, edges: EdgeSet) -> str:
    """The rate of edges, or of other beginnings of cells, of a set or of one of its trees."""
    measure = measure_of(partial_set)
    if partial_set.is_relation:
        return "one version"
    if partial_set.window.is_sliced:
        return edge_rate(edges, measure)
    return f"at most {amount(measure.rate(edges), 'cell/s', 'cells/s')} per group"


def cut_text(partial_set: PartialSet, edges: EdgeSet) -> str:
    """How a set, or one of its trees, is cut."""
    if not partial_set.window.is_sliced:
        return partial_set.window.cells_text
    measure = measure_of(partial_set)
    return f"{edge_rate(edges, measure)}, mean length {mean_slice(edges, measure)}"


def mean_slice_ticks(edges: EdgeSet) -> float:
    return TICKS_PER_SECOND / edges.edges_per_second


def mean_slice(edges: EdgeSet, measure: Measure = TIME) -> str:
    return about(edges) + measure.length(mean_slice_ticks(edges))


def repeats(edges: EdgeSet, measure: Measure = TIME) -> str:
    """The time after which the pattern of edges repeats, and the number of edges in it."""
    slide = edges.composite_slide
    if is_astronomic(slide) and not measure.is_of_positions:
        return f"astronomically late: the composite slide is {period(slide)} long"
    edges_in_slide = edges.count_per_composite
    if edges_in_slide is None:
        return f"every {measure.period(slide)} (composite slide)"
    return f"every {measure.period(slide)} (composite slide of {count(edges_in_slide, 'edge')})"
