"""Relations of both kinds against the oracle: whole, cut into rounds with a version each, and with crashes."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import INTAKES
from support.compare_joins import assert_equal_join, assert_equal_join_rows
from support.drawing import examples
from support.join_catalogs import ATTACHED, RELATIONS, joins, rows, versions
from support.join_looms import answered, planned, possible, registered, with_folds
from support.join_rounds import JoinRounds, join_rounds
from support.join_texts import Asked
from support.micro_batches import CrashError, MicroBatches, answers_in
from support.relations import Versions
from support.switching import any_choices
from windloom.checkpoint.storage import watched
from windloom.optimizer.stages import PlanOptions
from windloom.slicing.slicings import SLICINGS
from windloom_tools.oracle.joins import answer_join

Row = dict[str, Any]
STYLES = st.sampled_from(["on", "comma", "exists", "full"])
BOTH = [*RELATIONS, *ATTACHED]


@settings(max_examples=examples(100), deadline=None)
@given(asked=joins(relations=[*RELATIONS]), rows=rows(), version=versions(), style=STYLES)
def test_a_relation_in_a_text_is_a_side_that_every_window_sees_whole(
    asked: Asked, rows: dict[str, list[Row]], version: dict[str, list[Row]], style: str
) -> None:
    query = registered({"q": asked.cql(style=style)}).queries["q"]
    everything = {**rows, **version}
    assert_equal_join(replace(asked.query(), text=query.text), everything, answer_join(query, everything))


@pytest.mark.parametrize("fold", ["pairwise", "recalculate"])
@settings(max_examples=examples(100), deadline=None)
@given(
    asked=st.lists(joins(relations=BOTH), min_size=1, max_size=2),
    rows=rows(),
    version=versions(),
    order=st.integers(0, 23),
    intake=INTAKES,
    style=STYLES,
    slicing=st.sampled_from(list(SLICINGS)),
    strategy=st.sampled_from(["no_share", "shared", "weave_share"]),
)
def test_every_fold_order_slicing_and_strategy_answers_what_the_oracle_answers(
    fold: str,
    asked: list[Asked],
    rows: dict[str, list[Row]],
    version: dict[str, list[Row]],
    order: int,
    intake: str,
    style: str,
    slicing: str,
    strategy: str,
) -> None:
    """A batch run has one version, which every tuple meets as it comes in and every window as it closes."""
    registry = registered({f"j{i}": replace(join, having=None).cql(style=style) for i, join in enumerate(asked)})
    options = PlanOptions(strategy, slicing, intake=possible(intake, registry))
    plan = with_folds(planned(registry, options), fold, order)
    everything = {**rows, **version}
    found = answered(plan, everything, registry.queries)
    for i, join in enumerate(asked):
        assert_equal_join(replace(join, having=None).query(), everything, found[f"j{i}"])


# ---- rounds ---------------------------------------------------------------------------------------------------------


def live(case: JoinRounds, folder: Path, intake: str, seed: int | None = None) -> None:
    """One life: the rounds that are left, and the end; the relation is what the case says of each round.

    With a seed, every round has a plan of its own.
    """
    registry = registered({name: asked.cql() for name, asked in case.asked.items()}, case.streams)
    options: dict[str, Any] = {"snapshot_rounds": 2}
    options |= {"intake": possible(intake, registry), "relations": {**RELATIONS, **ATTACHED}}
    options["versions"] = Versions(case.versions)
    with MicroBatches(folder, case.streams, types=registry.types(), **options) as life:
        life.change(registry.queries)
        for batch in case.rounds[life.loop.next_round :]:
            if seed is not None:
                draw = random.Random(f"{seed} {life.loop.next_round}")
                life.switch(lambda plan, draw=draw: any_choices(plan, draw))  # type: ignore[misc]
            life.round(batch)
        if life.loop.next_round == len(case.rounds):
            life.finish()


def check(case: JoinRounds, answers: dict[int, dict[str, list[Row]]]) -> None:
    """Every round reports the windows that it closes, over the versions that it has."""
    for name, asked in case.asked.items():
        query = asked.query(name)
        for number, wanted in case.expected(query).items():
            found = answers.get(number, {}).get(name, [])
            assert_equal_join_rows(query, case.seen(number), wanted, found, case.landmarks(query, number))


@settings(max_examples=examples(60), deadline=None)
@given(case=join_rounds(relations=BOTH), intake=INTAKES)
def test_windows_see_the_version_of_the_round_in_which_they_close_and_tuples_that_in_which_they_came(
    case: JoinRounds, intake: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live(case, Path(folder), intake)
        check(case, answers_in(Path(folder)))


@settings(max_examples=examples(20), deadline=None)
@given(case=join_rounds(relations=BOTH), seed=st.integers(0, 1000))
def test_plans_that_change_in_every_round_see_the_same_versions(case: JoinRounds, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live(case, Path(folder), "auto", seed)
        check(case, answers_in(Path(folder)))


@settings(max_examples=examples(40), deadline=None)
@given(
    case=join_rounds(relations=BOTH),
    lives=st.lists(st.tuples(st.integers(0, 40), st.lists(versions(), min_size=6, max_size=6)), min_size=1, max_size=3),
    intake=INTAKES,
)
def test_a_replayed_round_sees_the_version_that_it_has_logged_whatever_the_relation_is_by_then(
    case: JoinRounds, lives: Sequence[tuple[int, list[dict[str, list[Row]]]]], intake: str
) -> None:
    """Each life finds other versions than the one before; a round has those of the life that logged it."""
    logged: dict[int, int] = {}
    every = [*(versions[: len(case.rounds) + 1] for _, versions in lives), list(case.versions)]
    with tempfile.TemporaryDirectory() as name:
        for number, left in enumerate([*(crash for crash, _ in lives), None]):
            try:
                with watched(_Crash(left, logged, number)):
                    live(replace(case, versions=every[number]), Path(name), intake)
            except CrashError:
                pass
        answers = answers_in(Path(name))
    seen = [every[logged[number]][number] for number in range(len(case.rounds) + 1)]
    check(replace(case, versions=seen), answers)


class _Crash:
    """After so many fault points the process is gone; it notes which life logged each round first."""

    def __init__(self, left: int | None, logged: dict[int, int], life: int) -> None:
        self.left, self.logged, self.life = left, logged, life

    def __call__(self, point: str) -> None:
        if point == "after log":
            self.logged.setdefault(len(self.logged), self.life)
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise CrashError
