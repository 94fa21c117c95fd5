"""Portions of files: consecutive, within their size, and about equally large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windloom.spark.intake.files import Unit, _portions


def portions_of(rows: list[int], most: int) -> list[list[int]]:
    units = [Unit("f", (number,), count) for number, count in enumerate(rows)]
    return [[unit.rows for unit in portion] for portion in _portions(units, most)]


def test_the_last_portion_is_as_large_as_the_others() -> None:
    assert portions_of([100] * 12, 500) == [[100] * 4] * 3
    assert portions_of([100] * 5, 500) == [[100] * 5]


@given(rows=st.lists(st.integers(1, 50), min_size=1, max_size=40), most=st.integers(1, 200))
def test_every_unit_is_read_once_in_its_order_and_only_a_single_one_may_be_too_large(
    rows: list[int], most: int
) -> None:
    found = portions_of(rows, most)
    assert [count for portion in found for count in portion] == rows
    assert all(len(portion) == 1 or sum(portion) <= most for portion in found)
