"""What a round is predicted to take: the same as a plan is, and the same whatever was predicted before."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import STREAM, TYPES, make_query
from support.join_looms import registered
from support.row_rounds import STREAMS
from windloom.model import Aggregate, Expression, Query, RowsWindow, TimeWindow
from windloom.optimizer.adapt.basins import Basin, basins_of
from windloom.optimizer.adapt.chart_figures import FigureKind, figures_of, value_of, with_figures
from windloom.optimizer.adapt.round_cost import SetCosts
from windloom.optimizer.cost.constants import shipped_constants
from windloom.optimizer.facts import PlanningFacts, with_statistics
from windloom.optimizer.plan_cost import estimate_plan
from windloom.optimizer.stages import PlanOptions
from windloom.statistics.estimates import Estimates
from windloom.statistics.set_statistics import Ongoing

SECOND = 1_000_000
KNOWN = PlanningFacts(shipped_constants(), ongoing=Ongoing(10.0))
MET = (
    "SELECT count(*) AS n FROM s [RANGE 8 seconds SLIDE 4 seconds] AS a JOIN t [RANGE 8 seconds] AS b ON a.k = b.k"
    " JOIN u [RANGE 8 seconds] AS c ON a.i = c.i"
)


def a_query(name: str, length: int, where: str | None = None, groups: tuple[str, ...] = ("k",)) -> Query:
    sums = [Aggregate("sum", Expression.of_column("x")), Aggregate("count")]
    return make_query(name, TimeWindow(length * SECOND, 10 * SECOND), sums, groups, where)


@cache
def grouped() -> Basin:
    counted = make_query("counted", RowsWindow(100, 10), [Aggregate("count")])
    asked = [a_query("short", 20), a_query("long", 300), a_query("some", 60, "b"), a_query("all", 40, None, ())]
    (found,) = basins_of({"s": STREAM}, [*asked, counted], TYPES, PlanOptions(), KNOWN)
    return found


@cache
def joined() -> Basin:
    registry = registered({"q": MET}, STREAMS)
    (found,) = basins_of(registry.streams, registry.queries.values(), registry.types(), PlanOptions(tuples=0), KNOWN)
    return found


@pytest.mark.parametrize("make", [grouped, joined])
def test_a_round_takes_what_its_plan_takes_in_the_time_of_a_round(make: Callable[[], Basin]) -> None:
    basin = make()
    plan = basin.plan(Estimates())
    cost, whole = basin.cost(plan), estimate_plan(plan, shipped_constants())
    assert cost.seconds == pytest.approx(10.0 * whole.total, rel=1e-9)
    assert cost.intake + cost.step == pytest.approx(10.0 * sum(each.shared for each in whole.sets), rel=1e-9)


@settings(deadline=None, max_examples=20)
@given(moved=st.lists(st.tuples(st.integers(0, 9), st.floats(0.1, 10.0)), min_size=1, max_size=6), joins=st.booleans())
def test_what_was_predicted_before_changes_no_prediction(moved: list[tuple[int, float]], joins: bool) -> None:
    basin = joined() if joins else grouped()
    figures, plan, known = figures_of(basin), basin.plan(Estimates()), SetCosts()
    for place, factor in moved:
        figure = figures[place % len(figures)]
        value = factor * value_of(figure, basin, Estimates())
        most = 1.0 if figure.kind is FigureKind.SHARE else float("inf")
        estimates = with_figures(Estimates(), basin, {figure: min(value, most)})
        shown = with_statistics(plan, basin.known.with_estimates(estimates))
        assert basin.cost(shown, known) == basin.cost(shown)
