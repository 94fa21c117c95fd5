"""State to bytes and back, between any two rounds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import ROWS, STREAM, TYPES, catalogs
from support.compare import rows_of
from support.drawing import examples
from support.frames_on_disk import of_version
from support.native import taken_of_plan
from windloom.checkpoint.frames import VERSIONS
from windloom.checkpoint.state_codec import decode, encode
from windloom.errors import WindloomError
from windloom.model import Query
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.rounds.step import step
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

Row = dict[str, Any]
VERSION = VERSIONS["state"]


@settings(max_examples=examples(40), deadline=None)
@given(queries=catalogs(3), early=ROWS, late=ROWS, watermark=st.integers(-30, 60))
def test_a_decoded_state_answers_what_the_state_answers(
    queries: list[Query], early: list[Row], late: list[Row], watermark: int
) -> None:
    plan = make_plan({"s": STREAM}, queries, TYPES, PlanOptions(), PlanningFacts())
    state, _, _ = step(State(), RoundInput(taken_of_plan(plan, early), {"s": watermark}), plan)
    again = decode(encode(state))
    assert again.frontiers == state.frontiers
    assert encode(again) == encode(state)
    partials = taken_of_plan(plan, late)
    expected = list(step(state, RoundInput(partials, {"s": TICK_MAX}), plan)[1].blocks())
    found = list(step(again, RoundInput(partials, {"s": TICK_MAX}), plan)[1].blocks())
    for query in queries:
        assert list(map(repr, rows_of(found, query))) == list(map(repr, rows_of(expected, query)))


def test_equal_states_are_equal_bytes_in_whatever_order_their_queries_came() -> None:
    since = {"a": 1, "b": 2}
    backwards = dict(reversed(since.items()))
    assert encode(State({}, {"s": 7}, since=since)) == encode(State({}, {"s": 7}, since=backwards))


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_refused_with_what_would_work(data: st.DataObject) -> None:
    whole = encode(State({}, {"s": 7}))
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        damaged = whole[:place]
    else:
        damaged = whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    with pytest.raises(WindloomError) as error:
        decode(damaged)
    assert error.value.hint


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_bytes_of_another_version_are_refused_with_the_one_that_can_be_read(version: int) -> None:
    other = of_version(encode(State({}, {"s": 7})), version)
    with pytest.raises(WindloomError, match=f"the state is of version {version}") as error:
        decode(other)
    assert error.value.detail == f"this Windloom reads version {VERSION} only"
    assert error.value.hint


def test_every_fact_about_time_is_read_back() -> None:
    state = State({}, {"s": 7, "t": TICK_MIN}, {"s": 9}, first={"s": -3}, ahead={("s", "t"): 5})
    assert decode(encode(state)) == state
