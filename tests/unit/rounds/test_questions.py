"""One-time questions: answered from what is kept, or refused with what is not."""

from __future__ import annotations

from typing import Any

import pytest

from support.catalogs import make_query
from support.compare import rows_of
from support.native import taken_of_plan
from support.rounds import plan_of
from windloom.errors import WindloomError
from windloom.model import Aggregate, Expression, LandmarkWindow, Query, RowsWindow, TimeWindow, Window
from windloom.rounds.questions import ask
from windloom.rounds.step import step
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

SUM = Aggregate("sum", Expression.of_column("i"))
RUNNING = plan_of({"a": make_query("a", TimeWindow(20, 10), [SUM], ("k",))})


def kept(history_ticks: int = 0) -> State:
    rows = [{"tick": tick, "k": "xy"[tick % 2], "i": tick} for tick in range(100)]
    partials = taken_of_plan(RUNNING, rows)
    return step(
        State(), RoundInput(partials, {"s": 95}, seen={"s": 99}, first={"s": 0}), RUNNING, history_ticks=history_ticks
    )[0]


def question(window: Window, aggregate: Aggregate = SUM, grouping: tuple[str, ...] = ("k",), **more: Any) -> Query:
    return make_query("question", window, [aggregate], grouping, **more)


def test_complete_windows_are_answered_from_all_that_is_kept() -> None:
    asked = question(TimeWindow(30, 30))
    answers, since = ask(kept(1000), RUNNING, plan_of({"question": asked}))
    assert since is None
    found = {(row["window_start"], row["k"]): row["o0"] for row in rows_of(answers.blocks(), asked)}
    assert found == {
        (start, key): sum(tick for tick in range(start, start + 30) if "xy"[tick % 2] == key)
        for start in (0, 30, 60)
        for key in "xy"
    }


def test_what_was_dropped_is_left_out_and_it_is_said_from_where_on() -> None:
    asked = question(TimeWindow(10, 10))
    answers, since = ask(kept(), RUNNING, plan_of({"question": asked}))
    assert since == 80
    assert {row["window_start"] for row in rows_of(answers.blocks(), asked)} == {80}


def test_a_running_query_can_be_asked_too() -> None:
    asked = make_query("a", TimeWindow(20, 10), [SUM], ("k",))
    answers, _ = ask(kept(1000), RUNNING, plan_of({"a": asked}))
    assert {row["window_start"] for row in rows_of(answers.blocks(), asked)} == {*range(-10, 80, 10)}


@pytest.mark.parametrize(("history_ticks", "landmark", "ends"), [(1000, 0, (30, 60, 90)), (30, 90, ())])
def test_a_landmark_is_the_first_tuple_or_where_nothing_is_missing(
    history_ticks: int, landmark: int, ends: tuple[int, ...]
) -> None:
    asked = question(LandmarkWindow(30), grouping=("k",))
    if not ends:
        with pytest.raises(WindloomError, match="cannot be answered from what is kept"):
            ask(kept(history_ticks), RUNNING, plan_of({"question": asked}))
        return
    answers, _ = ask(kept(history_ticks), RUNNING, plan_of({"question": asked}))
    found = {(row["window_start"], row["window_end"], row["k"]): row["o0"] for row in rows_of(answers.blocks(), asked)}
    assert found == {
        (landmark, end, key): sum(tick for tick in range(landmark, end) if "xy"[tick % 2] == key)
        for end in ends
        for key in "xy"
    }


def test_before_any_round_nothing_is_answered_and_nothing_refused() -> None:
    answers, since = ask(State(), RUNNING, plan_of({"question": question(TimeWindow(10, 10))}))
    assert since is None
    assert list(answers.blocks()) == []


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (
            question(TimeWindow(10, 10), grouping=()),
            "no running query has this stream, condition, grouping and kind of window: FROM s",
        ),
        (question(TimeWindow(10, 10), where="b"), "FROM s WHERE b GROUP BY k"),
        (question(TimeWindow(10, 10), Aggregate("max", Expression.of_column("i"))), "max(i) is not kept"),
        (question(TimeWindow(10, 10, 5)), "begin or end inside slices"),
        (question(RowsWindow(10, 10)), "whose positions are not kept for questions"),
        (question(TimeWindow(60, 10)), "and kept is since 1970-01-01T00:00:00.000076"),
    ],
)
def test_a_question_without_an_answer_says_what_is_not_kept(asked: Query, why: str) -> None:
    with pytest.raises(WindloomError, match="query 'question' cannot be answered from what is kept") as error:
        ask(kept(), RUNNING, plan_of({"question": asked}))
    assert why in error.value.detail
    assert error.value.hint
