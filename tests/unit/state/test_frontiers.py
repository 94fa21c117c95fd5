"""Frontiers: each set closes its windows at the least frontier of the streams it reads."""

from __future__ import annotations

import pytest

from support.catalogs import STREAMS, TYPES, make_query
from support.compare import rows_of
from support.native import taken_of_plan
from windloom.answers.answers import Answers
from windloom.model import Aggregate, LandmarkWindow, Query, TimeWindow, Window
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.rounds.lateness import LateCount
from windloom.rounds.questions import ask
from windloom.rounds.step import step
from windloom.state.frontiers import advanced, ahead_of_idle, all_closed, inputs_of, least
from windloom.state.plan_change import migrate
from windloom.state.state import State
from windloom.weave.round_input import RoundInput


def counting(name: str, stream: str, window: Window) -> Query:
    return make_query(name, window, [Aggregate("count")], stream=stream)


def plan_of(*queries: Query) -> Plan:
    return make_plan(STREAMS, queries, TYPES, PlanOptions(), PlanningFacts())


TRADES, QUOTES = counting("trades", "s", TimeWindow(10, 10)), counting("quotes", "t", TimeWindow(10, 10))
BOTH = plan_of(TRADES, QUOTES)


def given(plan: Plan, frontiers: dict[str, int], state: State | None = None, **ticks: list[int]) -> RoundInput:
    rows = {stream: [{"tick": tick} for tick in found] for stream, found in ticks.items()}
    seen = {stream: max(found) for stream, found in ticks.items() if found}
    first = {stream: min(found) for stream, found in ticks.items() if found}
    return RoundInput(taken_of_plan(plan, rows, state), frontiers, seen, first)


def ends(answers: Answers, query: Query) -> list[int]:
    return sorted(row["window_end"] for row in rows_of(list(answers.blocks()), query))


def test_a_silent_stream_holds_back_its_own_queries_only() -> None:
    state, answers, _ = step(State(), given(BOTH, {"s": 25}, s=[3, 14, 25]), BOTH)
    assert ends(answers, TRADES) == [10, 20]
    assert ends(answers, QUOTES) == []
    assert [state.closed_of(partial_set) for partial_set in BOTH.sets] == [25, TICK_MIN]
    _, answers, counts = step(state, given(BOTH, {"s": 25, "t": 12}, state, t=[3, 12]), BOTH)
    assert ends(answers, TRADES) == []
    assert ends(answers, QUOTES) == [10]
    assert counts.late.streams == {}


def test_a_tuple_is_late_by_the_frontier_of_its_own_stream() -> None:
    state, _, _ = step(State(), given(BOTH, {"s": 25, "t": 5}, s=[25], t=[5]), BOTH)
    _, _, counts = step(state, given(BOTH, {"s": 25, "t": 5}, state, s=[3, 14, 24], t=[3, 4]), BOTH)
    assert counts.late.streams == {"s": LateCount(0, 2)}


def test_a_frontier_never_runs_backwards() -> None:
    state, _, _ = step(State(), given(BOTH, {"s": 25, "t": 30}), BOTH)
    state, answers, _ = step(state, given(BOTH, {"s": 7}, state, s=[8]), BOTH)
    assert state.frontiers == {"s": 25, "t": 30}
    assert ends(answers, TRADES) == []
    assert advanced({"s": 5}, {"s": 3, "t": 1}) == {"s": 5, "t": 1}


def test_all_that_is_open_is_answered_when_every_stream_has_ended() -> None:
    state, _, _ = step(State(), given(BOTH, {"s": 5}, s=[3, 14], t=[100]), BOTH)
    state, answers, _ = step(state, RoundInput(frontiers=all_closed(BOTH.streams)), BOTH)
    assert (ends(answers, TRADES), ends(answers, QUOTES)) == ([10, 20], [110])
    assert {state.closed_of(partial_set) for partial_set in BOTH.sets} == {TICK_MAX}


