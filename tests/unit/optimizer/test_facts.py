"""What plans are made with: given before observed before assumed, and the model of rounds that follow one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.catalogs import STREAM, TYPES, make_query
from windloom.model import Aggregate, Query, RowsWindow, TimeWindow
from windloom.optimizer.cost.constants import shipped_constants
from windloom.optimizer.cost.work import Demand
from windloom.optimizer.facts import PlanningFacts, set_statistics, with_statistics
from windloom.optimizer.plan_cost import estimate_plan
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.scans import WovenScan
from windloom.statistics.estimates import Estimates, StreamEstimate
from windloom.statistics.set_statistics import (
    ASSUMED,
    DEFAULT_GROUPS,
    GIVEN,
    Mean,
    Ongoing,
    Origin,
    SetEstimate,
    SetIdentity,
)

SECOND = 1_000_000


def a_query(name: str, where: str | None = None, groups: tuple[str, ...] = ("k",)) -> Query:
    return make_query(name, TimeWindow(60 * SECOND, 10 * SECOND), [Aggregate("count")], groups, where)


EVERY, SOME = a_query("every"), a_query("some", "b")
SEEN = Estimates(
    {"s": StreamEstimate(Mean(50.0, 3), Mean(20.0, 3), {"b": 0.2}, 2.0)},
    {
        SetIdentity.of_query(EVERY): SetEstimate(Mean(1.0, 3), Mean(7.0, 3), Mean(7.0, 3)),
        SetIdentity.of_query(SOME): SetEstimate(Mean(0.2, 2, 0.1), Mean(6.0, 2), Mean(5.0, 2), spread=0.5),
    },
)


def test_every_figure_has_an_origin() -> None:
    nothing = set_statistics(STREAM, [SOME], PlanningFacts())
    assert (nothing.events_per_second, nothing.selectivity, nothing.groups) == (500.0, 0.5, DEFAULT_GROUPS)
    assert nothing.origins.rate == nothing.origins.selectivity == nothing.origins.groups == ASSUMED
    seen = set_statistics(STREAM, [SOME], PlanningFacts(estimates=SEEN))
    assert (seen.events_per_second, seen.stream_rate, seen.groups) == (pytest.approx(10.0), pytest.approx(50.0), 6.0)
    assert (seen.round_seconds, seen.spread, seen.signatures) == (20.0, 0.5, 2.0)
    assert seen.origins.rate == Origin("observed", 3) == seen.origins.round
    assert seen.origins.selectivity == Origin("observed", 2, 0.1)


def test_a_given_rate_is_that_of_the_stream_and_a_predicate_is_seen_to_let_a_share_through() -> None:
    given = replace(STREAM, events_per_second=80.0)
    assert set_statistics(given, [SOME], PlanningFacts(estimates=SEEN)).events_per_second == pytest.approx(16.0)
    assert set_statistics(given, [SOME], PlanningFacts(estimates=SEEN)).origins.rate == GIVEN
    alone = set_statistics(given, [a_query("one", groups=())], PlanningFacts())
    assert (alone.events_per_second, alone.groups, alone.origins.groups) == (80.0, 1.0, GIVEN)


def test_what_was_seen_of_a_predicate_or_grouping_holds_for_queries_that_are_new() -> None:
    other = set_statistics(STREAM, [a_query("other", "b", ("i",))], PlanningFacts(estimates=SEEN))
    assert other.selectivity == 0.2
    assert other.origins.selectivity.source == "observed"
    assert other.groups == DEFAULT_GROUPS
    assert other.origins.groups == ASSUMED


def test_nothing_that_was_seen_makes_a_cost_infinite() -> None:
    never = replace(SEEN.sets[SetIdentity.of_query(SOME)], selectivity=Mean(0.0, 9), groups=Mean(0.0, 0))
    known = PlanningFacts(shipped_constants(), Estimates(SEEN.streams, {SetIdentity.of_query(SOME): never}))
    plan = make_plan({"s": STREAM}, [SOME, EVERY], TYPES, PlanOptions(), known)
    assert 0 < estimate_plan(plan, shipped_constants()).total < 1


def test_rounds_of_a_stream_read_what_earlier_ones_left_and_answer_each_window_once() -> None:
    batch = set_statistics(STREAM, [EVERY], PlanningFacts(estimates=SEEN))
    stream = set_statistics(STREAM, [EVERY], PlanningFacts(estimates=SEEN, ongoing=Ongoing()))
    kept = set_statistics(STREAM, [EVERY], PlanningFacts(estimates=SEEN, ongoing=Ongoing(history_seconds=3600)))
    assert (batch.readings, stream.readings, kept.readings) == (1.0, 4.0, 181.0)
    each = Demand.of([[EVERY.window]], stream).rows[0]
    assert each == pytest.approx(0.1 * 7, rel=0.01)
    assert Demand.of([[EVERY.window]], batch).rows[0] == pytest.approx(each * 4), "windows past the ends of the run"
    edges = np.array([0.1])
    assert stream.taken_per_second(edges) == pytest.approx(stream.cells_per_second(edges + 0.05))
    assert batch.taken_per_second(edges) == batch.cells_per_second(edges)


def test_a_stream_is_assumed_to_have_short_rounds_until_one_has_run() -> None:
    assert set_statistics(STREAM, [EVERY], PlanningFacts(ongoing=Ongoing(5.0, GIVEN))).origins.round == GIVEN
    assert set_statistics(STREAM, [EVERY], PlanningFacts(ongoing=Ongoing(5.0, GIVEN))).round_seconds == 5.0
    assert (
        set_statistics(STREAM, [EVERY], PlanningFacts(estimates=SEEN, ongoing=Ongoing(5.0, GIVEN))).round_seconds
        == 20.0
    )
    assert set_statistics(STREAM, [EVERY], PlanningFacts()).round_seconds == 86_400.0


def test_windows_of_rows_have_the_rate_of_their_stream_too() -> None:
    rows = make_query("rows", RowsWindow(100, 10), [Aggregate("count")])
    seen = set_statistics(STREAM, [rows], PlanningFacts(estimates=SEEN, ongoing=Ongoing()))
    assert seen.event_rate == seen.stream_rate == pytest.approx(50.0)
    assert seen.round_length == pytest.approx(20.0)
    assert seen.readings == pytest.approx(1 + 100 / 1000), "100 rows are kept, and a round brings 1,000"


def test_the_same_plan_is_predicted_with_what_is_known_now() -> None:
    plan = make_plan({"s": STREAM}, [SOME, EVERY], TYPES, PlanOptions(), PlanningFacts())
    now = with_statistics(plan, PlanningFacts(estimates=SEEN))
    assert now == plan, "statistics are not part of what a plan does"
    assert {partial_set.statistics.origins.rate.source for partial_set in now.sets} == {"observed"}


@pytest.mark.parametrize(("groups", "is_few"), [(3.0, True), (400.0, False)])
def test_cells_are_rolled_up_from_finer_ones_unless_these_are_known_to_be_many(groups: float, is_few: bool) -> None:
    finer, coarser = a_query("finer", groups=("k", "b")), a_query("coarser")
    seen = Estimates(
        {"s": StreamEstimate(Mean(50.0, 3), Mean(20.0, 3), {}, 1.0)},
        {
            SetIdentity.of_query(finer): SetEstimate(Mean(1.0, 3), Mean(groups, 3), Mean(groups, 3)),
            SetIdentity.of_query(coarser): SetEstimate(Mean(1.0, 3), Mean(2.0, 3), Mean(2.0, 3)),
        },
    )
    for known, is_rolled_up in ((PlanningFacts(), True), (PlanningFacts(estimates=seen), is_few)):
        plan = make_plan({"s": STREAM}, [finer, coarser], TYPES, PlanOptions(intake="woven"), known)
        (scan,) = plan.scans
        assert isinstance(scan, WovenScan)
        of = {plan.sets[fed.number].group_by: fed for fed in scan.feeds}
        (own,) = [fed for group_by, fed in of.items() if len(group_by) == 1]
        assert bool(own.via) == is_rolled_up
