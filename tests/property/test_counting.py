"""Edge counting by every method against brute force: unions, mergers, bundles added and taken, with offsets."""

from __future__ import annotations

from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windloom.model import TimeWindow, Window
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.sharing.edge_counting import (
    EdgeCounter,
    EdgeSample,
    EdgeTable,
    Marks,
    choose_counter,
    class_rows,
    drawn_marks,
    whole_marks,
)
from windloom.optimizer.workloads import zipf_workload
from windloom.slicing.edges import EdgeSet, union_table
from windloom.slicing.slicings import SLICINGS

WINDOWS = st.lists(
    st.builds(TimeWindow, st.integers(1, 30), st.integers(1, 14), st.integers(0, 20)), min_size=2, max_size=6
)


def edges_of(name: str, windows: list[Window]) -> list[EdgeSet]:
    return [EdgeSet.of(SLICINGS[name].edges(window)) for window in windows]


def true_rate(sets: list[EdgeSet]) -> float:
    """Edges per second, tick by tick."""
    composite = lcm(*(edge_class.period for edges in sets for edge_class in edges.classes))
    is_edge = np.zeros(composite, np.bool_)
    for edges in sets:
        for edge_class in edges.classes:
            is_edge[edge_class.residue :: edge_class.period] = True
    return float(is_edge.mean()) * TICKS_PER_SECOND


def counters(sets: list[EdgeSet]) -> list[EdgeCounter]:
    marks = whole_marks(sets)
    assert marks is not None
    return [EdgeTable(sets), marks]


@pytest.mark.parametrize("slicing", SLICINGS)
@given(windows=WINDOWS)
@settings(deadline=None)
def test_algebra_counts_every_union_as_brute_force_does(slicing: str, windows: list[Window]) -> None:
    sets = edges_of(slicing, windows)
    table = union_table(sets)
    for subset in range(1, len(table)):
        chosen = [edges for i, edges in enumerate(sets) if subset >> i & 1]
        assert table[subset] * TICKS_PER_SECOND == pytest.approx(true_rate(chosen))


@pytest.mark.parametrize("slicing", SLICINGS)
@given(windows=WINDOWS, data=st.data())
@settings(deadline=None)
def test_exact_counters_follow_mergers_and_moves(slicing: str, windows: list[Window], data: st.DataObject) -> None:
    sets = edges_of(slicing, windows)
    trees = [[i] for i in range(len(sets))]
    tree = data.draw(st.sets(st.sampled_from(range(len(sets))), min_size=1))
    for counter in counters(sets):
        assert counter.exact
        rate, toggled = counter.toggled(sorted(tree))
        assert rate == pytest.approx(true_rate([sets[i] for i in tree]))
        for i in range(len(sets)):
            if tree != {i}:
                assert toggled[i] == pytest.approx(true_rate([sets[k] for k in tree ^ {i}]))
        forest = counter.forest(trees)
        forest.merge(0, 1)
        merged = [sets[0], sets[1]]
        assert forest.rates[0] == pytest.approx(true_rate(merged))
        for i in range(2, len(sets)):
            assert forest.unions(0)[i] == pytest.approx(true_rate([*merged, sets[i]]))


@given(windows=WINDOWS)
@settings(deadline=None)
def test_a_sample_of_edges_tells_what_a_window_adds_to_trees(windows: list[Window]) -> None:
    first, *others = edges_of("pairs", windows)
    sample = EdgeSample.of(first.classes)
    missing = sample.missing([class_rows(edge_set.classes) for edge_set in others], also=0)
    for i, edges in enumerate(others):
        both = [others[0], edges]
        added = true_rate([*both, first]) - true_rate(both)
        # A sample of 2,048 edges sees 2,048/m whole turns of a pattern of m, and a part of one.
        assert missing[i] == pytest.approx(added, abs=0.1 * true_rate([first]))


def test_drawn_marks_are_close_to_exact_counts_where_those_can_be_had() -> None:
    sets = [EdgeSet.of(SLICINGS["pairs"].edges(window)) for window in zipf_workload(60, seed=3)]
    drawn = drawn_marks(sets)
    assert not drawn.exact
    rng = np.random.default_rng(1)
    for size in (1, 2, 5, 12):
        tree = sorted(rng.choice(len(sets), size, replace=False).tolist())
        exact = EdgeSet.of({edge_class for i in tree for edge_class in sets[i].classes})
        assert exact.density.exact
        assert drawn.rates([tree])[0] == pytest.approx(exact.edges_per_second, rel=1e-3)


def test_edges_drawn_are_always_the_same() -> None:
    sets = [EdgeSet.of(SLICINGS["pairs"].edges(window)) for window in zipf_workload(30, seed=4)]
    first, second = drawn_marks(sets), drawn_marks(sets)
    assert np.array_equal(first.places, second.places)
    assert np.array_equal(first.weights, second.weights)


def test_the_method_is_chosen_by_size() -> None:
    def counter(windows: list[Window]) -> EdgeCounter:
        return choose_counter(edges_of("pairs", windows))

    assert isinstance(counter([TimeWindow(10, 7), TimeWindow(9, 4)]), EdgeTable)
    short = counter([TimeWindow(100 + i, 100) for i in range(1, 40)])
    long = counter([TimeWindow(100_003 + 7 * i, 99_991 + i) for i in range(40)])
    assert isinstance(short, Marks)
    assert short.exact
    assert isinstance(long, Marks)
    assert not long.exact


def test_windows_of_years_beside_windows_of_seconds_are_drawn_alike() -> None:
    second = TICKS_PER_SECOND
    years = [TimeWindow((400 + i) * 86_400 * second, (90 + i) * 86_400 * second, i) for i in range(10)]
    seconds = [TimeWindow((30 + i) * second, (7 + i) * second) for i in range(10)]
    sets = edges_of("pairs", years + seconds)
    drawn = drawn_marks(sets)
    rates = drawn.rates([[i] for i in range(20)])
    assert rates == pytest.approx([edges.edges_per_second for edges in sets])
    assert (drawn.forest([[i] for i in range(20)]).unions(0) >= rates).all()
