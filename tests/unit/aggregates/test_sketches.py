"""Approximate aggregates on more values than property tests have: how far estimates and counts are off."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from support.weaving import woven_cells
from windloom.aggregates.columns import ListColumns
from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.lists.lists import RegisterQuestion
from windloom.kernels.locate import Lanes
from windloom.kernels.techniques.registry import find_technique
from windloom.model import Component, DataType, Expression
from windloom.model.aggregate import (
    MOST_ENTRIES,
    PACKED_RANK_BITS,
    RANK_BITS,
    REGISTER_BITS,
    REGISTERS,
    STANDARD_ERROR,
    TOP_ERROR,
)

Ints = NDArray[np.int64]


def woven(kind: str, cells: list[Ints]) -> ListColumns:
    planned = PlannedComponent(Component(kind, Expression.of_column("x")), DataType.parse("bigint"))
    found = woven_cells(planned, [pa.array(values) for values in cells])
    assert isinstance(found, ListColumns)
    return found


def hashed(numbers: Ints) -> NDArray[np.uint64]:
    """The finalizer of splitmix64: a good hash of whole numbers."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def packed_registers_of(numbers: Ints) -> Ints:
    """What Spark projects: the register of each number, and its rank in the lowest bits."""
    mixed = hashed(numbers)
    register = (mixed & np.uint64(REGISTERS - 1)).astype(np.int64)
    rest = (mixed >> np.uint64(REGISTER_BITS)) | np.uint64(1 << RANK_BITS)
    rank = np.bitwise_count(rest ^ (rest - np.uint64(1))).astype(np.int64)
    return register << PACKED_RANK_BITS | rank


def lane(lo: list[int], hi: list[int]) -> Lanes:
    rows = len(lo)
    places = (np.array(positions, np.int32) for positions in (lo, hi, []))
    return Lanes(np.array([0, rows]), np.arange(rows), *places)


@pytest.mark.parametrize("count", [1, 100, 3_000, 20_000, 300_000])
@pytest.mark.parametrize("technique", ["running_counts", "recalculate"])
def test_estimates_are_as_good_as_their_standard_error_says(count: int, technique: str) -> None:
    """Slices that overlap in half of their values; windows of one to three of them."""
    errors = []
    for seed in range(20 if count < 100_000 else 5):
        base = seed * 10_000_000
        slices = [packed_registers_of(base + np.arange(i * (count // 2), i * (count // 2) + count)) for i in range(6)]
        cells = woven("registers", slices)
        lo, hi = [0, 0, 1, 2, 3], [1, 3, 4, 4, 6]
        found = RegisterQuestion(len(cells.dictionary), np.empty(5, np.int64))
        find_technique(technique).evaluate(cells.cells, np.array([0, 6]), lane(lo, hi), np.arange(1), found)
        true = np.array([(last - first - 1) * (count // 2) + count for first, last in zip(lo, hi, strict=True)])
        errors += list(found.found / true - 1)
    assert np.sqrt(np.mean(np.square(errors))) <= 1.25 * STANDARD_ERROR
    assert np.max(np.abs(errors)) <= 5 * STANDARD_ERROR + 1 / count


def test_counts_are_low_by_no_more_than_promised() -> None:
    """Many slices with far more values than entries, merged again and again as rounds would bring them."""
    rng = np.random.default_rng(5)
    true: dict[int, int] = {}
    state: ListColumns | None = None
    for _ in range(30):
        values = np.minimum(rng.zipf(1.2, 40_000), 50_000)
        for value, count in zip(*(column.tolist() for column in np.unique(values, return_counts=True)), strict=True):
            true[value] = true.get(value, 0) + count
        fresh = woven("top_frequencies", [values])
        assert len(fresh.cells.codes) == MOST_ENTRIES
        state = fresh if state is None else state.concat(fresh).merge(np.arange(2), np.array([0, 2]))
        assert len(state.cells.codes) <= 2 * MOST_ENTRIES
    assert state is not None
    held = dict(zip(state.dictionary.take(state.cells.codes).to_pylist(), state.cells.counts.tolist(), strict=True))
    lost = [count - held.get(value, 0) for value, count in true.items()]
    assert min(lost) >= 0
    assert 0 < max(lost) <= TOP_ERROR * sum(true.values())
