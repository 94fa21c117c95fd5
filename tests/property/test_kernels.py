"""Every technique against `recalculate`, and windows located in cells against their definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.polynomial import empty_polynomials, nothing_cached, polynomial_cells
from windloom.aggregates.bits import BIT_OR, BIT_XOR
from windloom.aggregates.comoments import COMOMENTS
from windloom.aggregates.higher_moments import FOUR_MOMENTS
from windloom.errors import WindloomError
from windloom.kernels.families import ADD_FLOAT, ADD_INT, FAMILIES, MAX_INT, MOMENTS, Family
from windloom.kernels.locate import LONG_RUN, Lanes, WindowArrays, locate, sliding_lanes
from windloom.kernels.techniques.prefix_ring import FAR_ROWS
from windloom.kernels.techniques.registry import TECHNIQUES, allowed, choose_technique
from windloom.model import TimeWindow, Window
from windloom.model.aggregate import Property
from windloom.model.time import TICK_MAX, TICK_MIN

NO_MARKS = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))


#: Families whose cells hold values, those that ship with an aggregator included.
VALUES = [family for family in FAMILIES.values() if not family.is_list]
assert {BIT_OR, BIT_XOR} <= set(VALUES)


def cells_of(family: Family, count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if family is MOMENTS:
        return family.of(rng.integers(0, 3, count).astype(float), rng.normal(size=count), rng.random(count))
    if family in (COMOMENTS, FOUR_MOMENTS):
        known = rng.integers(0, 2, count).astype(float)  # cells without a value are neutral
        return family.of(known, rng.normal(size=count) * known, *[np.zeros(count)] * (len(family.kinds) - 2))
    if family.kinds[0] is np.int64:
        return family.of(rng.integers(-(2**62), 2**62, count))
    return family.of(rng.normal(size=count) * 10.0 ** rng.integers(-3, 16, count), np.zeros(count))


def readings(family: Family, columns: Any) -> list[Any]:
    """What a reader sees: the halves of a float sum are one number."""
    return [columns.high + columns.low] if family is ADD_FLOAT else list(columns)


SHAPES = {
    "sizes": st.lists(st.integers(0, 70), min_size=1, max_size=4),
    "seed": st.integers(0, 1000),
    "windows": st.lists(st.tuples(st.integers(1, 90), st.integers(1, 20)), min_size=1, max_size=4),
}


def lanes_of(sizes: list[int], seed: int, windows: list[tuple[int, int]]) -> tuple[Any, Lanes]:
    """Group bounds, and the lanes of windows over that many cells a group, at random times."""
    rng = np.random.default_rng(seed)
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    starts = np.concatenate([np.sort(rng.choice(300, size, replace=False)) for size in sizes]).astype(np.int64)
    arrays = WindowArrays(
        *(np.array(values, np.int64) for values in zip(*((r, s, 0) for r, s in windows), strict=True))
    )
    return bounds, locate(starts, bounds, arrays, TICK_MIN, TICK_MAX, NO_MARKS)


@pytest.mark.parametrize(("family", "technique"), [(f, t) for f in VALUES for t in allowed(f) if t != "recalculate"])
@settings(max_examples=examples(40), deadline=None)
@given(**SHAPES)
def test_a_technique_agrees_with_recalculation(
    family: Family, technique: str, sizes: list[int], seed: int, windows: list[tuple[int, int]]
) -> None:
    bounds, lanes = lanes_of(sizes, seed, windows)
    cells = cells_of(family, sum(sizes), seed)
    queries = np.arange(len(windows))
    expected, found = family.empty(len(lanes)), family.empty(len(lanes))
    TECHNIQUES["recalculate"].evaluate(cells, bounds, lanes, queries, expected)
    TECHNIQUES[technique].evaluate(cells, bounds, lanes, queries, found)
    for left, right in zip(readings(family, expected), readings(family, found), strict=True):
        if left.dtype == np.int64:
            assert (left == right).all()
        else:
            assert (np.abs(left - right) <= 1e-12 * np.maximum(1.0, np.abs(left))).all()


@pytest.mark.parametrize(("family", "technique"), [(f, t) for f in VALUES for t in allowed(f)])
def test_a_technique_answers_a_set_without_groups(family: Family, technique: str) -> None:
    """A relation without rows, and a set of which no tuple is part, have cells of no group at all."""
    windows = WindowArrays(*(np.array([value], np.int64) for value in (10, 5, 0)))
    bounds = np.zeros(1, np.int64)
    lanes = locate(np.empty(0, np.int64), bounds, windows, TICK_MIN, TICK_MAX, NO_MARKS)
    assert len(lanes) == 0
    TECHNIQUES[technique].evaluate(cells_of(family, 0, 0), bounds, lanes, np.arange(1), family.empty(0))


@pytest.mark.parametrize(
    "technique", [name for name, known in TECHNIQUES.items() if Property.ASSOCIATIVE in known.needs]
)
@settings(max_examples=examples(60), deadline=None)
@given(**SHAPES)
def test_a_technique_that_needs_only_associativity_keeps_the_order_of_cells(
    technique: str, sizes: list[int], seed: int, windows: list[tuple[int, int]]
) -> None:
    bounds, lanes = lanes_of(sizes, seed, windows)
    values = np.random.default_rng(seed).integers(0, 1000, sum(sizes))
    cells, found = polynomial_cells(values), empty_polynomials(len(lanes))
    with nothing_cached():
        TECHNIQUES[technique].evaluate(cells, bounds, lanes, np.arange(len(windows)), found)
    for row in range(len(lanes)):
        expected = 0
        for value in values[lanes.lo[row] : lanes.hi[row]]:
            expected = (expected * int(cells.power[0]) + int(value) + 1) % 2**64
        assert int(found.hash[row]) == expected


@pytest.mark.parametrize(("family", "technique"), [(f, t) for f in VALUES for t in allowed(f) if t != "recalculate"])
@settings(max_examples=examples(30), deadline=None)
@given(
    moves=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60), seed=st.integers(0, 1000)
)
def test_any_sequence_of_appends_evictions_and_questions_is_answered(
    family: Family, technique: str, moves: list[tuple[int, int]], seed: int
) -> None:
    """Windows that grow, shrink, empty and leap: nothing a lane may be is a fixed number of cells."""
    left, right = [0], [0]
    for appended, evicted in moves:
        right.append(right[-1] + appended)
        left.append(min(left[-1] + evicted, right[-1]))
    lanes = lane_of(left, right)
    bounds = np.array([0, right[-1]])
    cells = cells_of(family, right[-1], seed)
    expected, found = family.empty(len(lanes)), family.empty(len(lanes))
    TECHNIQUES["recalculate"].evaluate(cells, bounds, lanes, np.arange(1), expected)
    TECHNIQUES[technique].evaluate(cells, bounds, lanes, np.arange(1), found)
    assert_same_answers(family, expected, found)


@pytest.mark.parametrize(("family", "technique"), [(f, t) for f in VALUES for t in allowed(f) if t != "recalculate"])
@settings(max_examples=examples(20), deadline=None)
@given(
    stretches=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 400)), min_size=1, max_size=4),
    distinct=st.sampled_from([1, 3, 50, 2**40]),
    trend=st.sampled_from([-1, 0, 1]),
    seed=st.integers(0, 1000),
    known=st.booleans(),
)
def test_windows_that_move_on_cell_by_cell_are_answered(
    family: Family,
    technique: str,
    stretches: list[tuple[int, int, int]],
    distinct: int,
    trend: int,
    seed: int,
    known: bool,
) -> None:
    """Long stretches of steady windows between leaps, with ties, rising and falling values, and runs noted or not."""
    left, right = [0], [1]
    for appended, evicted, steady in stretches:
        right.append(right[-1] + appended)
        left.append(min(left[-1] + evicted, right[-1]))
        left.extend(range(left[-1] + 1, left[-1] + 1 + steady))
        right.extend(range(right[-1] + 1, right[-1] + 1 + steady))
    lanes = lane_of(left, right, runs_of(left, right) if known else [])
    values = np.random.default_rng(seed).integers(0, distinct, right[-1]) + trend * np.arange(right[-1]) * distinct // 4
    if family is MOMENTS:
        cells: Any = family.of(np.ones(len(values)), values % 1000 + 0.5, np.zeros(len(values)))
    elif family in (COMOMENTS, FOUR_MOMENTS):
        nothing = [np.zeros(len(values))] * (len(family.kinds) - 2)
        cells = family.of(np.ones(len(values)), values % 1000 / 1000.0, *nothing)
    elif family is ADD_FLOAT:
        cells = family.of(values + 0.1, np.zeros(len(values)))
    else:
        cells = family.of(values)
    bounds = np.array([0, right[-1]])
    expected, found = family.empty(len(lanes)), family.empty(len(lanes))
    TECHNIQUES["recalculate"].evaluate(cells, bounds, lanes, np.arange(1), expected)
    TECHNIQUES[technique].evaluate(cells, bounds, lanes, np.arange(1), found)
    assert_same_answers(family, expected, found)


def runs_of(left: list[int], right: list[int]) -> list[int]:
    """Where windows begin to lie one cell further each, and where that ends."""
    moves = (np.diff(left) == 1) & (np.diff(right) == 1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moves, [False]])))
    return [int(edge) + i % 2 for i, edge in enumerate(edges)]


def lane_of(left: list[int], right: list[int], runs: Sequence[int] = ()) -> Lanes:
    return Lanes(
        np.array([0, len(left)]),
        np.zeros(len(left), np.int64),
        np.array(left, np.int32),
        np.array(right, np.int32),
        np.empty(0, np.int32),
        np.array(runs, np.int64),
    )


def assert_same_answers(family: Family, expected: Any, found: Any) -> None:
    size = np.maximum(1.0, np.abs(readings(family, expected)[0].astype(float)))
    for wanted, read in zip(readings(family, expected), readings(family, found), strict=True):
        if wanted.dtype == np.int64:
            assert (wanted == read).all()
        else:
            assert (np.abs(wanted - read) <= 1e-12 * np.maximum(size, np.abs(wanted))).all()


#: (gap, spacing, cells): evenly spaced runs with gaps between them, where windows are located a run at a time.
SPACED = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 4), st.integers(1, 12)), min_size=1, max_size=3).map(
    lambda runs: list(np.cumsum([gap if i == 0 else apart for gap, apart, count in runs for i in range(count)]) - 60)
)


@settings(max_examples=examples(300), deadline=None)
@given(
    starts=st.lists(st.integers(-60, 60), min_size=1, max_size=12, unique=True) | SPACED,
    window=st.builds(TimeWindow, st.integers(1, 25), st.integers(1, 25), st.integers(0, 24)),
    after=st.integers(-80, 80),
    span=st.integers(0, 300),
)
def test_located_windows_are_the_non_empty_ones_that_end_in_the_interval(
    starts: list[int], window: Window, after: int, span: int
) -> None:
    cells = np.array([-1000, *sorted(starts)], np.int64)  # the first one belongs to another group
    arrays = WindowArrays(
        *(np.array([v], np.int64) for v in (window.range_ticks, window.slide_ticks, window.offset_ticks))
    )
    lanes = locate(cells, np.array([1, len(cells)]), arrays, after, after + span, NO_MARKS)
    expected = []
    for start in range(-300, 400):
        end = start + window.range_ticks
        inside = 1 + np.flatnonzero((cells[1:] >= start) & (cells[1:] < end))
        if (start - window.offset_ticks) % window.slide_ticks == 0 and after < end <= after + span and len(inside):
            expected.append((start, inside[0], inside[-1] + 1))
    assert list(zip(lanes.window_start, lanes.lo, lanes.hi, strict=True)) == expected
    assert isinstance(lanes, Lanes)


@settings(max_examples=examples(200), deadline=None)
@given(
    groups=st.lists(st.sets(st.integers(-60, 60), max_size=9).map(sorted) | SPACED, min_size=1, max_size=4),
    windows=st.lists(
        st.builds(TimeWindow, st.integers(1, 25), st.integers(1, 25), st.integers(0, 24)), min_size=1, max_size=3
    ),
    interval=st.just((TICK_MIN, TICK_MAX)) | st.tuples(st.integers(-80, 20), st.integers(20, 90)),
    unit=st.sampled_from([1, 1_000_000, 86_400_000_001, 1 << 46]),
)
def test_every_lane_has_room_for_its_windows(
    groups: list[list[int]], windows: list[TimeWindow], interval: tuple[int, int], unit: int
) -> None:
    """Whether ticks are few or many, edges of windows at the very ticks at which cells begin are told apart."""
    groups = [[start * unit for start in group] for group in groups]
    interval = (max(TICK_MIN, interval[0] * unit), min(TICK_MAX, interval[1] * unit))
    bounds = np.cumsum([0, *map(len, groups)])
    starts = np.array([start for group in groups for start in group], np.int64)
    lengths = [[each * unit for each in (own.range_ticks, own.slide_ticks, own.offset_ticks)] for own in windows]
    lanes = locate(starts, bounds, WindowArrays(*np.array(lengths, np.int64).T), *interval, NO_MARKS)
    expected: list[list[int]] = []
    for range_, slide, offset in lengths:
        for group in groups:
            every = {
                k for start in group for k in range((start - offset - range_) // slide, (start - offset) // slide + 1)
            }
            opens = [k * slide + offset for k in sorted(every)]
            held = [t for t in opens if any(t <= start < t + range_ for start in group)]
            expected.append([t for t in held if interval[0] < t + range_ <= interval[1]])
    assert [own.tolist() for own in np.split(lanes.window_start, lanes.bounds[1:-1])] == expected


@settings(max_examples=examples(100), deadline=None)
@given(
    gaps=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 300)), min_size=1, max_size=4),
    windows=st.lists(st.tuples(st.integers(1, 90), st.integers(1, 3)), min_size=1, max_size=3),
    groups=st.integers(1, 3),
)
def test_located_runs_are_rows_of_a_lane_that_lie_one_cell_further_each(
    gaps: list[tuple[int, int]], windows: list[tuple[int, int]], groups: int
) -> None:
    starts = np.cumsum([gap if i == 0 else 1 for gap, cells in gaps for i in range(cells)]).astype(np.int64)
    bounds = np.arange(groups + 1) * len(starts)
    arrays = WindowArrays(
        *(np.array(values, np.int64) for values in zip(*((r, s, 0) for r, s in windows), strict=True))
    )
    lanes = locate(np.tile(starts, groups), bounds, arrays, TICK_MIN, TICK_MAX, NO_MARKS)
    noted = np.zeros(len(lanes), np.bool_)
    for first, last in lanes.runs.reshape(-1, 2):
        assert last - first >= LONG_RUN
        assert not noted[first:last].any()
        noted[first:last] = True
        assert (np.diff(lanes.lo[first:last]) == 1).all()
        assert (np.diff(lanes.hi[first:last]) == 1).all()
        assert np.searchsorted(lanes.bounds, first, side="right") == np.searchsorted(lanes.bounds, last, side="left")
    assert (np.diff(lanes.runs) >= 0).all()
    cells = max(cells for _, cells in gaps)
    for query, (length, slide) in enumerate(windows):
        # Evenly spaced cells: while both edges pass over them, rows make a run, but for a few behind a gap.
        if slide == 1 and cells - length > LONG_RUN + 8:
            assert noted[lanes.bounds[query * groups] : lanes.bounds[(query + 1) * groups]].any()


@pytest.mark.parametrize("odd", [0, 3])
def test_answers_that_outgrow_the_caches_are_the_same(odd: int) -> None:
    """Stored past the caches, whatever part of a line a run begins with."""
    cells, lengths = 30_000 + odd, [1, 700, 29_900, *range(2, 139)]
    values = np.random.default_rng(4).integers(-(2**62), 2**62, cells)
    lanes = sliding_lanes(cells, lengths)
    assert len(lanes) >= FAR_ROWS
    found: Any = ADD_INT.empty(len(lanes))
    found.value[:] = 7
    queries = np.arange(len(lengths))
    TECHNIQUES["prefix_ring"].evaluate(ADD_INT.of(values), np.array([0, cells]), lanes, queries, found)
    totals = np.concatenate([[0], np.cumsum(values)])
    assert (found.value == totals[lanes.hi] - totals[lanes.lo]).all()


@settings(max_examples=examples(200), deadline=None)
@given(
    highs=st.lists(
        st.sampled_from([0.0, 0.1, -0.1, 1.0, 3.7, 1e15, -1e15, 1e300, -1e300, np.inf, -np.inf, np.nan, 5e-324]),
        min_size=1,
        max_size=40,
    ),
    span=st.integers(1, 12),
)
def test_float_totals_leave_no_trace_of_what_has_passed(highs: list[float], span: int) -> None:
    # Finite values whose sum overflows are left out: beside an infinity, the order of adding decides what they give.
    count = len(highs)
    lanes = sliding_lanes(count, [span])
    cells = ADD_FLOAT.of(np.array(highs), np.zeros(count))
    found = ADD_FLOAT.empty(count)
    TECHNIQUES["prefix_ring"].evaluate(cells, np.array([0, count]), lanes, np.arange(1), found)
    expected = ADD_FLOAT.empty(count)
    TECHNIQUES["recalculate"].evaluate(cells, np.array([0, count]), lanes, np.arange(1), expected)
    for row in range(count):
        inside = highs[max(0, row + 1 - span) : row + 1]
        answer, slow = float(found.high[row] + found.low[row]), float(expected.high[row] + expected.low[row])
        if not np.isfinite(slow):
            assert np.array_equal(answer, slow, equal_nan=True)
        elif max(map(abs, inside)) < 1e300:
            assert answer == pytest.approx(math.fsum(inside), rel=1e-15, abs=1e-30 * max(map(abs, inside)))
        else:
            assert answer == pytest.approx(slow, rel=1e-15, abs=1e-30 * max(map(abs, inside)))


def test_a_technique_that_an_operation_does_not_allow_is_refused_with_the_reason() -> None:
    with pytest.raises(WindloomError) as error:
        choose_technique(MAX_INT, "prefix_ring")
    assert "invertible" in error.value.detail
    assert "block_decomposition" in error.value.hint


def test_slick_deque_is_refused_for_floats_before_anything_runs() -> None:
    with pytest.raises(WindloomError) as error:
        choose_technique(ADD_FLOAT, "slick_deque")
    assert "invertible or selective" in error.value.detail
    assert "two_stacks" in error.value.hint


def test_an_unknown_technique_names_the_near_ones() -> None:
    with pytest.raises(WindloomError, match="unknown technique 'prefix'"):
        choose_technique(ADD_INT, "prefix")
