"""EXPLAIN as text: what it says of sharing, rates and estimates, and how it fits a terminal."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from golden.plans import FEW, MIXED, many_queries, plan_of
from windloom.errors import WindloomError
from windloom.explain import explain_text
from windloom.explain.reasons import sharing
from windloom.model import Aggregate, DataType, Expression, Grouping, Output, Query, Stream, TimeWindow
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan import Plan
from windloom.slicing.density import Density
from windloom.slicing.edges import EdgeClass, EdgeSet


def test_a_rate_nobody_gave_is_called_assumed() -> None:
    assert "rate of trades: 1,000 events/s (assumed)" in explain_text(plan_of(FEW))
    assert "rate of trades: 250 events/s (given)" in explain_text(plan_of(FEW, rates={"trades": 250.0}))


def test_every_line_fits_a_terminal() -> None:
    long = Expression("a_function_with_a_long_name(" + ", ".join(f"column_{i}" for i in range(40)) + ")")
    plan = _one_query_plan("a name\nwith breaks and " + "x" * 200, long)
    texts = [explain_text(plan), explain_text(plan, query=next(plan.queries).name)]
    for catalog, (strategy, slicing) in product((FEW, MIXED), _EVERY_CHOICE):
        texts.append(explain_text(plan_of(catalog, strategy=strategy, slicing=slicing)))
    assert max(len(line) for text in texts for line in text.splitlines()) <= 110


_EVERY_CHOICE = list(product(("no_share", "shared", "weave_share"), ("panes", "pairs", "cutty")))


def test_control_characters_of_a_name_do_not_reach_the_terminal() -> None:
    plan = _one_query_plan("bell \x07 and colour \x1b[31m", Expression.of_column("x"))
    name = next(plan.queries).name
    for text in (explain_text(plan), explain_text(plan, query=name)):
        assert all(line.isprintable() for line in text.splitlines())


def test_many_queries_are_cut_short_and_all_are_shown_on_request() -> None:
    plan = plan_of(many_queries(40))
    names = {f"q{index:03}" for index in range(40)}
    short, full = explain_text(plan), explain_text(plan, all_queries=True)
    assert "… and 34 more (loom.explain(queries=True) shows all)" in short
    assert not names <= set(short.split())
    assert names <= set(full.split())


def test_many_trees_are_cut_short_and_all_are_shown_on_request() -> None:
    plan = plan_of(many_queries(40), strategy="no_share")
    assert "… and 28 more trees with 28 queries" in explain_text(plan)
    assert "Tree 39: 1 query" in explain_text(plan, all_queries=True)


def test_an_estimated_density_is_marked_wherever_it_is_used() -> None:
    plan = plan_of(FEW)
    edges = EdgeSet(plan.sets[0].edges.classes)
    edges.__dict__["density"] = Density(plan.sets[0].edges.density.value, exact=False)
    tree = replace(plan.sets[0].trees[0], edges=edges)
    estimated = replace(plan, sets=(replace(plan.sets[0], edges=edges, trees=(tree,)),))
    text = explain_text(estimated)
    assert "slices        ≈ 0.0405 edges/s, mean length ≈ 24.7 seconds" in text
    assert "cost ≈ " in text
    assert "≈" not in explain_text(plan)


def test_an_astronomic_composite_slide_is_said_in_years() -> None:
    primes = (10_007, 10_009, 10_037, 10_039, 10_061, 10_067, 10_069)
    plan = plan_of(FEW)
    edges = EdgeSet.of(EdgeClass(1_000_000 * prime) for prime in primes)
    text = explain_text(replace(plan, sets=(replace(plan.sets[0], edges=edges),)))
    assert "astronomically late: the composite slide is about 10^21 years long" in text


def test_counts_of_sharing_are_those_of_other_queries() -> None:
    shared = sharing(plan_of(MIXED))["by_venue_997"]
    assert (shared.in_tree, shared.in_set, shared.same_window) == (2, 2, 0)
    by_name = {str(one.component): (one.in_tree, one.in_set) for one in shared.components}
    assert by_name == {"sum(volume)": (1, 1), "count(*)": (2, 2)}


def test_an_unknown_query_is_refused_with_near_names() -> None:
    with pytest.raises(WindloomError, match="no query 'avg_1'") as refused:
        explain_text(plan_of(FEW), query="avg_1")
    assert refused.value.hint == "did you mean 'avg_1h'?"


def test_a_plan_without_queries_is_said_to_be_empty() -> None:
    empty = make_plan({}, [], {}, PlanOptions())
    assert explain_text(empty).startswith("Plan: 0 queries, 0 streams, 0 scans, 0 sets of partials, 0 trees\n")


def _one_query_plan(name: str, argument: Expression) -> Plan:
    stream = Stream("s", {"x": DataType.parse("double"), "k": DataType.parse("string")}, "x")
    key = Expression.of_column("k")
    query = Query(
        name,
        "s",
        TimeWindow(10_000_000, 2_000_000),
        None,
        (Grouping("k", key),),
        (Aggregate("sum", argument),),
        (Output("total", 0),),
        None,
        f"SELECT k, sum({argument}) AS total FROM s [RANGE 10 seconds SLIDE 2 seconds] GROUP BY k",
    )
    types = {("s", "k"): DataType.parse("string"), ("s", argument.sql): DataType.parse("double")}
    return make_plan({"s": stream}, [query], types, PlanOptions())
