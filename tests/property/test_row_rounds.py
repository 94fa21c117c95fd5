"""Row queries in rounds, without a JVM: what each round reports is what the definition says, whatever crashes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.micro_batches import CrashError, MicroBatches, answers_in, crash_after
from support.row_rounds import QUERIES, STREAMS, TYPES, RowRounds, row_rounds
from windloom.checkpoint.storage import TUPLE_FAULT_POINTS, watched
from windloom.testing import answer_rows

Reported = dict[int, dict[str, list[str]]]


def run(folder: Path, asked: RowRounds, names: tuple[str, ...], **options: Any) -> None:
    """From where the checkpoint is to the end of all streams."""
    with MicroBatches(folder, STREAMS, types=TYPES, snapshot_rounds=2, **options) as life:
        for batch in asked.rounds[life.loop.next_round :]:
            life.change({name: QUERIES[name] for name in names})
            life.round(batch)
        if life.loop.next_round == len(asked.rounds):
            life.finish()


def reported(folder: Path) -> Reported:
    return {number: in_order(found) for number, found in answers_in(folder).items()}


def in_order(found: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, rows in sorted(found.items()) if rows}


def expected(asked: RowRounds, names: tuple[str, ...]) -> Reported:
    by_query = {name: asked.expected(QUERIES[name]) for name in names}
    rounds = range(len(asked.rounds) + 1)
    found = {number: in_order({name: own[number] for name, own in by_query.items()}) for number in rounds}
    return {number: own for number, own in found.items() if own}


@settings(max_examples=examples(25), deadline=None)
@given(
    asked=row_rounds(),
    names=st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=4, unique=True),
)
def test_every_round_reports_what_the_definition_says(asked: RowRounds, names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), asked, tuple(names))
        assert reported(Path(folder)) == expected(asked, tuple(names))


@pytest.mark.parametrize("name", sorted(QUERIES))
@settings(max_examples=6, deadline=None)
@given(asked=row_rounds())
def test_one_round_with_everything_reports_what_a_batch_run_does(name: str, asked: RowRounds) -> None:
    everything = asked.arrived(len(asked.rounds))
    whole = RowRounds([everything], STREAMS)
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), whole, (name,))
        found = [row for own in answers_in(Path(folder)).values() for row in own.get(name, [])]
    assert sorted(map(repr, found)) == sorted(map(repr, answer_rows(QUERIES[name], everything)))


@settings(max_examples=examples(15), deadline=None)
@given(
    asked=row_rounds(),
    names=st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=3, unique=True),
    crashes=st.lists(st.integers(0, 40), min_size=1, max_size=4),
)
def test_any_crashes_change_nothing(asked: RowRounds, names: list[str], crashes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for crash in crashes:
            try:
                with crash_after(crash):
                    run(Path(folder), asked, tuple(names))
            except CrashError:
                pass
        run(Path(folder), asked, tuple(names))
        assert reported(Path(folder)) == expected(asked, tuple(names))


def test_tuples_are_complete_before_they_are_logged(tmp_path: Path) -> None:
    passed: list[str] = []
    row = {"tick": 3, "k": "a", "i": 2}
    with watched(passed.append):
        run(tmp_path, RowRounds([{"s": [row]}], STREAMS), ("tumbling",))
    assert set(TUPLE_FAULT_POINTS) <= set(passed)
    assert passed.index("after tuples") < passed.index("before log") < passed.index("before sink")
