from __future__ import annotations

import numpy as np
import pytest

from windloom.errors import WindloomError
from windloom.model import TimeWindow
from windloom.slicing.edges import EdgeClass, EdgeSet, weaveability
from windloom.slicing.slice_id import GreatestSlice, PaneSlice, choose_slice_id
from windloom.slicing.slicings import SLICINGS, find_slicing

PAIRS = SLICINGS["pairs"]
SECOND = 1_000_000


def test_example_2_of_weave_share_has_8_edges_in_18_seconds_and_weaveability_a_quarter() -> None:
    a, b = (EdgeSet.of(PAIRS.edges(TimeWindow(r, s))) for r, s in ((12, 9), (10, 6)))
    both = a.union(b)
    assert both.composite_slide == 18
    assert both.count_per_composite == 8
    assert [t for t in range(1, 19) if int(both.last_edge(np.array([t]))[0]) == t] == [3, 4, 6, 9, 10, 12, 16, 18]
    assert weaveability(a, b) == 0.25


def test_equal_edges_are_perfectly_weaveable() -> None:
    a, b = (EdgeSet.of(PAIRS.edges(TimeWindow(r, 4))) for r in (16, 8))
    assert weaveability(a, b) == 1.0


def test_a_composite_slide_of_seven_million_seconds_is_counted_without_enumerating_it() -> None:
    edges = EdgeSet.of(EdgeClass(s * SECOND) for s in (7, 997, 1009))
    assert edges.density.exact
    assert edges.composite_slide == 7 * 997 * 1009 * SECOND
    assert edges.count_per_composite == 7 * 997 * 1009 - 6 * 996 * 1008
    assert choose_slice_id(edges) == GreatestSlice(edges.classes)


def test_many_coprime_slides_fall_back_to_panes_that_the_step_coarsens() -> None:
    edges = EdgeSet.of(EdgeClass(s * SECOND) for s in (7, 11, 13, 997, 1009, 1013, 1019, 1021))
    assert isinstance(choose_slice_id(edges), PaneSlice)


def test_panes_much_finer_than_the_slices_are_avoided() -> None:
    edges = EdgeSet.of(EdgeClass(1_000_003 * s, s) for s in (7, 11, 13, 17, 19, 23, 29))
    assert isinstance(choose_slice_id(edges), GreatestSlice)


def test_an_unknown_slicing_names_the_near_ones() -> None:
    with pytest.raises(WindloomError, match="unknown slicing 'pair'") as error:
        find_slicing("pair")
    assert "'pairs'" in error.value.hint
