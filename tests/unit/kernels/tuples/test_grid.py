"""Grids against brute force: a cell per slice and group that holds a tuple, whatever groups there might be."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.weaving import TICKS, cut_of, tuples_of
from windloom.kernels.tuples.grid import SMALL_PRODUCT, group_tuples
from windloom.kernels.tuples.tuples import Tuples
from windloom.slicing.edges import EdgeClass, EdgeSet

TENS = EdgeSet.of([EdgeClass(10, 0)])


def cells_of(tuples: Tuples, edges: EdgeSet, groups: tuple[int, ...], own: tuple[int, ...] = ()) -> dict[Any, int]:
    """Tuples of every kept cell, by group and start; cells come by group, and within it by slice."""
    cut = cut_of(tuples, edges, groups, own)
    grid, kept = cut.grid, cut.kept
    keys = [key.to_pylist() for key in grid.keys(kept)]
    starts = grid.starts_of(kept).tolist()
    chosen = tuples.chosen(own)
    rows = range(len(tuples)) if chosen.every else chosen.rows.tolist()
    counts = np.bincount(grid.cells[list(rows)], minlength=len(grid))[kept.cells].tolist()
    found: dict[Any, int] = {}
    for group in range(len(kept.bounds) - 1):
        own_starts = starts[kept.bounds[group] : kept.bounds[group + 1]]
        assert own_starts == sorted(set(own_starts)) != []
        for cell in range(kept.bounds[group], kept.bounds[group + 1]):
            found[(*(key[group] for key in keys), starts[cell])] = counts[cell]
    assert len(found) == len(starts)
    return found


def true_cells(rows: list[tuple[Any, ...]]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for row in rows:
        found[row] = found.get(row, 0) + 1
    return found


@pytest.mark.parametrize("is_ordered", [True, False])
@pytest.mark.parametrize("groups", [(), (0,), (1,), (0, 1), (1, 0), (0, 1, 2)])
def test_a_cell_holds_the_tuples_of_a_slice_and_a_group(groups: tuple[int, ...], is_ordered: bool) -> None:
    rng = random.Random(4)
    ticks = [rng.randrange(-100, 100) for _ in range(400)]
    ticks = sorted(ticks) if is_ordered else ticks
    columns = [
        [rng.choice(["a", "b", None]) for _ in ticks],
        [rng.choice([1, 2, 10**12, None]) for _ in ticks],
        [rng.choice([True, False]) for _ in ticks],
    ]
    tuples = tuples_of(ticks, *(pa.array(column) for column in columns))
    for edges, length in ((TICKS, 1), (TENS, 10)):
        expected = true_cells(
            [(*(columns[g][i] for g in groups), tick - tick % length) for i, tick in enumerate(ticks)]
        )
        assert cells_of(tuples, edges, groups) == expected


def test_only_cells_with_a_chosen_tuple_are_kept_and_only_groups_with_such_a_cell() -> None:
    ticks, keys, signature = [0, 1, 11, 12, 25], ["a", "b", "a", "b", "c"], [1, 0, 0, 3, 2]
    tuples = tuples_of(ticks, pa.array(signature), pa.array(keys), words=1, edges=TENS)
    assert cells_of(tuples, TENS, (0,), (0,)) == {("a", 0): 1, ("b", 10): 1}
    assert cells_of(tuples, TENS, (0,), (0, 1)) == {("b", 10): 1}
    assert cells_of(tuples, TENS, (), (1,)) == {(10,): 1, (20,): 1}


def test_no_chosen_tuples_are_no_cells() -> None:
    tuples = tuples_of([0, 1], pa.array([0, 0]), pa.array(["a", "b"]), words=1)
    assert cells_of(tuples, TICKS, (0,), (0,)) == {}


def test_a_single_group_is_not_numbered() -> None:
    grouping = tuples_of([3, 4], pa.array([1, 2])).grouping(())
    assert (grouping.count, len(grouping.codes)) == (1, 0)


def test_of_a_huge_product_of_groups_only_those_that_occur_are_numbered() -> None:
    """Four columns of 1,500 values each have 5 · 10¹² combinations."""
    rng = random.Random(5)
    rows = [tuple(rng.randrange(1500) * 10**9 for _ in range(4)) for _ in range(1500)]
    rows += rows[:200]
    ticks = [rng.randrange(20) for _ in rows]
    tuples = tuples_of(ticks, *(pa.array(column) for column in zip(*rows, strict=True)), edges=TENS)
    assert tuples.grouping((0, 1, 2, 3)).count <= SMALL_PRODUCT
    assert cells_of(tuples, TENS, (0, 1, 2, 3)) == true_cells(
        [(*row, tick - tick % 10) for row, tick in zip(rows, ticks, strict=True)]
    )


def test_no_tuples_have_one_group_that_holds_nothing() -> None:
    tuples = tuples_of([], pa.array([], pa.string()), pa.array([], pa.int64()))
    for groups in ((), (0,), (0, 1)):
        assert tuples.grouping(groups).count == 1
        assert len(tuples.grid(groups, TICKS)) == 0
    assert group_tuples([], 0).count == 1
