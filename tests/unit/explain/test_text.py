"""EXPLAIN as text: what it says of sharing, rates and estimates, and how it fits a terminal."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from golden.plans import FEW, MIXED, many_queries, plan_of, text_of
from windloom.errors import WindloomError
from windloom.explain.sharing import sharing
from windloom.model import Aggregate, DataType, Expression, Grouping, Output, Query, Stream, TimeWindow, WindowedStream
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.slicing.density import Density
from windloom.slicing.edges import EdgeClass, EdgeSet


def test_a_rate_nobody_gave_is_called_assumed() -> None:
    assert "rate of trades: 1,000 events/s (assumed)" in text_of(plan_of(FEW))
    assert "rate of trades: 250 events/s (given)" in text_of(plan_of(FEW, rates={"trades": 250.0}))


def test_every_line_fits_a_terminal() -> None:
    long = Expression("a_function_with_a_long_name(" + ", ".join(f"column_{i}" for i in range(40)) + ")")
    plan = _one_query_plan("a name\nwith breaks and " + "x" * 200, long)
    texts = [text_of(plan), text_of(plan, query=next(plan.queries).name)]
    for catalog, (strategy, slicing) in product((FEW, MIXED), _EVERY_CHOICE):
        texts.append(text_of(plan_of(catalog, strategy=strategy, slicing=slicing)))
    assert max(len(line) for text in texts for line in text.splitlines()) <= 110


_EVERY_CHOICE = list(product(("no_share", "shared", "weave_share"), ("panes", "pairs", "cutty")))


def test_control_characters_of_a_name_do_not_reach_the_terminal() -> None:
    plan = _one_query_plan("bell \x07 and colour \x1b[31m", Expression.of_column("x"))
    name = next(plan.queries).name
    for text in (text_of(plan), text_of(plan, query=name)):
        assert all(line.isprintable() for line in text.splitlines())


def test_many_queries_are_cut_short_and_all_are_shown_on_request() -> None:
    plan = plan_of(many_queries(40))
    names = {f"q{index:03}" for index in range(40)}
    short, full = text_of(plan), text_of(plan, all_queries=True)
    assert "… and 34 more (loom.explain(queries=True) shows all)" in short
    assert not names <= set(short.split())
    assert names <= set(full.split())


def test_many_trees_are_cut_short_and_all_are_shown_on_request() -> None:
    plan = plan_of(many_queries(40), strategy="no_share")
    assert "… and 28 more trees with 28 queries" in text_of(plan)
    assert "Tree 39: 1 query" in text_of(plan, all_queries=True)


def test_an_estimated_density_is_marked_wherever_it_is_used() -> None:
    plan = plan_of(FEW)
    edges = EdgeSet(plan.sets[0].edges.classes)
    edges.__dict__["density"] = Density(plan.sets[0].edges.density.value, exact=False)
    tree = replace(plan.sets[0].trees[0], edges=edges)
    estimated = replace(plan, sets=(replace(plan.sets[0], edges=edges, trees=(tree,)),))
    text = text_of(estimated)
    assert "slices        ≈ 0.0405 edges/s, mean length ≈ 24.7 seconds" in text
    assert "cost ≈ " in text
    assert "≈" not in text_of(plan)


def test_an_astronomic_composite_slide_is_said_in_years() -> None:
    primes = (10_007, 10_009, 10_037, 10_039, 10_061, 10_067, 10_069)
    plan = plan_of(FEW)
    edges = EdgeSet.of(EdgeClass(1_000_000 * prime) for prime in primes)
    text = text_of(replace(plan, sets=(replace(plan.sets[0], edges=edges),)))
    assert "astronomically late: the composite slide is about 10^21 years long" in text


def test_counts_of_sharing_are_those_of_other_queries() -> None:
    shared = sharing(plan_of(MIXED))["by_venue_997"]
    assert (shared.in_tree, shared.in_set, shared.same_window) == (2, 2, 0)
    by_name = {str(component.component): (component.in_tree, component.in_set) for component in shared.components}
    assert by_name == {"sum(volume)": (1, 1), "count(*)": (2, 2)}


def test_an_unknown_query_is_refused_with_near_names() -> None:
    with pytest.raises(WindloomError, match="no query 'avg_1'") as refused:
        text_of(plan_of(FEW), query="avg_1")
    assert refused.value.hint == "did you mean 'avg_1h'?"


def test_a_plan_without_queries_is_said_to_be_empty() -> None:
    empty = make_plan({}, [], {}, PlanOptions(), PlanningFacts())
    assert text_of(empty).startswith("Plan: 0 queries, 0 streams, 0 scans, 0 sets of partials, 0 trees\n")


def test_the_graph_is_drawn_from_streams_to_queries() -> None:
    assert _graph(plan_of(MIXED)) == [
        "trades → scan 0 → set 1 → tree 1.0 → 3 queries",
        "                → set 2 → tree 2.0 → 3 queries",
        "                → set 3 → tree 3.0 → big",
        "orders → scan 1 → set 0 → tree 0.0 → 2 queries",
    ]


def test_scans_and_sets_that_lead_nowhere_say_so() -> None:
    rows = "CREATE QUERY last_9 AS SELECT avg(price) AS p FROM trades [ROWS 9 SLIDE 3];"
    never = "CREATE QUERY never AS SELECT count(*) AS n FROM trades [TUMBLE 5 s] WHERE volume > 1 AND volume < 1;"
    assert _graph(plan_of(rows + never)) == [
        "trades → scan 0, which counts late tuples",
        "       → scan 1 → set 0 → tree 0.0 → last_9",
        "set 1, which no tuple can be part of → tree 1.0 → never",
    ]


def test_a_large_graph_is_cut_short() -> None:
    queries = (
        f"CREATE QUERY q{i} AS SELECT count(*) AS n FROM trades [TUMBLE 5 s] WHERE volume > {i};" for i in range(40)
    )
    plan = plan_of("".join(queries))
    assert len(_graph(plan)) == 17
    assert _graph(plan)[-1].startswith("… and 24 more lines")
    assert len(_graph(plan, all_queries=True)) == 40


def _graph(plan: Plan, **options: bool) -> list[str]:
    """The lines of the graph in EXPLAIN, without their indentation."""
    said = text_of(plan, **options).split("\nGraph\n")[1].split("\n\n")[0]
    return [line.removeprefix("  ") for line in said.splitlines()]


def _one_query_plan(name: str, argument: Expression) -> Plan:
    stream = Stream("s", {"x": DataType.parse("double"), "k": DataType.parse("string")}, "x")
    key = Expression.of_column("k")
    query = Query(
        name,
        WindowedStream("s", TimeWindow(10_000_000, 2_000_000)),
        None,
        (Grouping("k", key),),
        (Aggregate("sum", argument),),
        (Output("total", 0),),
        None,
        f"SELECT k, sum({argument}) AS total FROM s [RANGE 10 seconds SLIDE 2 seconds] GROUP BY k",
    )
    types = {key: DataType.parse("string"), argument: DataType.parse("double")}
    return make_plan(
        {"s": stream},
        [query],
        {query.key_of(expression): kind for expression, kind in types.items()},
        PlanOptions(),
        PlanningFacts(),
    )
