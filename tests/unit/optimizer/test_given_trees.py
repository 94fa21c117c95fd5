"""A plan built again from recorded trees."""

from __future__ import annotations

import pytest

from windloom.errors import WindloomError
from windloom.language.catalog import parse_catalog
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan

CATALOG = """
CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) TIME ts;
CREATE QUERY a AS SELECT sum(v) AS x FROM s [RANGE 16 seconds SLIDE 4 seconds];
CREATE QUERY b AS SELECT sum(v) AS x FROM s [RANGE 10 seconds SLIDE 5 seconds];
CREATE QUERY c AS SELECT sum(v) AS x FROM s [RANGE 8 seconds SLIDE 4 seconds];
CREATE QUERY d AS SELECT k, sum(v) AS x FROM s [RANGE 8 seconds SLIDE 4 seconds] GROUP BY k;
"""


def plan(trees: list[list[str]] | None = None, strategy: str = "weave_share") -> Plan:
    read = parse_catalog(CATALOG)
    streams = {declared.stream.name: declared.stream for declared in read.streams}
    queries = read.parse(streams)
    types = {
        q.key_of(expression): streams["s"].columns[expression.column]
        for q in queries
        for expression in q.expressions
        if expression.column
    }
    return make_plan(streams, queries, types, PlanOptions(strategy), PlanningFacts(), trees)


def names(made: Plan) -> list[list[str]]:
    return [[query.name for query in tree.queries] for tree in made.trees]


@pytest.mark.parametrize("strategy", ["no_share", "shared", "weave_share"])
def test_given_its_own_trees_a_plan_is_built_again_as_it_was(strategy: str) -> None:
    made = plan(strategy=strategy)
    assert plan(names(made)[::-1], strategy) == made


def test_given_trees_bypass_the_strategy() -> None:
    made = plan([["c", "b"], ["d"], ["a"]], "shared")
    assert sorted(sorted(tree) for tree in names(made)) == [["a"], ["b", "c"], ["d"]]


@pytest.mark.parametrize(
    ("trees", "complaint"),
    [
        ([["a", "b"], ["d"]], "miss 'c'"),
        ([["a", "b"], ["b", "c"], ["d"]], "'b', and it is in two"),
        ([["a", "b", "z"], ["c"], ["d"]], "'z', and there is no such query"),
        ([["a", "b"], ["c", "d"]], "cannot be planned\nthey differ"),
        ([["a", "b"], [], ["c"], ["d"]], "no queries"),
    ],
)
def test_given_trees_must_partition_every_set(trees: list[list[str]], complaint: str) -> None:
    with pytest.raises(WindloomError, match=complaint):
        plan(trees)
