"""User-defined aggregates through the step: every technique, rounds, both intakes and files, against plain Python."""

from __future__ import annotations

import math
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import STREAM, TYPES, make_query
from support.compare import rows_of
from support.drawing import examples
from support.durable import small_segments
from support.native import taken_of_plan
from support.user_aggregates import DEFINITIONS
from windloom.aggregates.define import define_aggregate
from windloom.checkpoint.records import StateSnapshot
from windloom.checkpoint.segment_files import SegmentFiles
from windloom.checkpoint.state_codec import decode, encode, restored_state
from windloom.checkpoint.storage import LocalStorage
from windloom.errors import WindloomError
from windloom.kernels.techniques.registry import allowed
from windloom.kernels.user_families import update, user_family
from windloom.model import Aggregate, Expression, Query, SessionWindow, TimeWindow, UserDefined, Window
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.rounds.step import step
from windloom.state.held import HeldSets
from windloom.state.state import State
from windloom.testing import answer
from windloom.weave.round_input import RoundInput

Row = dict[str, Any]

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "tick": st.integers(-20, 60),
            "k": st.sampled_from(["a", "b", None]),
            "x": st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.0, 3.25]), st.floats(0.25, 4, width=32)),
            "i": st.one_of(st.none(), st.integers(-9, 9)),
            "b": st.one_of(st.none(), st.booleans()),
        }
    ),
    max_size=25,
)
WINDOWS = st.one_of(
    st.builds(TimeWindow, st.integers(1, 24), st.integers(1, 16), st.integers(-9, 9)),
    st.builds(SessionWindow, st.integers(1, 9)),
)
COLUMN_OF = {"geo_mean": "x", "product_of": "x", "parity": "i", "farthest": "x"}


@cache
def defined(name: str) -> UserDefined:
    return define_aggregate(name, **DEFINITIONS[name]())


def asked(name: str, where: str | None = None) -> Aggregate:
    condition = None if where is None else Expression.of_column(where)
    return Aggregate(name, Expression.of_column(COLUMN_OF[name]), where=condition, own=defined(name))


def plan_of(queries: list[Query], technique: str = "auto") -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, PlanOptions(technique=technique), PlanningFacts())


#: Compiling takes seconds: a technique that takes values away is tried on one that can, any other on a selective one.
CASES = [
    ("parity", technique) for technique in ("prefix_ring", "subtract_on_evict", "slick_deque", "block_decomposition")
]
CASES += [("farthest", technique) for technique in allowed(user_family(defined("farthest")))]
CASES += [("geo_mean", "auto"), ("product_of", "two_stacks")]


def assert_answers(query: Query, rows: list[Row], found: list[Row]) -> None:
    def key(row: Row) -> tuple[Any, ...]:
        return (row["window_start"], row["window_end"], *(row[grouping.name] for grouping in query.group_by))

    expected = {key(row): row for row in answer(query, rows)}
    assert {key(row) for row in found} == expected.keys()
    for row in found:
        for output in query.outputs:
            left, right = expected[key(row)][output.name], row[output.name]
            same = left == right or (isinstance(left, float) and math.isclose(left, right, rel_tol=1e-9))
            assert same, (key(row), output.name, left, right)


@pytest.mark.parametrize(("name", "technique"), CASES)
@settings(max_examples=examples(12), deadline=None)
@given(windows=st.lists(WINDOWS, min_size=1, max_size=3), rows=ROWS)
def test_every_technique_that_its_properties_allow_gives_the_definition(
    name: str, technique: str, windows: list[Window], rows: list[Row]
) -> None:
    queries = [make_query(f"q{i}", window, [asked(name), asked(name, "b")], ("k",)) for i, window in enumerate(windows)]
    counts = make_query("n", windows[0], [Aggregate("count")], ())
    plan = plan_of([*queries, counts] if technique == "auto" else queries, technique)
    _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)
    blocks = list(answers.blocks())
    for query in queries:
        assert_answers(query, rows, rows_of(blocks, query))


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=examples(10), deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(-20, 60), max_size=3))
def test_rounds_and_states_from_files_give_the_definition(name: str, rows: list[Row], cuts: list[int]) -> None:
    query = make_query("q", TimeWindow(16, 4), [asked(name), Aggregate("count")], ("k",))
    plan, state, found = plan_of([query]), State(), []
    edges = [-100, *sorted(cuts), TICK_MAX]
    for begin, end in pairwise(edges):
        part = [row for row in rows if begin <= row["tick"] < end]
        state, answers, _ = step(state, RoundInput(taken_of_plan(plan, part, state), {"s": end}), plan)
        found += rows_of(list(answers.blocks()), query)
        state = restored_state(decode(encode(state)), plan)
    assert_answers(query, rows, found)


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(max_examples=examples(5), deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(-20, 60), max_size=3))
def test_segments_from_files_give_the_definition(name: str, rows: list[Row], cuts: list[int]) -> None:
    query = make_query("q", TimeWindow(16, 4), [asked(name), Aggregate("count")], ("k",))
    plan, state, found = plan_of([query]), State(HeldSets()), []
    with tempfile.TemporaryDirectory() as folder, small_segments():
        for begin, end in pairwise([-100, *sorted(cuts), TICK_MAX]):
            part = [row for row in rows if begin <= row["tick"] < end]
            state, answers, _ = step(state, RoundInput(taken_of_plan(plan, part, state), {"s": end}), plan)
            found += rows_of(list(answers.blocks()), query)
            files = SegmentFiles(LocalStorage(Path(folder)))
            for segment in files.missing(state.cells):
                files.write(segment)
            snapshot = b"".join(StateSnapshot(0, 0, state).to_pieces(files))
            state = restored_state(StateSnapshot.from_bytes("snapshot", snapshot, files).state, plan)
    assert_answers(query, rows, found)


def test_values_of_other_fields_are_not_taken_for_this_aggregates() -> None:
    query = make_query("q", TimeWindow(16, 4), [asked("parity")])
    plan = plan_of([query])
    state, _, _ = step(State(), RoundInput(taken_of_plan(plan, [{"tick": 1, "i": 3}]), {"s": 2}), plan)
    counted = define_aggregate(
        "parity",
        lift=lambda x: 1,
        combine=lambda a, b: a + b,
        lower=lambda value: value,
        neutral=0,
        argument="bigint",
    )
    other = plan_of([make_query("q", TimeWindow(16, 4), [Aggregate("parity", Expression.of_column("i"), own=counted)])])
    with pytest.raises(WindloomError, match="'parity' is not the one that the state was made with") as caught:
        restored_state(decode(encode(state)), other)
    assert "odd, all" in caught.value.detail


def test_tuples_are_taken_in_one_by_one() -> None:
    family = user_family(defined("geo_mean"))
    out = family.of(np.zeros(2), np.zeros(2, np.int64))
    arguments = np.array([2.0, 9.0, 8.0, 5.0])
    update(np.array([0, 1, 0, 1], np.int32), np.array([0, 1, 2], np.int32), False, arguments, out)
    assert out[1].tolist() == [2, 1]
    assert np.exp(out[0]) == pytest.approx([16.0, 9.0])
    update(np.array([0, 1, 0, 1], np.int32), np.empty(0, np.int32), True, arguments, out)
    assert out[1].tolist() == [4, 3]
