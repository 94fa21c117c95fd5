"""Portions of files: consecutive, within their size, and about equally large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windloom.weave.files import FileChunk, _portions


def portions_of(rows: list[int], most: int, together: int = 1) -> list[list[int]]:
    units = [FileChunk("f", (number,), count) for number, count in enumerate(rows)]
    return [[unit.rows for unit in portion] for portion in _portions(units, most, together)]


def test_the_last_portion_is_as_large_as_the_others() -> None:
    assert portions_of([100] * 12, 500) == [[100] * 4] * 3
    assert portions_of([100] * 5, 500) == [[100] * 5]


def test_threads_get_as_many_portions_of_equal_units_each() -> None:
    assert portions_of([100] * 12, 500, 2) == [[100] * 3] * 4
    assert portions_of([100] * 4, 500, 2) == [[100] * 2] * 2
    assert portions_of([100], 500, 2) == [[100]]


@given(rows=st.lists(st.integers(1, 50), min_size=1, max_size=40), most=st.integers(1, 200), together=st.integers(1, 9))
def test_every_unit_is_read_once_in_its_order_and_only_a_single_one_may_be_too_large(
    rows: list[int], most: int, together: int
) -> None:
    found = portions_of(rows, most, together)
    assert [count for portion in found for count in portion] == rows
    assert all(len(portion) == 1 or sum(portion) <= most for portion in found)
