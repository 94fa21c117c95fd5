"""What is not in the shape that is drawn at `CellsBuilder` is refused wherever tests make cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windloom.aggregates.columns import ComponentColumns
from windloom.kernels.families import AddInt
from windloom.state.cells import Cells, CellsBuilder
from windloom.weave.round_input import ScanResult


def cells(bounds: list[int], starts: list[int], counts: list[int]) -> Cells:
    keys = pa.array([chr(97 + group) for group in range(len(bounds) - 1)])
    built = CellsBuilder([keys], np.array(bounds, np.int64), np.array(starts, np.int64))
    return built.build([ComponentColumns((AddInt(np.array(counts, np.int64)),))])


def test_cells_of_the_drawing_are_accepted() -> None:
    drawn = cells([0, 3, 4], [0, 5, 10, 5], [3, 1, 4, 2])
    assert (drawn.groups, len(drawn), list(drawn.tuples)) == (2, 4, [3, 1, 4, 2])


@pytest.mark.parametrize(
    ("bounds", "starts", "counts", "wrong"),
    [
        ([1, 2], [0, 5], [1, 1], "begins at 1"),
        ([0, 1], [0, 5], [1, 1], "ends at 1 of 2"),
        ([0, 0, 2], [0, 5], [1, 1], "groups without cells"),
        ([0, 2], [5, 0], [1, 1], "do not ascend"),
        ([0, 2], [5, 5], [1, 1], "do not ascend"),
        ([0, 2], [0, 5], [1], "component 0"),
    ],
)
def test_other_cells_are_refused(bounds: list[int], starts: list[int], counts: list[int], wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        cells(bounds, starts, counts)


def test_a_set_has_no_cell_without_tuples() -> None:
    with pytest.raises(AssertionError, match="without tuples"):
        ScanResult({0: cells([0, 2], [0, 5], [1, 0])})


def test_rows_of_one_group_and_start_become_one_cell() -> None:
    keys, starts = [pa.array(["b", "a", "b", "b"])], np.array([5, 0, 0, 5], np.int64)
    built = CellsBuilder.of_rows(keys, starts).build([ComponentColumns((AddInt(np.array([1, 2, 3, 4], np.int64)),))])
    assert built.keys[0].to_pylist() == ["b", "a"]
    assert (list(built.group_bounds), list(built.starts), list(built.tuples)) == ([0, 2, 3], [0, 5, 0], [3, 5, 2])
