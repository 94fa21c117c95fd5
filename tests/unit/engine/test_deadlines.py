"""Deadlines in words: warnings of those that no round can keep, and what EXPLAIN tells of a schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.catalogs import make_query
from windloom.engine.budget import DeadlineRecord, MeasuredAnswers, Scheduling, no_costs
from windloom.engine.options import StreamOptions, least_seconds, schedule_lines, warning_of
from windloom.model import Aggregate, Query, TimeWindow
from windloom.model.clauses import Urgency


def asked(name: str, within: float | None, priority: int = 5) -> Query:
    """A query with a slide of a minute."""
    query = make_query(name, TimeWindow(300_000_000, 60_000_000), [Aggregate("count")])
    return replace(query, urgency=Urgency(None if within is None else int(within * 1e6), priority))


@pytest.mark.parametrize(
    ("trigger", "least"),
    [({"processingTime": "30 seconds"}, 30.0), ({"processingTime": "0 seconds"}, None), ({}, None)],
)
def test_before_any_round_the_trigger_says_what_is_possible(trigger: dict[str, object], least: float | None) -> None:
    found = least_seconds(Scheduling(no_costs), StreamOptions(trigger))
    assert (None if found is None else found[0]) == least


def test_rounds_say_better_what_is_possible() -> None:
    scheduling = Scheduling(no_costs, round_seconds=lambda: 2.0)
    scheduling.learned.add(MeasuredAnswers({}, answers=0.5, rest=1.0))
    found = least_seconds(scheduling, StreamOptions({"processingTime": "30 seconds"}))
    assert found == (3.5, "rounds bring 2 s of event time and take 1.5 s")


def test_a_deadline_that_no_round_can_keep_is_told_with_the_least_possible() -> None:
    told = warning_of(asked("q", 5.0), (30.0, "a round starts every 30 seconds"))
    assert told == (
        "query 'q' wants answers within 5 seconds, and 30 s is the least possible: a round starts every 30 seconds"
    )


@pytest.mark.parametrize("within", [None, 30.0, 60.0])
def test_other_deadlines_are_not_warned_of(within: float | None) -> None:
    assert warning_of(asked("q", within), (30.0, "a round starts every 30 seconds")) is None


def test_explain_names_budget_schedule_and_urgent_queries_first() -> None:
    scheduling = Scheduling(no_costs, budget=2.0, schedule="edf")
    scheduling.kept["late"] = DeadlineRecord(40, 3, 1.25)
    queries = [asked("usual", None), asked("late", None), asked("urgent", 5.0, 1)]
    lines = schedule_lines(scheduling, queries, {"late": 2}, None)
    assert lines == [
        "Budget: 2 seconds per round",
        "Schedule: edf: the earliest deadline first, every task by itself",
        "  urgent: within 5 seconds, priority 1",
        "  late: within 1 minute, priority 5, 40 windows answered, 3 late (by 1.25 s at worst),"
        " 2 windows left to later rounds",
    ]
