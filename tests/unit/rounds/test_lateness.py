"""Late tuples: counted once a set, by whether a window of theirs will still be reported."""

from __future__ import annotations

import pytest

from support.catalogs import make_query
from support.native import taken_of_plan
from support.rounds import plan_of
from windloom.model import Aggregate, Window
from windloom.optimizer import PlanOptions
from windloom.rounds import RoundInput, State, carry, step
from windloom.rounds.lateness import Late, late_by_stream

COUNT = [Aggregate("count")]
SHORT = make_query("short", Window(10, 10), COUNT)
LONG = make_query("long", Window(40, 20), COUNT)
ONLY_B = make_query("only_b", Window(10, 10), COUNT, where="b")


def rows(*ticks: int) -> list[dict[str, object]]:
    return [{"tick": tick, "b": tick % 2 == 0} for tick in ticks]


def test_a_tuple_is_partly_late_while_a_longer_window_is_open() -> None:
    plan = plan_of({"short": SHORT, "long": LONG})
    state, _, _ = step(State(), RoundInput(taken_of_plan(plan, rows(0, 59)), {"s": 50}), plan)
    _, _, counts = step(state, RoundInput(taken_of_plan(plan, rows(55, 45, 25, 15, 15, -90), state), {"s": 50}), plan)
    assert counts.late == {0: Late(partly=2, dropped=3)}


@pytest.mark.parametrize(("scans", "expected"), [("together", Late(0, 3)), ("apart", Late(0, 5))])
def test_one_scan_counts_a_tuple_once_whatever_predicates_it_passes_and_several_count_it_for_each(
    scans: str, expected: Late
) -> None:
    plan = plan_of({"short": SHORT, "only_b": ONLY_B}, PlanOptions(scans=scans))
    state, _, _ = step(State(), RoundInput(taken_of_plan(plan, rows(0, 59)), {"s": 50}), plan)
    _, _, counts = step(state, RoundInput(taken_of_plan(plan, rows(2, 4, 7), state), {"s": 50}), plan)
    assert late_by_stream(plan, counts.late) == {"s": expected}


def test_a_tuple_that_no_query_wants_is_never_late() -> None:
    alone = plan_of({"only_b": ONLY_B})
    _, _, counts = step(State({}, {"s": 50}), RoundInput(taken_of_plan(alone, rows(2, 4, 7)), {"s": 50}), alone)
    assert late_by_stream(alone, counts.late) == {"s": Late(0, 2)}


def test_a_tuple_of_several_scans_with_one_predicate_is_counted_once() -> None:
    by_b = make_query("by_b", Window(40, 20), COUNT, ("b",))
    plan = plan_of({"short": SHORT, "by_b": by_b}, PlanOptions(scans="apart"))
    state, _, _ = step(State(), RoundInput(taken_of_plan(plan, rows(0, 59)), {"s": 50}), plan)
    _, _, counts = step(state, RoundInput(taken_of_plan(plan, rows(55, 45, 25, 15, 15, -90), state), {"s": 50}), plan)
    assert sorted(counts.late.values(), key=str) == [Late(0, 5), Late(1, 3)]
    assert late_by_stream(plan, counts.late) == {"s": Late(partly=2, dropped=3)}


def test_windows_that_a_new_query_is_about_to_report_are_open_for_it() -> None:
    old, new = plan_of({"long": LONG}), plan_of({"long": LONG, "even": make_query("even", Window(20, 20), COUNT)})
    state, _, _ = step(
        State(), RoundInput(taken_of_plan(old, rows(0, 59)), {"s": 50}, seen={"s": 59}), old, history_ticks=1000
    )
    for at, expected in ((old, Late(partly=1, dropped=2)), (new, Late(partly=3, dropped=0))):
        before = state if at is old else carry(state, old, new)
        _, _, counts = step(
            before, RoundInput(taken_of_plan(at, rows(25, 5, 5), before), {"s": 50}, seen={"s": 59}), at
        )
        assert counts.late == {0: expected}
