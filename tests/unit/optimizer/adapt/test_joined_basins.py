"""Joins and row queries in charts: what they take counts, and their orders are switched like anything else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.join_looms import registered
from support.row_rounds import STREAMS
from windloom.model import Stream
from windloom.optimizer.adapt.basins import Basin, basins_of
from windloom.optimizer.adapt.candidates import SWITCHES, candidates_at, choices_of, recompiling
from windloom.optimizer.adapt.chart_figures import Figure, FigureKind, stream_figures, with_figures
from windloom.optimizer.adapt.chart_views import described
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.cost.constants import shipped_constants
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.joins.cost import side_sizes
from windloom.optimizer.joins.order import elimination_of, elimination_order
from windloom.optimizer.plan_cost import estimate_plan
from windloom.optimizer.stages import PlanOptions
from windloom.statistics.estimates import Estimates
from windloom.statistics.set_statistics import Ongoing

RATES = {name: Figure(FigureKind.RATE, name) for name in "stu"}
THREE = (
    "SELECT ISTREAM s.i AS a, t.i AS b, u.i AS c FROM s [RANGE 8 seconds SLIDE 4 seconds]"
    " JOIN t [RANGE 8 seconds] ON s.k = t.k JOIN u [RANGE 8 seconds] ON u.k = t.k"
)
MET = (
    "SELECT count(*) AS n FROM s [RANGE 8 seconds SLIDE 4 seconds] AS a JOIN t [RANGE 8 seconds] AS b ON a.k = b.k"
    " JOIN u [RANGE 8 seconds] AS c ON a.i = c.i"
)


def a_basin(text: str, streams: dict[str, Stream] | None = None) -> Basin:
    registry = registered({"q": text}, streams or STREAMS)
    known = PlanningFacts(shipped_constants(), ongoing=Ongoing(10.0))
    (found,) = basins_of(registry.streams, registry.queries.values(), registry.types(), PlanOptions(tuples=0), known)
    return found


def at(basin: Basin, **rates: float) -> Estimates:
    return with_figures(Estimates(), basin, {RATES[name]: rate for name, rate in rates.items()})


def test_what_rows_take_grows_with_their_streams() -> None:
    basin = a_basin(THREE)
    few, many = (basin.cost(basin.plan(at(basin, s=rate, t=rate, u=rate))) for rate in (10.0, 1000.0))
    assert many.answers > 100 * few.answers > 0


def test_what_folding_a_join_takes_is_part_of_a_round() -> None:
    basin = a_basin(MET)
    plan = basin.plan(at(basin, s=1000.0, t=1000.0, u=1000.0))
    folding = estimate_plan(plan, shipped_constants()).folds["q"]
    without = basin.cost(replace(plan, joins=()))
    assert basin.cost(plan).answers == pytest.approx(without.answers + 10.0 * folding)
    assert folding > 0


def test_a_given_rate_does_not_hide_what_a_stream_of_rows_brings() -> None:
    slow = {name: replace(stream, events_per_second=1.0) for name, stream in STREAMS.items()}
    basin = a_basin(THREE, slow)
    plan = basin.plan(at(basin, s=500.0, t=500.0, u=500.0))
    assert [rate.rate for rate in plan.rows[0].rates] == [500.0] * 3


def test_the_order_of_strands_follows_rates_and_a_recorded_one_stays() -> None:
    basin = a_basin(THREE)
    found = {
        fast: choices_of(basin.plan(at(basin, **{name: 1000.0 if name == fast else 1.0 for name in "stu"})))
        for fast in "stu"
    }
    assert len({chosen.options_of("row order")["q"] for chosen in found.values()}) > 1
    for fast, choices in found.items():
        for other in "stu":
            again = basin.plan(at(basin, **{name: 500.0 if name == other else 2.0 for name in "stu"}), choices)
            assert choices_of(again) == choices, fast
    assert basin.own(found["s"]) == found["s"]


def test_another_order_costs_more_where_it_makes_more_rows() -> None:
    basin = a_basin(THREE)
    estimates = at(basin, s=100.0, t=1000.0, u=100.0)
    best = candidates_at(basin, estimates, Objective())[0]
    switch = SWITCHES["row order"]
    options = switch.options(basin.plan(estimates), "q")
    assert len(options) == 6
    costs = [
        basin.cost(basin.plan(estimates, best.choices.with_option("row order", "q", option))).seconds
        for option in options
    ]
    assert best.cost.seconds == pytest.approx(min(costs))
    assert max(costs) > 1.1 * min(costs)
    other = best.choices.with_option("row order", "q", options[costs.index(max(costs))])
    assert recompiling(best.choices, other), "Spark compiles another job"
    assert "q joined in order" in described(other)


def test_a_left_join_keeps_its_order() -> None:
    basin = a_basin(THREE.replace("JOIN u", "LEFT JOIN u"))
    assert SWITCHES["row order"].options(basin.plan(Estimates()), "q") == ["0 1 2"]


def test_figures_that_are_only_imagined_refuse_no_query() -> None:
    basin = a_basin("SELECT s.i FROM s [RANGE 8 seconds SLIDE 4 seconds] JOIN t [RANGE 8 seconds] ON s.i < t.i")
    assert basin.cost(basin.plan(at(basin, s=1e6, t=1e6))).seconds > 1.0


def test_the_order_of_a_join_counts_as_it_is() -> None:
    basin = a_basin(MET)
    estimates = at(basin, s=1000.0, t=1000.0, u=1.0)
    plan = basin.plan(estimates)
    (join,) = plan.joins
    sizes = side_sizes(join.join, [plan.sets[place.set].statistics for place in join.sides])
    best = elimination_order(join.join, sizes)
    assert elimination_of(join.join, sizes, best.order) == best
    for order in ((0, 1), (1, 0)):
        assert elimination_of(join.join, sizes, order).rows >= best.rows


def test_the_length_of_a_round_is_one_figure_of_all_streams() -> None:
    basin = a_basin(MET)
    lengths = [figure for figure in stream_figures(basin) if figure.kind is FigureKind.ROUND]
    assert len(lengths) == 1
    seen = with_figures(at(basin, s=10.0, t=20.0, u=30.0), basin, {lengths[0]: 10.0})
    moved = with_figures(seen, basin, {lengths[0]: 60.0})
    assert {name: each.round.value for name, each in moved.streams.items() if each.round} == dict.fromkeys("stu", 60.0)
    assert {name: each.rate.value for name, each in moved.streams.items()} == {"s": 10.0, "t": 20.0, "u": 30.0}


def test_one_way_of_taking_all_streams_in_is_always_a_candidate() -> None:
    """Utilities are relative to the smallest plan, which must be among those that compete wherever search begins."""
    basin = a_basin(MET)
    for rate in (5.0, 500.0, 5e4):
        found = candidates_at(basin, at(basin, s=rate, t=rate, u=rate), Objective.of({"latency": 0.4, "memory": 0.6}))
        ways = {frozenset(candidate.choices.options_of("intake").values()) for candidate in found}
        assert {frozenset({"native"}), frozenset({"woven"})} <= ways
