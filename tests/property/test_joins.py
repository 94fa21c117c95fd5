"""Joins against the oracle: every fold and order of eliminations, whole and cut into rounds, with crashes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.compare_joins import assert_equal_join, assert_equal_join_rows
from support.drawing import examples
from support.join_catalogs import joins, rows
from support.join_looms import answered, join_plan, planned, registered, with_folds
from support.join_rounds import JoinRounds, join_rounds
from support.join_texts import Asked
from support.micro_batches import CrashError, MicroBatches, answers_in, crash_after
from windloom.kernels.folds.registry import FOLDS
from windloom.optimizer.stages import PlanOptions
from windloom.slicing.slicings import SLICINGS
from windloom_tools.oracle.joins import answer_join

Row = dict[str, Any]


STYLES = st.sampled_from(["on", "comma", "exists", "full"])


@settings(max_examples=examples(150), deadline=None)
@given(asked=joins(), rows=rows(), style=STYLES)
def test_the_language_takes_a_text_apart_into_what_it_means(
    asked: Asked, rows: dict[str, list[Row]], style: str
) -> None:
    """What the oracle answers to the sides and links that were read is what it answers to the description."""
    query = registered({"q": asked.cql(style=style)}).queries["q"]
    described = replace(asked.query(), text=query.text)
    assert_equal_join(described, rows, answer_join(query, rows))


@pytest.mark.parametrize("fold", list(FOLDS))
@settings(max_examples=examples(120), deadline=None)
@given(
    asked=st.lists(joins(), min_size=1, max_size=2),
    rows=rows(),
    order=st.integers(0, 23),
    bits=st.integers(0, 15),
    slicing=st.sampled_from(list(SLICINGS)),
    strategy=st.sampled_from(["no_share", "shared", "weave_share"]),
)
def test_every_fold_order_and_early_side_answers_what_the_oracle_answers(
    fold: str, asked: list[Asked], rows: dict[str, list[Row]], order: int, bits: int, slicing: str, strategy: str
) -> None:
    unfiltered = {f"j{i}": replace(join, having=None).cql() for i, join in enumerate(asked)}
    registry = registered(unfiltered)
    options = PlanOptions(strategy, slicing, joins=join_plan(bits, registry))
    plan = with_folds(planned(registry, options), fold, order)
    found = answered(plan, rows, registry.queries)
    for name, query in registry.queries.items():
        assert_equal_join(query, rows, found[name])


# ---- rounds ---------------------------------------------------------------------------------------------------------


def live(case: JoinRounds, folder: Path, bits: int) -> None:
    """One life: the rounds that are left, and the end."""
    registry = registered({name: asked.cql() for name, asked in case.asked.items()}, case.streams)
    options: dict[str, Any] = {"snapshot_rounds": 2}
    options["joins"] = join_plan(bits, registry)
    with MicroBatches(folder, case.streams, types=registry.types(), **options) as life:
        life.change(registry.queries)
        for batch in case.rounds[life.loop.next_round :]:
            life.round(batch)
        if life.loop.next_round == len(case.rounds):
            life.finish()


def run(case: JoinRounds, bits: int, crashes: Sequence[int] = ()) -> dict[int, dict[str, list[Row]]]:
    with tempfile.TemporaryDirectory() as name:
        for crash in crashes:
            try:
                with crash_after(crash):
                    live(case, Path(name), bits)
            except CrashError:
                pass
        live(case, Path(name), bits)
        return answers_in(Path(name))


@settings(max_examples=examples(60), deadline=None)
@given(case=join_rounds(), bits=st.integers(0, 7))
def test_every_round_reports_the_windows_it_closes_late_tuples_in_those_that_are_open(
    case: JoinRounds, bits: int
) -> None:
    answers = run(case, bits)
    for name, asked in case.asked.items():
        query = asked.query(name)
        for number, wanted in case.expected(query).items():
            found = answers.get(number, {}).get(name, [])
            arrived = case.arrived(number + 1)
            assert_equal_join_rows(query, arrived, wanted, found, case.landmarks(query, number))


@settings(max_examples=examples(30), deadline=None)
@given(
    case=join_rounds(disorder=False, landmarks=False),
    bits=st.integers(0, 7),
    crashes=st.lists(st.integers(0, 40), max_size=3),
)
def test_rounds_and_crashes_change_nothing_of_what_a_batch_run_reports(
    case: JoinRounds, bits: int, crashes: list[int]
) -> None:
    answers = run(case, bits, crashes)
    for name, asked in case.asked.items():
        query = asked.query(name)
        found = [row for _, reported in sorted(answers.items()) for row in reported.get(name, [])]
        assert_equal_join(query, case.everything, found)
