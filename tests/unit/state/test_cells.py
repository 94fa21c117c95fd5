"""Cells: sorted by group and slice, merged where equal, dropped where no window needs them."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.catalogs import STREAM, TYPES, make_query
from windloom.aggregates.columns import ComponentColumns, ListColumns, ListRule
from windloom.kernels.families import AddInt
from windloom.kernels.lists.lists import Lists
from windloom.kernels.merge import places_of
from windloom.model import Aggregate, Expression, TimeWindow
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.scans import NativeScan
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slicings import SLICINGS
from windloom.state.cells import (
    Cells,
    CellsBuilder,
    coarsen,
    keep_from,
    merge_all,
    merge_released,
    read_partials,
    running,
)

SUM = Aggregate("sum", Expression.of_column("i"))


def planned(grouping: tuple[str, ...] = ("k",)) -> NativeScan:
    """Sums by key over slices of ten ticks."""
    query = make_query("q", TimeWindow(30, 10), [SUM], grouping)
    (scan,) = make_plan({"s": STREAM}, [query], TYPES, PlanOptions(intake="native"), PlanningFacts()).scans
    assert isinstance(scan, NativeScan)
    return scan


def partials(*rows: tuple[Any, ...], groups: int = 1) -> pa.Table:
    """Rows of slice, keys, count and sum."""
    kinds = [pa.int64(), *[pa.string()] * groups, pa.int64(), pa.int64()]
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])


def seen(cells: Cells) -> dict[Any, list[tuple[int, int, int]]]:
    """(slice, tuples, sum) of every cell, by group."""
    found = {}
    for group in range(cells.groups):
        key = tuple(column[group].as_py() for column in cells.keys)
        part = slice(cells.group_bounds[group], cells.group_bounds[group + 1])
        sums = cells.lifted[1].limbs[0][0]
        found[key] = list(
            zip(cells.starts[part].tolist(), cells.tuples[part].tolist(), sums[part].tolist(), strict=True)
        )
    return found


def test_partials_in_any_order_become_sorted_cells_and_equal_ones_one() -> None:
    table = partials((20, "b", 1, 5), (0, "a", 2, 7), (-10, "b", 1, 1), (20, "b", 3, 6), (10, "a", 1, 2))
    assert seen(read_partials(planned(), table)) == {
        ("a",): [(0, 2, 7), (10, 1, 2)],
        ("b",): [(-10, 1, 1), (20, 4, 11)],
    }


def test_null_is_a_key() -> None:
    table = partials((0, None, 1, 5), (0, "a", 1, 7), (0, None, 1, 6))
    assert seen(read_partials(planned(), table)) == {(None,): [(0, 2, 11)], ("a",): [(0, 1, 7)]}


def test_without_grouping_all_cells_are_of_one_group() -> None:
    table = partials((10, 1, 5), (0, 1, 7), (10, 1, 6), groups=0)
    assert seen(read_partials(planned(()), table)) == {(): [(0, 1, 7), (10, 2, 11)]}


@pytest.mark.parametrize("groups", [0, 1])
def test_no_partials_are_no_cells(groups: int) -> None:
    cells = read_partials(planned(("k",) * groups), partials(groups=groups))
    assert len(cells) == 0
    assert cells.tuples.sum() == 0


def test_rounds_merge_key_by_key_and_slice_by_slice() -> None:
    first = read_partials(planned(), partials((0, "a", 1, 1), (10, "b", 1, 2)))
    second = read_partials(planned(), partials((10, "b", 1, 3), (0, "c", 1, 4), (20, "a", 1, 5)))
    expected = {("a",): [(0, 1, 1), (20, 1, 5)], ("b",): [(10, 2, 5)], ("c",): [(0, 1, 4)]}
    assert seen(merge_all([first, second])) == expected
    assert {key: sorted(cells) for key, cells in seen(merge_all([second, first])).items()} == expected


def test_merging_with_nothing_changes_nothing() -> None:
    some, none = read_partials(planned(), partials((0, "a", 1, 1))), read_partials(planned(), partials())
    assert merge_all([some, none]) is some
    assert merge_all([none, some]) is some


def test_parts_that_are_merged_are_given_back_before_others_are() -> None:
    parts = [read_partials(planned(), partials((10 * number, "a", 1, number))) for number in range(5)]
    wanted = seen(merge_all(parts))
    assert len(parts) == 5, "whoever asks for all of them keeps them"
    first = weakref.ref(parts[0].starts)
    assert seen(merge_released(parts)) == wanted == {("a",): [(10 * number, 1, number) for number in range(5)]}
    assert not parts
    assert first() is None


def test_parts_that_follow_one_another_are_placed_behind_each_other() -> None:
    parts = [
        read_partials(planned(), partials((0, "a", 1, 1), (10, "a", 1, 2), (10, "b", 1, 3))),
        read_partials(planned(), partials((10, "b", 1, 4), (20, "b", 1, 5), (10, "a", 1, 6))),
        read_partials(planned(), partials((20, "c", 1, 7), (20, "b", 1, 8), (10, "a", 1, 9), (30, "a", 1, 10))),
    ]
    expected = {
        ("a",): [(0, 1, 1), (10, 3, 17), (30, 1, 10)],
        ("b",): [(10, 2, 7), (20, 2, 13)],
        ("c",): [(20, 1, 7)],
    }
    starts, bounds = [part.starts for part in parts], [part.group_bounds for part in parts]
    assert places_of(starts, bounds, [np.array([0, 1]), np.array([1, 0]), np.array([2, 1, 0])], 3) is not None
    assert seen(merge_all(parts)) == expected


def test_parts_that_overlap_in_time_are_sorted() -> None:
    parts = [
        read_partials(planned(), partials((0, "a", 1, 1), (20, "a", 1, 2), (0, "b", 1, 3))),
        read_partials(planned(), partials((10, "a", 1, 4), (10, "b", 1, 5))),
    ]
    starts, bounds = [part.starts for part in parts], [part.group_bounds for part in parts]
    assert places_of(starts, bounds, [np.array([0, 1]), np.array([0, 1])], 2) is None
    assert seen(merge_all(parts)) == {("a",): [(0, 1, 1), (10, 1, 4), (20, 1, 2)], ("b",): [(0, 1, 3), (10, 1, 5)]}


def test_cells_behind_a_tick_go_and_groups_without_cells_with_them() -> None:
    cells = read_partials(planned(), partials((0, "a", 1, 1), (10, "a", 1, 2), (0, "b", 1, 3)))
    assert seen(keep_from(cells, 10)) == {("a",): [(10, 1, 2)]}
    assert keep_from(cells, 0) is cells
    assert len(keep_from(cells, 99)) == 0


def test_coarser_slices_hold_the_sums_of_finer_ones_and_tell_which() -> None:
    cells = read_partials(planned(), partials((-10, "a", 1, 1), (0, "a", 1, 2), (10, "a", 1, 3), (0, "b", 1, 4)))
    coarse, runs = coarsen(cells, EdgeSet.of(SLICINGS["panes"].edges(TimeWindow(20, 20))))
    assert seen(coarse) == {("a",): [(-20, 1, 1), (0, 2, 5)], ("b",): [(0, 1, 4)]}
    assert runs.tolist() == [0, 1, 3, 4]
    accumulated = running(cells.lifted[1], runs).limbs[0]
    assert np.asarray(accumulated[0]).tolist() == [1, 2, 5, 4]


def test_lists_of_parts_that_follow_one_another_are_merged_where_a_slice_goes_on() -> None:
    draw = np.random.default_rng(8)
    held: dict[tuple[str, int], Counter[int]] = {}
    parts = []
    for first in (0, 20, 30, 60):
        keys = draw.permutation(["a", "b", "c"])[: draw.integers(1, 4)].tolist()
        bounds, starts, lists = [0], [], []
        for key in keys:
            for start in [first, *(first + 10 * np.flatnonzero(draw.random(3) < 0.5)[1:]).tolist()]:
                starts.append(start)
                lists.append(Counter(draw.integers(first, first + 6, 4).tolist()))
                held.setdefault((key, start), Counter()).update(lists[-1])
            bounds.append(len(starts))
        values = sorted({value for each in lists for value in each})
        entries = [(values.index(value), each[value]) for each in lists for value in sorted(each)]
        codes, counts = np.array(entries).T
        listed = Lists(np.cumsum([0, *map(len, lists)]), codes.astype(np.int32), counts.copy())
        tuples = ComponentColumns((AddInt(np.array([each.total() for each in lists])),))
        parts.append(
            CellsBuilder([pa.array(keys)], np.array(bounds), np.array(starts)).build(
                [tuples, ListColumns(ListRule("frequencies"), listed, pa.array(values))]
            )
        )
    cells = merge_all(parts)
    _, merged = cells.lifted
    assert isinstance(merged, ListColumns)
    found = {}
    for group, key in enumerate(cells.keys[0].to_pylist()):
        for i in range(cells.group_bounds[group], cells.group_bounds[group + 1]):
            entries_of_cell = range(merged.cells.bounds[i], merged.cells.bounds[i + 1])
            own = {merged.dictionary[merged.cells.codes[j]].as_py(): merged.cells.counts[j] for j in entries_of_cell}
            assert sum(own.values()) == cells.tuples[i]
            found[key, int(cells.starts[i])] = own
    assert found == held
    assert len(cells) < sum(map(len, parts)), "some slices go on in the next part"
