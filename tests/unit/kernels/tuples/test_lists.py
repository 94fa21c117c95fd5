"""Lists of a block against plain Python: counted values, registers, and the most frequent of them."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from support.weaving import cut_of, tuples_of
from windloom.kernels.lists.lists import Lists
from windloom.kernels.tuples.set_tuples import FEW_VALUES, ComponentInput, list_values, most_frequent


def shown(lists: Lists) -> list[list[tuple[int, int]]]:
    pairs = list(zip(lists.codes.tolist(), lists.counts.tolist(), strict=True))
    return [pairs[first:last] for first, last in pairwise(lists.bounds.tolist())]


def made(*cells: list[tuple[int, int]]) -> Lists:
    codes, counts = ([pair[i] for cell in cells for pair in cell] for i in range(2))
    return Lists(np.cumsum([0, *map(len, cells)]), np.array(codes, np.int32), np.array(counts, np.int64))


@pytest.mark.parametrize("own", [(), (0,)])
def test_values_are_counted_cell_by_cell_in_order(own: tuple[int, ...]) -> None:
    rng = random.Random(9)
    ticks = [rng.randrange(6) for _ in range(300)]
    groups, values = [rng.choice("ab") for _ in ticks], [rng.choice([None, 5, 7, 1, 10**12]) for _ in ticks]
    signature = [rng.randrange(2) for _ in ticks]
    tuples = tuples_of(ticks, pa.array(signature), pa.array(values), pa.array(groups), words=1)
    cut = cut_of(tuples, groups=(1,), own=own)
    ranked = cut.argument(ComponentInput(0)).ranked
    found = shown(list_values(cut, ComponentInput(0), ranked.ranks, len(ranked.dictionary)))
    keys = cut.grid.keys(cut.kept)[0].to_pylist()
    starts = cut.grid.starts_of(cut.kept).tolist()
    groups_of_cells = np.repeat(np.arange(len(keys)), np.diff(cut.kept.bounds)).tolist()
    for place, (group, start) in enumerate(zip(groups_of_cells, starts, strict=True)):
        held = [
            value
            for tick, key, value, bits in zip(ticks, groups, values, signature, strict=True)
            if (tick, key) == (start, keys[group]) and value is not None and (bits or not own)
        ]
        expected = [(value, held.count(value)) for value in sorted(set(held))]
        assert [(ranked.dictionary[code].as_py(), count) for code, count in found[place]] == expected


def test_of_each_register_the_largest_rank_stays() -> None:
    bits = 6
    pairs = [(0, (3, 2)), (0, (3, 5)), (0, (3, 4)), (0, (1, 1)), (1, (3, 1)), (1, (9, 60)), (2, None)]
    packed = [None if packed_pair is None else packed_pair[0] << bits | packed_pair[1] for _, packed_pair in pairs]
    cut = cut_of(tuples_of([tick for tick, _ in pairs], pa.array(packed, pa.int64())))
    found = shown(list_values(cut, ComponentInput(0), cut.argument(ComponentInput(0)).integers, 10, bits))
    assert found == [[(1, 1), (3, 5)], [(3, 1), (9, 60)], []]


@pytest.mark.parametrize("codes", [1, 63, 64, 65, 4096, 4097, 20_000])
@pytest.mark.parametrize("size", [1, FEW_VALUES, FEW_VALUES + 1, 1000])
def test_cells_of_any_size_and_values_of_any_number_are_listed(codes: int, size: int) -> None:
    """Cells of so many tuples, with a smaller one between them, which would meet what they leave in the table."""
    rng = random.Random(codes * size)
    ticks = [tick for tick, count in enumerate([size, 1, size, FEW_VALUES + 1]) for _ in range(count)]
    edges = [0, codes - 1]
    values = [rng.choice([*edges, rng.randrange(codes)]) for _ in ticks]
    held = [[value for tick, value in zip(ticks, values, strict=True) if tick == cell] for cell in range(4)]
    cut = cut_of(tuples_of(ticks, pa.array(values)))
    counted = shown(list_values(cut, ComponentInput(0), np.array(values, np.int32), codes))
    assert counted == [sorted(Counter(cell).items()) for cell in held]
    packed = [value << 6 | rng.randrange(1, 64) for value in values]
    kept: list[dict[int, int]] = [{} for _ in held]
    for tick, value in zip(ticks, packed, strict=True):
        kept[tick][value >> 6] = max(value & 63, kept[tick].get(value >> 6, 0))
    largest = shown(list_values(cut, ComponentInput(0), np.array(packed, np.int64), codes, 6))
    assert largest == [sorted(cell.items()) for cell in kept]


def test_cells_without_a_value_have_empty_lists() -> None:
    cut = cut_of(tuples_of([0, 1], pa.array([None, None], pa.string())))
    ranked = cut.argument(ComponentInput(0)).ranked
    assert shown(list_values(cut, ComponentInput(0), ranked.ranks, len(ranked.dictionary))) == [[], []]


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        ([(0, 5), (1, 5), (2, 5)], [(0, 5), (1, 5)]),  # of equals the smaller values stay
        ([(0, 1), (1, 5), (2, 3)], [(1, 5), (2, 3)]),
        ([(0, 2), (1, 9), (2, 2), (3, 2)], [(0, 2), (1, 9)]),
        ([(0, 2), (1, 2), (2, 9), (3, 8)], [(2, 9), (3, 8)]),
        ([(4, 1)], [(4, 1)]),
        ([], []),
    ],
)
def test_the_most_frequent_stay_in_order_of_value(cell: list[tuple[int, int]], kept: list[tuple[int, int]]) -> None:
    other = [(0, 1), (1, 2), (2, 3)]
    found = most_frequent(made(cell, other, cell), 2)
    assert shown(found) == [kept, [(1, 2), (2, 3)], kept]


def test_short_lists_are_left_as_they_are() -> None:
    lists = made([(0, 1), (1, 2)], [])
    assert most_frequent(lists, 2) is lists
    assert most_frequent(made([], []), 0).counts.tolist() == []
