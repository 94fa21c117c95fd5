"""Holistic aggregates: the step against the oracle, whole and cut into rounds, and techniques against recounting."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import ROWS, STREAM, TYPES, WINDOWS, aggregates, growing_catalogs, make_query
from support.compare import assert_equal_answers, rows_of
from support.drawing import examples
from support.native import taken_of_plan
from support.rounds import first_of
from windloom.checkpoint.state_codec import decode, encode
from windloom.model import Aggregate, Expression, Query
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.rounds.step import step
from windloom.slicing.slicings import SLICINGS
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

Row = dict[str, Any]


LISTED = ("collect_set", "collect_list")


@st.composite
def holistic(draw: st.DrawFn) -> Aggregate:
    function = draw(st.sampled_from(["count_distinct", "top", "quantile", "approx_percentile", "mode", *LISTED]))
    is_quantile = function in ("quantile", "approx_percentile")
    column = Expression.of_column(draw(st.sampled_from("xnid" if is_quantile else "xnidbk")))
    match function:
        case "top":
            return Aggregate(function, column, parameters=(draw(st.integers(1, 4)),))
        case "quantile" | "approx_percentile":
            return Aggregate(function, column, parameters=(draw(st.sampled_from([0, 0.25, 0.5, 0.9, 1])),))
    return Aggregate(function, column)


@st.composite
def catalogs(draw: st.DrawFn) -> list[Query]:
    """Several holistic aggregates and plain ones, of one query and of several."""
    queries = []
    for number in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(holistic(), min_size=1, max_size=3, unique=True))
        chosen += draw(st.lists(aggregates(), max_size=2, unique=True))
        grouping = draw(st.sampled_from([(), ("k",), ("f", "k")]))
        queries.append(make_query(f"q{number}", draw(WINDOWS), chosen, grouping, draw(st.sampled_from([None, "b"]))))
    return queries


def plan_of(queries: list[Query], strategy: str = "shared", slicing: str = "pairs", technique: str = "auto") -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, PlanOptions(strategy, slicing, technique), PlanningFacts())


def wanted(query: Query, rows: list[Row]) -> list[Row]:
    return rows if query.where is None else [row for row in rows if row["b"]]


@pytest.mark.parametrize("slicing", SLICINGS)
@pytest.mark.parametrize("strategy", ["no_share", "shared", "random"])
@settings(max_examples=examples(40), deadline=None)
@given(queries=catalogs(), rows=ROWS)
def test_one_step_answers_what_the_oracle_answers(
    strategy: str, slicing: str, queries: list[Query], rows: list[Row]
) -> None:
    plan = plan_of(queries, strategy, slicing)
    _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)
    blocks = list(answers.blocks())
    for query in queries:
        assert_equal_answers(query, wanted(query, rows), rows_of(blocks, query))


@settings(max_examples=examples(60), deadline=None)
@given(
    chosen=st.lists(holistic(), min_size=1, max_size=2), windows=st.lists(WINDOWS, min_size=1, max_size=5), rows=ROWS
)
def test_running_counts_are_recounted_ones(chosen: list[Aggregate], windows: list[Any], rows: list[Row]) -> None:
    queries = [make_query(f"q{i}", window, chosen, ("k",)) for i, window in enumerate(windows)]
    found = []
    for technique in ("running_counts", "recalculate"):
        plan = plan_of(queries, technique=technique)
        _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)
        found.append([block.table for block in answers.blocks(rows=7)])
    assert [str(table.to_pylist()) for table in found[0]] == [str(table.to_pylist()) for table in found[1]]


@pytest.mark.parametrize("slicing", SLICINGS)
@settings(max_examples=examples(40), deadline=None)
@given(queries=catalogs(), rows=ROWS, cuts=st.lists(st.integers(0, 25), max_size=5))
def test_any_cut_into_rounds_gives_the_rows_of_one_round(
    slicing: str, queries: list[Query], rows: list[Row], cuts: list[int]
) -> None:
    plan = plan_of(queries, "weave_share", slicing)
    ordered = sorted(rows, key=lambda row: row["tick"])
    state, blocks = State(), []
    for first, last in pairwise([0, *sorted(cuts), len(ordered)]):
        watermark = max((row["tick"] for row in ordered[:last]), default=state.closed_over(("s",)))
        state, answers, _ = step(
            state, RoundInput(taken_of_plan(plan, ordered[first:last], state), {"s": watermark}), plan
        )
        blocks += list(answers.blocks())
        state = decode(encode(state))
    _, answers, _ = step(state, RoundInput(frontiers={"s": TICK_MAX}), plan)
    blocks += list(answers.blocks())
    for query in queries:
        assert_equal_answers(query, wanted(query, rows), rows_of(blocks, query))


@settings(max_examples=examples(60), deadline=None)
@given(queries=growing_catalogs(holistic()), rows=ROWS, cuts=st.lists(st.integers(0, 25), max_size=4))
def test_landmark_windows_hold_every_value_since_the_landmark(
    queries: list[Query], rows: list[Row], cuts: list[int]
) -> None:
    plan = plan_of(queries)
    ordered = sorted(rows, key=lambda row: row["tick"])
    state, blocks = State(), []
    for first, last in pairwise([0, *sorted(cuts), len(ordered)]):
        batch = ordered[first:last]
        seen = {"s": max(row["tick"] for row in ordered[:last])} if ordered[:last] else {}
        watermark = seen.get("s", state.closed_over(("s",)))
        taken = taken_of_plan(plan, batch, state)
        state, answers, _ = step(state, RoundInput(taken, {"s": watermark}, seen=seen, first=first_of(batch)), plan)
        blocks += list(answers.blocks())
        state = decode(encode(state))
    blocks += list(step(state, RoundInput(frontiers={"s": TICK_MAX}), plan)[1].blocks())
    for query in queries:
        assert_equal_answers(query, rows, rows_of(blocks, query))
