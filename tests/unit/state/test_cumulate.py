"""Cumulating windows in rounds: where they begin, what is late, what is kept, and queries that come later."""

from __future__ import annotations

from typing import Any

from support.catalogs import make_query
from support.compare import rows_of
from support.native import taken_of_plan
from support.rounds import Round, plan_of, run_rounds
from windloom.model import Aggregate, Query, TimeWindow, Window
from windloom.model.time import TICK_MAX
from windloom.model.windows.cumulate import CumulateWindow
from windloom.rounds.lateness import LateCount
from windloom.rounds.questions import ask
from windloom.rounds.step import step
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

COUNT = Aggregate("count")


def counting(window: Window, name: str = "q") -> Query:
    return make_query(name, window, [COUNT])


def tuples(*ticks: int) -> list[dict[str, Any]]:
    return [{"tick": tick} for tick in ticks]


def counts(rows: list[dict[str, Any]]) -> dict[tuple[int, int], int]:
    return {(row["window_start"], row["window_end"]): row["o0"] for row in rows}


def test_a_window_begins_with_every_period_and_ends_at_every_slide_of_it() -> None:
    run = run_rounds([Round(tuples(-3, 7, 12, 13, 41), TICK_MAX, {"q": counting(CumulateWindow(20, 5, 2))})])
    # Periods begin at -18, 2, 22 and 42; before its first tuple a period has no rows, and without a tuple it has none.
    assert counts(run.lives[0].reported[0]) == {
        (-18, 2): 1,
        (2, 12): 1,
        (2, 17): 3,
        (2, 22): 3,
        (22, 42): 1,
    }


def test_a_late_tuple_counts_in_the_windows_of_its_period_that_are_still_open() -> None:
    queries = {"q": counting(CumulateWindow(20, 5))}
    rounds = [Round(tuples(3, 11), 11, queries), Round(tuples(4, 12), 12, queries), Round(tuples(6), 30, queries)]
    run = run_rounds([*rounds, Round(tuples(9), 31, queries)])
    reported = run.lives[0].reported
    assert counts(reported[0]) == {(0, 5): 1, (0, 10): 1}
    assert counts(reported[1]) == {}
    assert counts(reported[2]) == {(0, 15): 5, (0, 20): 5}
    assert [late.queries.get("q", LateCount()) for late in run.late] == [
        LateCount(),
        LateCount(1, 0),
        LateCount(1, 0),
        LateCount(0, 1),
    ]


def test_a_query_that_comes_over_slices_without_its_edges_begins_with_a_later_period() -> None:
    """The slice [16, 20) holds a tuple at 18, where a period of the new query begins: it cannot be divided there."""
    queries = {"a": counting(CumulateWindow(12, 4), "a")}
    rounds = [Round(tuples(9), 9, queries), Round(tuples(18), 18, queries)]
    queries = {**queries, "b": counting(CumulateWindow(6, 3), "b")}
    run = run_rounds([*rounds, Round(tuples(18, 21), 21, queries), Round(tuples(25), 40, queries)])
    added = next(life for life in run.lives if life.query.name == "b")
    assert added.since == 24
    assert counts(added.reported[2]) == {}
    assert counts(added.reported[3]) == {(24, 27): 1, (24, 30): 1}


def test_a_query_that_comes_over_slices_with_its_edges_reports_the_period_that_is_kept() -> None:
    queries = {"a": counting(CumulateWindow(20, 5), "a")}
    rounds = [Round(tuples(3, 11), 12, queries)]
    queries = {**queries, "b": counting(CumulateWindow(20, 10), "b")}
    run = run_rounds([*rounds, Round(tuples(13), 20, queries)])
    added = next(life for life in run.lives if life.query.name == "b")
    assert counts(added.reported[1]) == {(0, 10): 1, (0, 20): 3}


def test_cells_go_with_their_period_and_a_window_beside_them_shares_their_slices() -> None:
    queries = {"q": counting(CumulateWindow(20, 5)), "beside": counting(TimeWindow(10, 5), "beside")}
    assert len(plan_of(queries).sets) == 1
    rounds = [Round(tuples(*range(20 * n, 20 * n + 20)), 20 * n + 20, queries) for n in range(30)]
    run = run_rounds(rounds)
    assert max(len(state.cells[0]) for state in run.states) <= 2 * 4
    assert counts(run.lives[0].reported[29]) == {(580, end): end - 580 for end in (585, 590, 595, 600)}


def test_a_question_is_answered_from_the_periods_that_are_kept() -> None:
    running = plan_of({"a": make_query("a", TimeWindow(20, 5), [COUNT])})
    rows = tuples(*range(100))
    given = RoundInput(taken_of_plan(running, rows), {"s": 95}, seen={"s": 99}, first={"s": 0})
    state = step(State(), given, running, history_ticks=40)[0]
    question = counting(CumulateWindow(20, 10), "question")
    answers, since = ask(state, running, plan_of({"question": question}))
    assert since == 60
    assert counts(rows_of(answers.blocks(), question)) == {(60, 70): 10, (60, 80): 20, (80, 90): 10}
