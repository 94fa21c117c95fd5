"""Edges of random windows against brute force: counts, slice starts, and every native way to find a slice."""

from __future__ import annotations

from math import gcd, lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from windloom.model import TimeWindow, Window
from windloom.slicing import density, slice_id
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.slice_id import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, choose_slice_id
from windloom.slicing.slicings import SLICINGS

WINDOWS = st.lists(
    st.builds(TimeWindow, st.integers(1, 30), st.integers(1, 14), st.integers(-20, 20)), min_size=1, max_size=6
)
CLASSES = st.lists(st.builds(EdgeClass, st.integers(1, 15), st.integers(0, 60)), min_size=1, max_size=7)


def true_edges(name: str, windows: list[Window], low: int, high: int) -> set[int]:
    """Edges by definition: Panes every gcd, Pairs at window starts and ends, Cutty at window starts."""
    edges: set[int] = set()
    for window in windows:
        r, s, o = window.range_ticks, window.slide_ticks, window.offset_ticks
        if name == "panes":
            edges.update(t for t in range(low, high) if (t - o) % gcd(r, s) == 0)
        else:
            starts = {k * s + o for k in range((low - o - r) // s - 1, (high - o) // s + 2)}
            edges |= starts
            if name == "pairs":
                edges |= {start + r for start in starts}
    return {t for t in edges if low <= t < high}


@pytest.mark.parametrize("name", SLICINGS)
@given(windows=WINDOWS)
def test_a_slicing_cuts_exactly_where_its_definition_says(name: str, windows: list[Window]) -> None:
    edges = EdgeSet.of(edge_class for window in windows for edge_class in SLICINGS[name].edges(window))
    composite = lcm(*(window.slide_ticks for window in windows))
    expected = true_edges(name, windows, 0, composite)
    assert edges.density.exact
    assert edges.density.value * composite == len(expected)
    ticks = np.arange(-composite, composite)
    last = edges.last_edge(ticks)
    assert {int(t) for t in ticks[last == ticks] if t >= 0} == expected


@pytest.mark.parametrize("name", SLICINGS)
@given(window=st.builds(TimeWindow, st.integers(1, 60), st.integers(1, 20)))
def test_a_window_spans_the_partials_of_table_1(name: str, window: Window) -> None:
    if window.slide_ticks > window.range_ticks:
        return  # Table 1 is about overlapping windows
    whole, rest = divmod(window.range_ticks, window.slide_ticks)
    partials = {
        "pairs": 2 * whole + 1 if rest else whole,
        "panes": window.range_ticks // gcd(window.range_ticks, window.slide_ticks),
        "cutty": whole + bool(rest),
    }
    assert len(true_edges(name, [window], 0, window.range_ticks)) == partials[name]


@given(classes=CLASSES)
def test_counting_without_a_bit_set_gives_the_same_density(classes: list[EdgeClass]) -> None:
    edges = EdgeSet.of(classes)
    pairs = frozenset((edge_class.period, edge_class.residue) for edge_class in classes)
    marked = density.union_density(tuple(sorted(pairs)))
    limit = density.BITSET_PANES
    try:
        density.BITSET_PANES = 1
        counted = density._exact(pairs, [10_000])
    finally:
        density.BITSET_PANES = limit
    assert counted == marked.value == edges.density.value


def test_the_estimate_of_a_density_too_long_to_count_is_close_and_repeatable() -> None:
    classes = tuple((period, 0) for period in (101, 103, 107, 109, 113, 127, 131, 137))
    exact = density.union_density(classes)
    assert exact.exact
    estimate, error = density._estimated(list(classes))
    assert abs(float(estimate - exact.value)) <= error < 0.01 * exact.value
    assert (estimate, error) == density._estimated(list(classes))


def evaluate(way: object, tick: int) -> int:
    """A slice id as its SQL computes it, in plain Python."""
    match way:
        case RegularSlice(edges=edges) | PaneSlice(edges=edges):
            return tick - (tick - edges.residue) % edges.period
        case GreatestSlice(classes=classes):
            return max(tick - (tick - edge_class.residue) % edge_class.period for edge_class in classes)
        case LookupSlice():
            within = (tick - way.origin) % way.composite_ticks
            return tick - within + way.table[within // way.pane_ticks]
    raise AssertionError(way)


@settings(max_examples=examples(200))
@given(classes=CLASSES, few=st.sampled_from([1, 6]), entries=st.sampled_from([0, 2048]))
def test_every_way_to_find_a_slice_finds_the_same(classes: list[EdgeClass], few: int, entries: int) -> None:
    edges = EdgeSet.of(classes)
    kept = slice_id.FEW_CLASSES, slice_id.LOOKUP_ENTRIES
    try:
        slice_id.FEW_CLASSES, slice_id.LOOKUP_ENTRIES = few, entries
        way = choose_slice_id(edges)
    finally:
        slice_id.FEW_CLASSES, slice_id.LOOKUP_ENTRIES = kept
    ticks = np.arange(-70, 140)
    found = np.array([evaluate(way, int(tick)) for tick in ticks])
    if isinstance(way, PaneSlice):
        found = edges.last_edge(found)
    assert (found == edges.last_edge(ticks)).all()


def test_a_thousand_irregular_classes_are_estimated_instead_of_exhausting_the_stack() -> None:
    rng = np.random.default_rng(1)
    classes = [EdgeClass(int(p) * 10**6, int(r) * 10**6) for p, r in rng.integers(1000, 3000, (1500, 2))]
    estimate = EdgeSet.of(classes).density
    assert not estimate.exact
    assert 0 < estimate.value < 1
