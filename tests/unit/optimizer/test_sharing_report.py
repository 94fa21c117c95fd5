"""EXPLAIN SHARING's figures: parts that add up, savings that are real, advice that holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from golden.plans import FEW, KINDS, MIXED, STREAMS, joined_plan, many_queries, plan_of, plan_of_queries
from windloom.language.catalog import parse_catalog
from windloom.model import TimeWindow
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.plan_cost import estimate_plan
from windloom.optimizer.sharing_report import report_sharing

SECOND = 1_000_000
ODD = """
CREATE QUERY five AS SELECT symbol, max(price) AS a FROM trades [RANGE 50 seconds SLIDE 5 seconds] GROUP BY symbol;
CREATE QUERY ten AS SELECT symbol, max(price) AS a FROM trades [RANGE 60 seconds SLIDE 10 seconds] GROUP BY symbol;
CREATE QUERY odd AS SELECT symbol, max(price) AS a FROM trades [RANGE 70 seconds SLIDE 7 seconds] GROUP BY symbol;
"""


@pytest.mark.parametrize("catalog", [FEW, MIXED, ODD, many_queries(40)])
@pytest.mark.parametrize("options", [{}, {"strategy": "no_share"}, {"slicing": "cutty"}, {"technique": "recalculate"}])
def test_the_parts_of_all_queries_add_up_to_the_whole(catalog: str, options: dict[str, str]) -> None:
    plan = plan_of(catalog, **options)
    report = report_sharing(plan, load_constants())
    assert sum(query.seconds for query in report.queries.values()) == pytest.approx(report.seconds.total)
    assert set(report.queries) == {planned.name for planned in plan.queries}
    assert all(query.seconds > 0 for query in report.queries.values())


def test_the_whole_is_the_prediction_of_the_plan() -> None:
    plan, constants = plan_of(MIXED), load_constants()
    assert report_sharing(plan, constants).seconds == estimate_plan(plan, constants)


def test_nobody_pays_more_than_alone_where_all_ask_the_same_and_share() -> None:
    report = report_sharing(plan_of(many_queries(40)), load_constants())
    assert all(query.saved > 0 for query in report.queries.values())


@pytest.mark.parametrize("intake", ["woven", "native"])
def test_of_a_scan_for_several_sets_each_pays_in_proportion_to_what_it_asks(intake: str) -> None:
    catalog = """
    CREATE QUERY few AS SELECT max(price) AS a FROM trades [TUMBLE 1 hour];
    CREATE QUERY many AS SELECT symbol, max(price) AS a FROM trades [RANGE 1 hour SLIDE 5 seconds] GROUP BY symbol;
    """
    plan = plan_of(catalog, intake=intake)
    assert len(plan.scans) == 1
    report = report_sharing(plan, load_constants())
    assert report.queries["few"].saved > 0
    assert report.queries["few"].seconds < report.queries["many"].seconds


def test_an_odd_slide_is_told_what_it_adds_and_which_slides_would_save() -> None:
    plan, constants = plan_of(ODD, rates={"trades": 1_000.0}), load_constants()
    report = report_sharing(plan, constants)
    found = report.queries["odd"]
    assert found.hindrance is not None
    assert found.hindrance[1] == SECOND
    assert found.added_edges_per_second == pytest.approx(1 / 7 - 1 / 35)
    assert {5 * SECOND, 10 * SECOND} >= {advice.slide_ticks for advice in found.advice} != set()
    assert report.queries["ten"].added_edges_per_second == 0, "five has all edges of ten"
    assert not report.queries["ten"].advice


def test_who_takes_the_advice_saves_what_was_said() -> None:
    read = parse_catalog(STREAMS + ODD)
    streams = {declared.stream.name: declared.stream for declared in read.streams}
    queries = read.parse(streams)
    constants = load_constants()
    before = plan_of_queries(streams, queries)
    report = report_sharing(before, constants)
    for advice in report.queries["odd"].advice:
        window = TimeWindow(round(70 * SECOND / advice.slide_ticks) * advice.slide_ticks, advice.slide_ticks)
        changed = tuple(
            replace(query, source=replace(query.source, window=window)) if query.name == "odd" else query
            for query in queries
        )
        after = estimate_plan(plan_of_queries(streams, changed), constants)
        assert report.seconds.total - after.total == pytest.approx(advice.saves, rel=0.15)


def test_trees_apart_are_compared_as_one() -> None:
    constants = load_constants()
    plan = plan_of(ODD, strategy="no_share")
    report = report_sharing(plan, constants)
    assert set(report.mergers) == {(0, 0), (0, 1), (0, 2)}
    assert all(len(each) == 2 for each in report.mergers.values())
    together = estimate_plan(plan_of(ODD, strategy="shared"), constants).total
    assert together < report.seconds.total, "so at least one merger must be said to save"
    assert any(merger.more < 0 for each in report.mergers.values() for merger in each)


@pytest.mark.parametrize("slicing", ["pairs", "cutty"])
@pytest.mark.parametrize(
    "asked",
    [
        "SELECT symbol, median(price) AS p FROM trades [ROWS 100 SLIDE 10] GROUP BY symbol",
        "SELECT symbol, median(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol",
        "SELECT symbol, sum(volume) AS v FROM trades [RANGE 50 seconds SLIDE 7 seconds] GROUP BY symbol",
        "SELECT max(price) AS p FROM trades [RANGE 1 hour SLIDE 1 second] WHERE volume > 3",
        "SELECT symbol, count(*) AS n FROM trades [SESSION GAP 1 minute] GROUP BY symbol",
        "SELECT symbol, sum(volume) AS v FROM trades [LANDMARK SLIDE 1 hour] GROUP BY symbol",
        "SELECT symbol, sum(volume) AS v FROM trades [CUMULATE 1 day SLIDE 1 minute] GROUP BY symbol",
    ],
)
def test_a_query_that_is_the_only_one_costs_what_it_costs_alone(asked: str, slicing: str) -> None:
    report = report_sharing(plan_of(f"CREATE QUERY q AS {asked};", slicing=slicing), load_constants())
    assert report.queries["q"].alone == pytest.approx(report.seconds.total)
    assert report.queries["q"].saved == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("intake", ["woven", "native"])
def test_alone_a_query_is_taken_in_as_was_asked_for(intake: str) -> None:
    catalog = "CREATE QUERY q AS SELECT symbol, max(price) AS p FROM trades [TUMBLE 1 hour] GROUP BY symbol;"
    report = report_sharing(plan_of(catalog, intake=intake), load_constants())
    assert report.queries["q"].alone == pytest.approx(report.seconds.total)


@pytest.mark.parametrize("fold", ["auto", "pairwise"])
def test_a_join_that_is_the_only_one_costs_what_it_costs_alone(fold: str) -> None:
    joined = """CREATE QUERY j AS SELECT o.customer, count(*) AS n FROM orders [RANGE 1 hour SLIDE 1 minute] o
    JOIN trades [RANGE 1 hour] t ON o.customer = t.symbol GROUP BY o.customer;
    """
    report = report_sharing(joined_plan(joined, fold=fold), load_constants())
    assert report.joins["j"].alone == pytest.approx(report.seconds.total)


@pytest.mark.parametrize("catalog", [MIXED, KINDS])
def test_alone_is_what_a_plan_for_the_query_alone_costs(catalog: str) -> None:
    report = report_sharing(plan_of(catalog), load_constants())
    for statement in catalog.split(";")[:-1]:
        name = statement.split("CREATE QUERY")[1].split()[0]
        lone = estimate_plan(plan_of(f"{statement};"), load_constants())
        assert report.queries[name].alone == pytest.approx(lone.total, rel=0.02), name
