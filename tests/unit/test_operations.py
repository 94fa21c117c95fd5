"""Operations counted inside the kernels, against the complexities the papers claim (source C, table 2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import log2
from typing import Any

import pytest
from bench.kernels.slides import operations_per_slide, values_of

from windloom.errors import WindloomError
from windloom.kernels.compiling import COUNTING
from windloom.kernels.families import ADD_INT

WINDOW = 64


@pytest.fixture(scope="module")
def counted() -> dict[tuple[str, str, str], dict[str, Any]]:
    """All counts, from a process whose kernels count; it keeps none of them on disk, so they are compiled each time."""
    environment = {**os.environ, "WINDLOOM_COUNT_OPERATIONS": "1", "NUMBA_OPT": "0"}
    command = [sys.executable, "-m", "bench.kernels.slides", str(WINDOW)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return {(row["technique"], row["family"], row["input"]): row for row in json.loads(finished.stdout)}


def test_slick_deque_inv_takes_exactly_two_operations_a_slide(counted: Any) -> None:
    row = counted["slick_deque", "add_int", "random"]
    assert (row["slide_mean"], row["slide_worst"]) == (2.0, 2)


def test_subtract_on_evict_takes_exactly_two_operations_a_slide(counted: Any) -> None:
    row = counted["subtract_on_evict", "add_int", "random"]
    assert (row["slide_mean"], row["slide_worst"]) == (2.0, 2)


def test_slick_deque_non_inv_takes_fewer_than_two_operations_a_slide_on_random_input(counted: Any) -> None:
    assert 1.0 < counted["slick_deque", "max_int", "random"]["slide_mean"] < 2.0


@pytest.mark.parametrize("pattern", ["random", "ascending", "descending", "sawtooth", "constant"])
def test_two_stacks_takes_at_most_three_operations_a_slide_amortised(counted: Any, pattern: str) -> None:
    row = counted["two_stacks", "max_int", pattern]
    assert row["slide_mean"] <= 3.0
    assert row["slide_worst"] >= WINDOW - 2  # the flip


def test_daba_never_takes_more_than_eight_operations_a_slide(counted: Any) -> None:
    row = counted["daba", "add_int", "random"]
    assert row["slide_worst"] <= 8
    assert row["slide_mean"] <= 5.0


def test_flat_fit_takes_about_three_operations_a_slide(counted: Any) -> None:
    row = counted["flat_fit", "add_int", "random"]
    assert 2.5 <= row["slide_mean"] <= 3.2
    assert row["slide_worst"] >= WINDOW - 2  # the window reset


@pytest.mark.parametrize("technique", ["flat_fat", "b_int"])
def test_trees_take_logarithmically_many_operations(counted: Any, technique: str) -> None:
    row = counted[technique, "add_int", "random"]
    assert row["slide_worst"] <= 3 * log2(WINDOW) + 2
    assert row["mean"] >= 0.5 * log2(WINDOW)


def test_every_technique_beats_recalculation(counted: Any) -> None:
    for (technique, family, pattern), row in counted.items():
        if technique != "recalculate":
            assert row["mean"] < counted["recalculate", family, pattern]["mean"], technique


@pytest.mark.skipif(COUNTING, reason="this build counts")
def test_a_build_that_does_not_count_says_how_to_make_one_that_does() -> None:
    with pytest.raises(WindloomError, match="does not count") as error:
        operations_per_slide("daba", ADD_INT, values_of("random", 10), 3)
    assert "WINDLOOM_COUNT_OPERATIONS=1" in error.value.hint
