"""Trees that follow queries as they come and go: always a partition, one that a plan can be built with again."""

from __future__ import annotations

import random

import pytest

from support.catalogs import STREAM, TYPES
from windloom.engine.live_queries import LiveTrees
from windloom.language.select import parse_query
from windloom.model.query import Query
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan

STREAMS = {STREAM.name: STREAM}


def a_query(name: str, rng: random.Random) -> Query:
    slide = rng.choice([2, 3, 5, 7, 10, 12, 30])
    window = f"[RANGE {slide * rng.randint(1, 8)} s SLIDE {slide} s]"
    where = rng.choice(["", "", "WHERE i > 3"])
    return parse_query(name, f"SELECT sum(i) AS s FROM s {window} {where}", STREAMS)


@pytest.mark.parametrize("strategy", ["auto", "weave_share"])
def test_queries_that_come_and_go_leave_trees_a_plan_can_be_built_with(strategy: str) -> None:
    rng = random.Random(5)
    options = PlanOptions(strategy, "pairs", "slick_deque")
    live = LiveTrees(STREAMS, options)
    queries = {f"q{i}": a_query(f"q{i}", rng) for i in range(6)}
    trees: list[list[str]] = []
    for number in range(40):
        trees = live.follow(trees, queries.values(), TYPES, PlanningFacts())
        assert sorted(name for tree in trees for name in tree) == sorted(queries)
        plan = make_plan(STREAMS, queries.values(), TYPES, options, PlanningFacts(), trees)
        assert {frozenset(query.name for query in tree.queries) for tree in plan.trees} == set(map(frozenset, trees))
        name = f"n{number}"
        if rng.random() < 0.4 and len(queries) > 2:
            queries.pop(rng.choice(list(queries)))
        elif rng.random() < 0.2:
            name = rng.choice(list(queries))
            trees = [[member for member in tree if member != name] for tree in trees]
            queries[name] = a_query(name, rng)
        else:
            queries[name] = a_query(name, rng)


def test_a_restart_goes_on_from_the_trees_that_were_recorded() -> None:
    rng = random.Random(9)
    options = PlanOptions("weave_share", "pairs", "recalculate")
    queries = {f"q{i}": a_query(f"q{i}", rng) for i in range(8)}
    recorded = LiveTrees(STREAMS, options).follow([], queries.values(), TYPES, PlanningFacts())
    assert {
        *map(frozenset, LiveTrees(STREAMS, options).follow(recorded, queries.values(), TYPES, PlanningFacts()))
    } == {*map(frozenset, recorded)}
