"""Folds of joins against the join of tuples by its definition: every technique, kind, order and value."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.folds import Asking, JoinCase, ask_everything, is_equal, random_links, random_order, random_tuples
from windloom.answers.joins import joined_rows
from windloom.answers.joins.fold import fold_sides
from windloom.kernels.folds.registry import ROW_FOLDS
from windloom.model.stream import JoinKind

#: Groups of the result: of no side, of the first, of another, of two.
GROUPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3, unique=True)


def case_of(
    seed: int, sides: int, kinds: Sequence[JoinKind], groups: list[tuple[int, int]], *, residual: bool
) -> tuple[JoinCase, np.random.Generator]:
    rng = np.random.default_rng(seed)
    ends = int(rng.integers(1, 9))
    links = random_links(rng, sides, kinds, residual=residual)
    size = {2: 16, 3: 10, 4: 8}[sides]
    least = 0 if rng.random() < 0.1 else size // 2
    tuples = [random_tuples(rng, int(rng.integers(least, size)), ends) for _ in range(sides)]
    case = JoinCase(ends, tuple(int(length) for length in rng.integers(1, 2 * ends, sides)), links, (), tuples)
    visible = case.visible
    case.groups = tuple(dict.fromkeys((visible[side % len(visible)], place) for side, place in groups))
    return case, rng


def check(case: JoinCase, rng: np.random.Generator, technique: str) -> None:
    order = random_order(rng, case.links)
    # Conditions are tested for all pairs of values, or for those that meet.
    with patch.object(joined_rows, "MOST_TABLE", int(rng.choice([0, joined_rows.MOST_TABLE]))):
        folded = fold_sides(case.join, case.types, case.sides, case.ends, order, technique)
    found, truth = case.lowered(folded), case.truth()
    assert found.keys() == truth.keys()
    for key, values in truth.items():
        for asked, value, ours in zip(case.asked, values, found[key], strict=True):
            assert is_equal(value, ours), f"{asked.aggregate} at {key}: {ours} instead of {value[0]}"


@pytest.mark.parametrize("technique", ROW_FOLDS)
@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 100_000), groups=GROUPS)
def test_an_inner_join_of_two_sides_is_folded(technique: str, seed: int, groups: list[tuple[int, int]]) -> None:
    case, rng = case_of(seed, 2, [JoinKind.INNER], groups, residual=False)
    ask_everything(case, rng, share=0.6)
    check(case, rng, technique)


@pytest.mark.parametrize("technique", ROW_FOLDS)
@settings(max_examples=examples(80), deadline=None)
@given(seed=st.integers(0, 100_000), sides=st.integers(2, 4), groups=GROUPS)
def test_joins_of_all_kinds_are_folded_in_any_order(
    technique: str, seed: int, sides: int, groups: list[tuple[int, int]]
) -> None:
    case, rng = case_of(seed, sides, list(JoinKind), groups, residual=True)
    ask_everything(case, rng, share=0.4)
    check(case, rng, technique)


@settings(max_examples=examples(150), deadline=None)
@given(seed=st.integers(0, 100_000), sides=st.integers(2, 3))
def test_extrema_of_both_sides_with_infinity_and_nan_are_spark_s_or_refused(seed: int, sides: int) -> None:
    case, rng = case_of(seed, sides, [JoinKind.INNER, JoinKind.LEFT], [], residual=False)
    case.tuples = [random_tuples(rng, 10, case.ends, wild=True) for _ in range(sides)]
    asking = Asking(case, rng)
    for pair in ("x+x", "x-x", "x*x", "n+n", "n*i"):
        asking.corner(*pair)
    folded = fold_sides(case.join, case.types, case.sides, case.ends, random_order(rng, case.links), "pairwise")
    found, truth = case.lowered(folded), case.truth()
    refused = {refusal.component for refusal in folded.refused}
    for key, values in truth.items():
        for number, (value, ours) in enumerate(zip(values, found[key], strict=True)):
            assert number in refused or is_equal(value, ours), f"{case.asked[number]} at {key}: {ours}, not {value}"
