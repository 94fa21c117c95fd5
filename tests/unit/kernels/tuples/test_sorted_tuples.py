"""Tuples in order of a column: what records hold, what is declined, and what is counted of many tuples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windloom.kernels.tuples import sorted_tuples as keyed_module
from windloom.kernels.tuples.sorted_tuples import SortedTuples, joined_records, key_tuples
from windloom.kernels.tuples.tuples import Tuples
from windloom.slicing.edges import EdgeClass, EdgeSet

EDGES = EdgeSet((EdgeClass(10, 0),))


def keyed_of(
    ticks: list[int], users: list[int | None], regions: list[str], values: list[int | None], words: list[int]
) -> SortedTuples | None:
    columns = {"tick": ticks, "s0": words, "user": users, "region": regions, "value": pa.array(values, pa.int64())}
    return key_tuples(Tuples.of(pa.table(columns), 1, EDGES), 0, (1,), (1,), (2,), EDGES)


def test_records_are_in_order_of_key_and_slice_and_have_the_tuples_with_the_bit() -> None:
    found = keyed_of(
        [25, 3, 14, 7, 11, 1],
        [7, 7, None, 9, 7, 9],
        ["n", "s", "n", "n", "s", "s"],
        [1, -2, 3, 2**31 - 1, 5, 6],
        [2, 3, 2, 2, 2, 1],
    )
    assert found is not None
    read = {
        key.as_py(): [
            (int(found.starts[place & 0xFFFF]), found.outs[0][place >> 16].as_py(), value)
            for place, value in found.records[begin:end].tolist()
        ]
        for key, begin, end in zip(found.keys, found.bounds[:-1], found.bounds[1:], strict=True)
        if end > begin
    }
    assert read == {7: [(0, "s", -2), (10, "s", 5), (20, "n", 1)], None: [(10, "n", 3)], 9: [(0, "n", 2**31 - 1)]}
    assert found.sizes == (2**31 - 1,)
    assert (found.grouped((0,)).groups.sum(), found.grouped((0,)).cells) == (4, 5)
    assert (found.grouped(()).groups.sum(), found.grouped(()).cells) == (3, 5)


@pytest.mark.parametrize("value", [None, 2**31, -(2**31)])
def test_values_that_have_no_room_in_a_record_are_declined(value: int | None) -> None:
    assert keyed_of([1, 2], [1, 2], ["a", "b"], [value, 1], [2, 2]) is None


def test_many_groups_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_module, "MOST_OUTS", 1)
    assert keyed_of([1, 2], [1, 2], ["a", "b"], [1, 1], [2, 2]) is None


@pytest.mark.parametrize("stride", [1, 7])
def test_groups_and_cells_of_many_tuples_are_estimated_from_some_keys(
    stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, count = np.random.default_rng(3), 40_000
    columns = {
        "tick": rng.integers(0, 300, count),
        "user": rng.integers(0, 400, count) * stride,
        "region": rng.integers(0, 9, count).astype(str),
    }
    tuples = Tuples.of(pa.table(columns), 0, EDGES)
    exact, estimated = (key_tuples(tuples, 0, (), (1,), (), EDGES) for _ in range(2))
    assert exact is not None
    assert estimated is not None
    for own in ((0,), ()):
        wanted = exact.grouped(own)
        with monkeypatch.context() as patched:
            patched.setattr(keyed_module, "COUNTED", 4_000)
            found = estimated.grouped(own)
        assert found.cells == pytest.approx(wanted.cells, rel=0.1)
        assert found.groups.sum() == pytest.approx(wanted.groups.sum(), rel=0.1)
        assert ((found.groups > 0) == (wanted.groups > 0)).all()
        assert (found.groups <= np.diff(estimated.bounds)).all()


@pytest.mark.parametrize("slices", [5, 3_000])
def test_portions_are_joined_in_order_of_slices_and_tuples_of_a_slice_as_they_come(slices: int) -> None:
    rng, parts = np.random.default_rng(1), []
    for _ in range(3):
        own = [np.sort(rng.integers(0, slices, rng.integers(0, 60))) for _ in range(4)]
        places = np.concatenate(own) | rng.integers(0, 3, sum(map(len, own))) << 16
        records = np.stack([places, rng.integers(0, 9, len(places))], axis=1).astype(np.int32)
        bounds = np.cumsum([0, *map(len, own)])
        parts.append(
            SortedTuples(pa.array(range(4)), bounds, records, np.arange(slices), (pa.array(list("abc")),), (9,))
        )
    numbers = [[np.arange(size) for _ in parts] for size in (4, 3, slices)]
    bounds, records = joined_records(parts, *numbers, 4)
    for key in range(4):
        every = [
            tuple(record) for part in parts for record in part.records[part.bounds[key] : part.bounds[key + 1]].tolist()
        ]
        wanted = sorted(every, key=lambda record: record[0] & 0xFFFF)
        assert [tuple(record) for record in records[bounds[key] : bounds[key + 1]].tolist()] == wanted
