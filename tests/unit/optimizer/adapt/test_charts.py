"""Charts: where a point lies, what its region's plan is, and which figures are dimensions."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.catalogs import STREAM, STREAMS, TYPES, make_query
from windloom.errors import WindloomError
from windloom.model import Aggregate, Expression, Query, TimeWindow
from windloom.optimizer.adapt.basins import Basin, basins_of
from windloom.optimizer.adapt.candidates import candidates_at, choices_of
from windloom.optimizer.adapt.chart_figures import Figure, FigureKind, figures_of, value_of, values_of, with_figures
from windloom.optimizer.adapt.charts import Axis, Chart, ChartOptions, Dimension, axis_around, draw_chart, sensitivities
from windloom.optimizer.adapt.objective import BestCosts, Objective
from windloom.optimizer.cost.constants import shipped_constants
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions
from windloom.statistics.estimates import Estimates, StreamEstimate
from windloom.statistics.set_statistics import Mean, Ongoing, SetEstimate, SetIdentity

SECOND = 1_000_000
RATE, ROUND, GROUPS = (
    Figure(FigureKind.RATE, "s"),
    Figure(FigureKind.ROUND, "s"),
    Figure(FigureKind.GROUPS, "s", ("k",)),
)
SHARE = Figure(FigureKind.SHARE, "s", ("b",))
KNOWN = PlanningFacts(shipped_constants(), ongoing=Ongoing(10.0))


def a_query(name: str, length: int, where: str | None = None, groups: tuple[str, ...] = ("k",)) -> Query:
    sums = [Aggregate("sum", Expression.of_column("x")), Aggregate("count")]
    return make_query(name, TimeWindow(length * SECOND, 10 * SECOND), sums, groups, where)


QUERIES = [a_query("short", 20), a_query("long", 300), a_query("some", 60, "b")]


def a_basin(queries: list[Query] = QUERIES) -> Basin:
    (found,) = basins_of({"s": STREAM}, queries, TYPES, PlanOptions(), KNOWN)
    return found


# ---- parts ----------------------------------------------------------------------------------------------------------


@given(
    low=st.floats(1e-3, 1e3),
    span=st.floats(1.5, 1e6),
    parts=st.integers(1, 60),
    place=st.floats(-1, 2),
    is_geometric=st.booleans(),
)
def test_a_value_lies_between_the_edges_of_its_part(
    low: float, span: float, parts: int, place: float, is_geometric: bool
) -> None:
    axis = Axis(low, low * span, parts, is_geometric)
    value = axis.edge(place * parts)
    part = axis.part(value)
    nearly = 1e-6 * abs(value) + 1e-9
    assert axis.edge(part) - nearly <= value <= axis.edge(part + 1) + nearly
    if value > axis.edge(0) > 0:
        assert axis.part(axis.centre(part)) == part


@pytest.mark.parametrize("partition", ["geometric", "regular"])
@pytest.mark.parametrize("parts", [1, 2, 7, 10])
@pytest.mark.parametrize("figure", [RATE, GROUPS])
def test_an_axis_is_drawn_around_a_value(figure: Figure, parts: int, partition: str) -> None:
    axis = axis_around(figure, 123.0, ChartOptions(parts, 2, partition))
    assert axis.part(123.0) == parts // 2
    assert axis.centre(parts // 2) == pytest.approx(123.0)


def test_shares_never_exceed_one() -> None:
    for partition in ("geometric", "regular"):
        axis = axis_around(SHARE, 0.9, ChartOptions(10, 2, partition))
        assert axis.edge(10) <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"parts": 0}, "a chart cannot have 0 parts"),
        ({"parts": -3}, "a chart cannot have -3 parts"),
        ({"parts": 2.5}, "a chart cannot have 2.5 parts"),
        ({"dimensions": 0}, "a chart cannot have 0 dimensions"),
        ({"partition": "log"}, "unknown partition 'log'"),
        ({"parts": 60}, "a chart of 60 parts and 3 dimensions is past its bound"),
    ],
)
def test_charts_that_cannot_be_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(WindloomError) as refused:
        ChartOptions(**given)
    assert refused.value.message == words
    assert refused.value.hint


def test_the_bound_of_a_chart_says_what_is_possible() -> None:
    with pytest.raises(WindloomError, match="216,000 regions") as refused:
        ChartOptions(60, 3)
    assert "at most 21 parts" in refused.value.hint
    assert ChartOptions(60, 2).parts == 60


# ---- figures --------------------------------------------------------------------------------------------------------

EVERY, SOME = (SetIdentity.of_query(QUERIES[0]), SetIdentity.of_query(QUERIES[2]))
SEEN = Estimates(
    {"s": StreamEstimate(Mean(50.0, 3), Mean(20.0, 3), {"b": 0.2}, 2.0)},
    {
        EVERY: SetEstimate(Mean(1.0, 3), Mean(8.0, 3), Mean(7.0, 3)),
        SOME: SetEstimate(Mean(0.2, 3), Mean(4.0, 3), Mean(4.0, 3), spread=0.5),
    },
)


def test_a_basin_has_figures_of_its_streams_groupings_and_predicates() -> None:
    assert set(figures_of(a_basin())) == {RATE, ROUND, GROUPS, SHARE}
    assert set(figures_of(a_basin([a_query("one", 20, groups=())]))) == {RATE, ROUND}


def test_figures_are_observed_or_given_or_assumed() -> None:
    basin = a_basin()
    assert values_of([RATE, ROUND, GROUPS, SHARE], basin, SEEN) == {RATE: 50.0, ROUND: 20.0, GROUPS: 8.0, SHARE: 0.2}
    assert values_of([RATE, ROUND, GROUPS, SHARE], basin, Estimates()) == {
        RATE: 1000.0,
        ROUND: 10.0,
        GROUPS: 100.0,
        SHARE: 0.5,
    }


@pytest.mark.parametrize("before", [SEEN, Estimates()])
def test_a_figure_can_have_any_value_and_changes_no_other(before: Estimates) -> None:
    basin = a_basin()
    now = values_of(figures_of(basin), basin, before)
    for figure, value in ((RATE, 7e5), (ROUND, 0.5), (GROUPS, 1e6), (SHARE, 0.75)):
        moved = with_figures(before, basin, {figure: value})
        assert value_of(figure, basin, moved) == pytest.approx(value)
        others = {other: known for other, known in now.items() if other != figure}
        assert values_of(others, basin, moved) == pytest.approx(others)


def test_groups_grow_alike_behind_all_predicates() -> None:
    moved = with_figures(SEEN, a_basin(), {GROUPS: 80.0})
    assert (moved.sets[EVERY].groups.value, moved.sets[SOME].groups.value) == (80.0, 40.0)
    assert moved.sets[SOME].spread == 0.5


# ---- plans ----------------------------------------------------------------------------------------------------------


def test_the_plan_of_a_region_is_the_best_for_its_centroid() -> None:
    basin = a_basin()
    chart = draw_chart(basin, SEEN, Objective(), ChartOptions(6, 2))
    for region in [(0, 0), (5, 5), (0, 5), (3, 3), (9, -2)]:
        best = chart.fill(region)[0]
        at = chart.estimates_at(region)
        assert best.choices == candidates_at(basin, at, Objective())[0].choices
        plan = basin.plan(at, best.choices)
        assert choices_of(plan) == best.choices, "a plan is made again from its choices"
        assert basin.cost(plan) == best.cost
        least = min(option.cost.seconds for option in chart.fill(region))
        assert best.cost.seconds <= least * 1.0101


def test_a_chart_has_different_plans_and_looks_them_up_without_making_any(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = draw_chart(a_basin(), SEEN, Objective(), ChartOptions(6, 2))
    plans = {region: chart.fill(region)[0].choices for region in chart.between_ends((3, 3))}
    assert len(plans) == 36
    assert len(set(plans.values())) > 1
    monkeypatch.setattr(Basin, "plan", None)
    for region, choices in plans.items():
        values = list(chart.centroid(region).values())
        assert chart.region(values) == region
        assert chart.best(region)[0].choices == choices
        assert chart.fill(region)[0].choices == choices


def test_dimensions_are_what_costs_depend_on_most() -> None:
    basin = a_basin()
    found = sensitivities(basin, SEEN, Objective())
    assert [weighed.total for weighed in found] == sorted((weighed.total for weighed in found), reverse=True)
    chart = draw_chart(basin, SEEN, Objective(), ChartOptions(4, 2))
    assert chart.figures == [weighed.figure for weighed in found[:2]]
    assert all("four times as much" in dimension.reason for dimension in chart.dimensions)
    assert all(
        dimension.axis.part(value) == 2
        for dimension, value in zip(chart.dimensions, (f.value for f in found), strict=False)
    )


def test_where_memory_counts_bytes_make_dimensions_too() -> None:
    basin = a_basin()
    fast, small = (
        {each.figure: each for each in sensitivities(basin, SEEN, Objective.of(name))} for name in ("latency", "memory")
    )
    for figure, each in fast.items():
        assert each.cost == pytest.approx(each.seconds)
        assert small[figure].cost == pytest.approx(small[figure].nbytes)
        assert "bytes by" in small[figure].reason
        assert "bytes by" not in each.reason


def test_the_objective_decides_what_plan_a_region_has() -> None:
    """At many tuples of few groups, native partials are far fewer bytes than tuples."""
    basin, seen = a_basin(), with_figures(SEEN, a_basin(), {RATE: 3e4, GROUPS: 6e4})
    by_name = {name: candidates_at(basin, seen, Objective.of(name)) for name in ("latency", "memory")}
    fast, small = (by_name[name][0] for name in ("latency", "memory"))
    assert fast.cost.seconds <= small.cost.seconds
    assert small.cost.nbytes < fast.cost.nbytes
    assert small.choices.options_of("intake") == {"s": "native"}
    least = BestCosts.of([option.cost for option in by_name["latency"]])
    assert Objective().utility(fast.cost, least) == pytest.approx(1.0, rel=0.011)


# ---- basins -------------------------------------------------------------------------------------------------------


def test_streams_that_no_join_connects_are_planned_each_by_itself() -> None:
    queries = [a_query("a", 20), make_query("b", TimeWindow(10, 5), [Aggregate("count")], stream="u")]
    found = basins_of(STREAMS, queries, TYPES, PlanOptions(), KNOWN)
    assert [basin.name for basin in found] == ["s", "u"]
    whole = choices_of(found[0].plan(Estimates())) | choices_of(found[1].plan(Estimates()))
    assert [basin.own(whole) for basin in found] == [choices_of(basin.plan(Estimates())) for basin in found]


def test_an_empty_chart_is_not_asked_for_plans_it_does_not_have() -> None:
    chart = Chart(a_basin(), (), Estimates(), Objective())
    assert chart.region([]) == ()
    assert value_of(RATE, chart.basin, with_figures(SEEN, chart.basin, {RATE: 1e-9})) > 0
    assert inf > value_of(SHARE, chart.basin, with_figures(SEEN, chart.basin, {SHARE: 0.0})) > 0


def test_a_chart_is_stale_when_a_figure_that_is_no_dimension_has_leapt() -> None:
    chart = Chart(a_basin(), (Dimension(RATE, Axis(1, 10_000, 4)),), SEEN, Objective())
    groups, rate = value_of(GROUPS, chart.basin, SEEN), value_of(RATE, chart.basin, SEEN)
    assert not chart.is_stale({}.get), "nothing is known that has changed"
    assert not chart.is_stale({GROUPS: groups}.get)
    assert not chart.is_stale({GROUPS: 3 * groups}.get)
    assert chart.is_stale({GROUPS: 5 * groups}.get)
    assert chart.is_stale({GROUPS: groups / 5}.get)
    assert not chart.is_stale({RATE: 100 * rate}.get), "it is a dimension"
