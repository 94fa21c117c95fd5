"""Slices of a block against brute force: in order and not, before and after the epoch, between many edges."""

from __future__ import annotations

import random

import numpy as np
import pytest

from windloom.kernels.tuples.slices import ORDERED_SHARE, Slices
from windloom.slicing.edges import EdgeClass, EdgeSet

FEW = EdgeSet.of([EdgeClass(10, 0)])
SOME = EdgeSet.of([EdgeClass(10, 0), EdgeClass(15, 4), EdgeClass(7, 3)])
MANY = EdgeSet.of([EdgeClass(1000 + 7 * i, i) for i in range(40)])


def true_start(tick: int, edges: EdgeSet) -> int:
    return max(tick - (tick - edge_class.residue) % edge_class.period for edge_class in edges.classes)


def check(ticks: list[int], edges: EdgeSet) -> Slices:
    slices = Slices(np.array(ticks, np.int64), edges)
    expected = [true_start(tick, edges) for tick in ticks]
    assert slices.starts[slices.of_tuple].tolist() == expected
    assert slices.starts.tolist() == sorted(set(expected))
    in_order = sorted(range(len(ticks)), key=lambda i: (expected[i], i))
    assert slices.rows.tolist() == ([] if slices.is_ordered else in_order)
    assert slices.is_ordered <= (in_order == list(range(len(ticks))))
    return slices


@pytest.mark.parametrize("edges", [FEW, SOME, MANY], ids=["few", "some", "many"])
def test_ticks_in_order_need_no_other_order(edges: EdgeSet) -> None:
    rng = random.Random(1)
    ticks = sorted(rng.randrange(-5000, 5000) for _ in range(300))
    assert check(ticks, edges).is_ordered


@pytest.mark.parametrize("edges", [FEW, SOME, MANY], ids=["few", "some", "many"])
def test_ticks_in_disorder_are_numbered_in_order_of_time(edges: EdgeSet) -> None:
    rng = random.Random(2)
    assert not check([rng.randrange(-5000, 5000) for _ in range(300)], edges).is_ordered


def test_a_tick_now_and_then_that_steps_back_reopens_its_slice() -> None:
    ticks = list(range(0, 640, 2))
    for place in range(40, 320, 4 * ORDERED_SHARE):
        ticks[place] -= 35
    check(ticks, FEW)
    check(ticks, SOME)


def test_disorder_inside_a_slice_is_order() -> None:
    assert check([3, 1, 2, 15, 11, 19, 12, *range(20, 200)], FEW).is_ordered


@pytest.mark.parametrize("tick", [0, -1, 10, -10, 2**61, -(2**61)])
def test_one_tuple_has_one_slice(tick: int) -> None:
    assert check([tick], SOME).is_ordered


def test_no_tuples_have_no_slices() -> None:
    assert len(Slices(np.empty(0, np.int64), FEW).starts) == 0


def test_without_edges_all_of_time_is_one_slice() -> None:
    slices = Slices(np.array([5, -7, 3], np.int64), EdgeSet.of([]))
    assert slices.of_tuple.tolist() == [0, 0, 0]
    assert len(slices.starts) == 1
    assert slices.starts[0] <= -7


def test_fewer_edges_make_slices_of_the_finest_ones() -> None:
    rng = random.Random(3)
    ticks = [rng.randrange(-500, 500) for _ in range(200)]
    slices = check(ticks, SOME)
    for edges in (SOME, FEW, EdgeSet.of([EdgeClass(15, 4)]), EdgeSet.of([EdgeClass(30, 4)])):
        slicing = slices.slicing(edges)
        found = slicing.starts[slicing.of_fine[slices.of_tuple]]
        assert found.tolist() == [true_start(tick, edges) for tick in ticks]
        assert slicing.starts.tolist() == sorted(set(found.tolist()))
        assert slices.slicing(edges) is slicing
