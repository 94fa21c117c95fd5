"""Pairs of two columns in order, against plain Python."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from support.weaving import tuples_of
from windloom.kernels.tuples.tuples import TICK, Tuples


def made(seed: int, *, has_null: bool) -> tuple[Tuples, list[float | None], list[str | None]]:
    rng = random.Random(seed)
    by = [rng.choice([0.0, -0.0, 1.5, -2.0, None if has_null else 7.0]) for _ in range(200)]
    values = [rng.choice(["a", "b", "", None if has_null else "c"]) for _ in by]
    return tuples_of(range(200), pa.array(by, pa.float64()), pa.array(values, pa.string())), by, values


@pytest.mark.parametrize("has_null", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_ranked_by_the_first_then_by_the_second_with_null_lowest(seed: int, has_null: bool) -> None:
    tuples, by, values = made(seed, has_null=has_null)
    pairs = tuples.pairs(0, 1, 200)
    assert pairs is not None
    known = [i for i, first in enumerate(by) if first is not None]

    def place(i: int) -> tuple[float, bool, str]:
        first, second = by[i], values[i]
        assert first is not None
        return first + 0.0, second is not None, second or ""

    distinct = sorted({place(i) for i in known})
    assert [pairs.ranks[i] for i in known] == [distinct.index(place(i)) for i in known]
    assert [place(int(row)) for row in pairs.rows] == distinct


def test_where_the_first_ascend_nothing_is_sorted() -> None:
    tuples, _, _ = made(0, has_null=True)
    for value in (0, 1):
        pairs = tuples.pairs(TICK, value, 200)
        assert pairs is not None
        assert pairs.ranks.tolist() == pairs.rows.tolist() == list(range(200))


def test_floats_that_decide_are_not_ranked_because_zeros_differ() -> None:
    tuples, _, _ = made(0, has_null=False)
    assert tuples.pairs(1, 0, 200) is None


def test_for_few_cells_what_they_pick_is_sorted_instead() -> None:
    tuples, _, _ = made(0, has_null=False)
    assert tuples.pairs(0, 1, 2) is None
