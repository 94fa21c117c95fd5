"""Late tuples: counted once per stream and once per query, by whether a window of theirs will still be reported."""

from __future__ import annotations

import pytest

from support.catalogs import make_query
from support.native import taken_of_plan
from support.rounds import plan_of
from windloom.model import Aggregate, Query, RowsWindow, TimeWindow
from windloom.optimizer.stages import PlanOptions
from windloom.plan.plan import Plan
from windloom.rounds.lateness import LateCount, Lateness, before_round
from windloom.rounds.step import step
from windloom.state.frontiers import LateBounds
from windloom.state.plan_change import migrate
from windloom.state.positions import Counting, PositionCounts, Positions
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

COUNT = [Aggregate("count")]
SHORT = make_query("short", TimeWindow(10, 10), COUNT)
LONG = make_query("long", TimeWindow(40, 20), COUNT)
ONLY_B = make_query("only_b", TimeWindow(10, 10), COUNT, where="b")
FIVE = make_query("five", RowsWindow(5, 5), COUNT)

both = pytest.mark.parametrize("intake", ["woven", "native"])


def rows(*ticks: int) -> list[dict[str, object]]:
    return [{"tick": tick, "b": tick % 2 == 0} for tick in ticks]


def planned(*queries: Query, intake: str = "woven") -> Plan:
    return plan_of({query.name: query for query in queries}, PlanOptions(intake=intake))


def late(plan: Plan, *ticks: int) -> Lateness:
    """Of tuples that come when 50 is closed."""
    state, _, _ = step(State(), RoundInput(taken_of_plan(plan, rows(0, 59)), {"s": 50}), plan)
    return step(state, RoundInput(taken_of_plan(plan, rows(*ticks), state), {"s": 50}), plan)[2].late


@both
def test_a_tuple_is_partly_late_while_a_longer_window_is_open(intake: str) -> None:
    found = late(planned(SHORT, LONG, intake=intake), 55, 45, 25, 15, 15, -90)
    assert found == Lateness({"s": LateCount(partly=2, dropped=3)}, {"short": LateCount(0, 5), "long": LateCount(1, 3)})


@both
def test_a_tuple_is_counted_once_for_its_stream_and_for_every_query_that_wants_it(intake: str) -> None:
    found = late(planned(SHORT, ONLY_B, intake=intake), 2, 4, 7)
    assert found == Lateness({"s": LateCount(0, 3)}, {"short": LateCount(0, 3), "only_b": LateCount(0, 2)})


@both
def test_a_tuple_that_no_query_wants_is_never_late(intake: str) -> None:
    assert late(planned(ONLY_B, intake=intake), 2, 4, 7) == Lateness(
        {"s": LateCount(0, 2)}, {"only_b": LateCount(0, 2)}
    )
    assert late(planned(ONLY_B, intake=intake), 7) == Lateness()


@both
def test_queries_of_different_groupings_count_a_tuple_once_for_their_stream(intake: str) -> None:
    by_b = make_query("by_b", TimeWindow(40, 20), COUNT, ("b",))
    found = late(planned(SHORT, by_b, intake=intake), 55, 45, 25, 15, 15, -90)
    assert found == Lateness({"s": LateCount(partly=2, dropped=3)}, {"short": LateCount(0, 5), "by_b": LateCount(1, 3)})


def test_a_tuple_behind_the_frontier_is_late_for_windows_of_rows_and_may_still_count_in_windows_of_time() -> None:
    found = late(planned(FIVE, LONG), 55, 45, 25)
    assert found == Lateness({"s": LateCount(partly=2)}, {"five": LateCount(0, 2), "long": LateCount(1, 0)})


@pytest.mark.parametrize("intake", ["auto", "woven"])
def test_late_tuples_of_windows_of_rows_are_counted_where_no_query_has_windows_of_time(intake: str) -> None:
    only = make_query("only", RowsWindow(5, 5), COUNT, where="b")
    found = late(planned(FIVE, only, intake=intake), 55, 45, 44, 42)
    assert found == Lateness({"s": LateCount(0, 3)}, {"five": LateCount(0, 3), "only": LateCount(0, 2)})


def test_tuples_from_before_anybody_counted_are_not_late_for_windows_of_rows() -> None:
    plan = planned(FIVE)
    state = State(frontiers={"s": 50}, positions=Positions(counts={Counting("s", ()): PositionCounts(after=30)}))
    assert before_round(plan, state) == {"s": LateBounds(50, 50, (31,))}
    taken = taken_of_plan(plan, rows(29, 30, 31, 49, 50), state)
    assert step(state, RoundInput(taken, {"s": 50}), plan)[2].late == Lateness(
        {"s": LateCount(0, 2)}, {"five": LateCount(0, 2)}
    )


@both
def test_windows_that_a_new_query_is_about_to_report_are_open_for_it(intake: str) -> None:
    even = make_query("even", TimeWindow(20, 20), COUNT)
    old, new = planned(LONG, intake=intake), planned(LONG, even, intake=intake)
    state, _, _ = step(
        State(), RoundInput(taken_of_plan(old, rows(0, 59)), {"s": 50}, seen={"s": 59}), old, history_ticks=1000
    )
    for at, expected in ((old, LateCount(partly=1, dropped=2)), (new, LateCount(partly=3, dropped=0))):
        before = state if at is old else migrate(state, old, new)
        _, _, counts = step(
            before, RoundInput(taken_of_plan(at, rows(25, 5, 5), before), {"s": 50}, seen={"s": 59}), at
        )
        assert counts.late == Lateness({"s": expected}, {"long": LateCount(1, 2)})