def test_what_is_kept_depends_on_the_streams_own_frontier() -> None:
    state, _, _ = step(State(), given(BOTH, {"s": 95, "t": 12}, s=list(range(100)), t=list(range(15))), BOTH)
    held = {partial_set.stream: state.cells[partial_set.number].starts.tolist() for partial_set in BOTH.sets}
    assert held == {"s": [90], "t": [10]}
    kept, _, _ = step(State(), given(BOTH, {"s": 95, "t": 12}, s=[5, 85], t=[5, 14]), BOTH, history_ticks=20)
    held = {partial_set.stream: kept.cells[partial_set.number].starts.tolist() for partial_set in BOTH.sets}
    assert held == {"s": [80], "t": [0, 10]}


def test_landmarks_settle_and_end_by_their_own_stream() -> None:
    queries = [make_query(stream, LandmarkWindow(10), [Aggregate("count")], stream=stream) for stream in ("s", "t")]
    plan = plan_of(*queries)
    state, answers, _ = step(State(), given(plan, {"s": 25, "t": -12}, s=[14, 25], t=[8]), plan)
    assert [ends(answers, query) for query in queries] == [[20], []]
    # Tuples before the first ones: the landmark of s is settled, that of t is not.
    state, answers, counts = step(state, given(plan, {"s": 25, "t": 33}, state, s=[4], t=[-7]), plan)
    assert state.first == {"s": 14, "t": -7}
    assert counts.late.streams == {"s": LateCount(0, 1)}
    assert [ends(answers, query) for query in queries] == [[], [0, 10, 20, 30]]


def test_a_query_that_comes_later_begins_at_the_frontier_of_its_own_stream() -> None:
    old = plan_of(TRADES)
    state, _, _ = step(State(), given(old, {"s": 95, "t": 3}, s=[95], t=[3]), old)
    carried = migrate(state, old, BOTH)
    assert carried.frontiers == {"s": 95, "t": 3}
    assert carried.since == {"quotes": 10}
    _, answers, _ = step(carried, given(BOTH, {"t": 31}, carried, t=[12, 31]), BOTH)
    assert ends(answers, QUOTES) == [20]


def test_a_question_is_answered_up_to_the_frontier_of_its_stream() -> None:
    state, _, _ = step(State(), given(BOTH, {"s": 25, "t": 12}, s=[3, 14, 25], t=[3, 12]), BOTH, history_ticks=100)
    for stream, expected in (("s", [10, 20]), ("t", [10])):
        question = counting("ask", stream, TimeWindow(10, 10))
        answers, since = ask(state, BOTH, plan_of(question))
        assert ends(answers, question) == expected
        assert since is None


@pytest.mark.parametrize(("idle", "closed"), [(frozenset(), 30), ({"t"}, 50), ({"s"}, 30), ({"s", "t"}, 50)])
def test_an_idle_stream_does_not_count_beside_others(idle: frozenset[str], closed: int) -> None:
    assert least({"s": 50, "t": 30}, ("s", "t"), idle) == closed


def test_a_stream_alone_counts_whether_it_is_idle_or_not() -> None:
    assert inputs_of(BOTH.sets[1]) == (("t",),)
    assert least({"s": 50, "t": 30}, ("t",), {"t"}) == 30
    state, _, _ = step(State(), RoundInput(frontiers={"s": 25}, idle=frozenset("t")), BOTH)
    assert [state.closed_of(partial_set) for partial_set in BOTH.sets] == [25, TICK_MIN]
    assert state.ahead == {}


def test_what_was_closed_past_an_idle_stream_stays_closed_when_it_comes_back() -> None:
    frontiers, pair = {"s": 50, "t": 30}, ("s", "t")
    ahead = ahead_of_idle(frontiers, [pair], {"t"}, {})
    assert State(frontiers=frontiers, ahead=ahead).closed_over(pair) == 50
    ahead = ahead_of_idle({"s": 55, "t": 40}, [pair], (), ahead)
    assert State(frontiers={"s": 55, "t": 40}, ahead=ahead).closed_over(pair) == 50
    ahead = ahead_of_idle({"s": 70, "t": 60}, [pair], (), ahead)
    assert ahead == {}
    assert State(frontiers={"s": 70, "t": 60}, ahead=ahead).closed_over(pair) == 60
