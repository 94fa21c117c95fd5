"""Approximate aggregates and frequent items: what is promised of them, whatever the plan and the rounds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.approximate import check_promise
from support.catalogs import ROWS, STREAM, TYPES, WINDOWS, make_query
from support.compare import rows_of
from support.drawing import examples
from support.native import taken_of_plan
from windloom.checkpoint.state_codec import decode, encode
from windloom.model import Aggregate, Expression, Query
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.rounds.step import step
from windloom.slicing.slicings import SLICINGS
from windloom.state.state import State
from windloom.weave.round_input import RoundInput
from windloom_tools.oracle.answers import windows_of

Row = dict[str, Any]


@st.composite
def approximate(draw: st.DrawFn) -> Aggregate:
    function = draw(st.sampled_from(["approx_count_distinct", "approx_quantile", "approx_top", "frequent"]))
    column = Expression.of_column(draw(st.sampled_from("xnid" if function == "approx_quantile" else "xnidbk")))
    match function:
        case "approx_quantile":
            return Aggregate(function, column, parameters=(draw(st.sampled_from([0, 0.3, 0.5, 1])),))
        case "approx_top" | "frequent":
            return Aggregate(function, column, parameters=(draw(st.integers(1, 3)),))
    return Aggregate(function, column)


@st.composite
def catalogs(draw: st.DrawFn) -> list[Query]:
    return [
        make_query(f"q{number}", draw(WINDOWS), draw(st.lists(approximate(), min_size=1, max_size=3)), ("k",))
        for number in range(draw(st.integers(1, 3)))
    ]


def answers_of(
    queries: list[Query], rows: list[Row], options: PlanOptions, cuts: list[int] | None = None
) -> dict[str, list[Row]]:
    plan = make_plan({"s": STREAM}, queries, TYPES, options, PlanningFacts())
    ordered = sorted(rows, key=lambda row: row["tick"])
    state, blocks = State(), []
    for first, last in pairwise([0, *sorted(cuts or []), len(ordered)]):
        watermark = max((row["tick"] for row in ordered[:last]), default=state.closed_over(("s",)))
        state, answers, _ = step(
            state, RoundInput(taken_of_plan(plan, ordered[first:last], state), {"s": watermark}), plan
        )
        blocks += list(answers.blocks())
        state = decode(encode(state))
    blocks += list(step(state, RoundInput(frontiers={"s": TICK_MAX}), plan)[1].blocks())
    found = {query.name: rows_of(blocks, query) for query in queries}
    return {name: sorted(rows, key=lambda row: (row["window_start"], str(row["k"]))) for name, rows in found.items()}


@pytest.mark.parametrize("slicing", SLICINGS)
@settings(max_examples=examples(40), deadline=None)
@given(queries=catalogs(), rows=ROWS, cuts=st.lists(st.integers(0, 25), max_size=4))
def test_answers_do_not_depend_on_plan_rounds_and_technique(
    slicing: str, queries: list[Query], rows: list[Row], cuts: list[int]
) -> None:
    expected = str(answers_of(queries, rows, PlanOptions("no_share")))
    assert str(answers_of(queries, rows, PlanOptions("shared", slicing), cuts)) == expected
    assert str(answers_of(queries, rows, PlanOptions("shared", slicing, "recalculate"))) == expected


@settings(max_examples=examples(60), deadline=None)
@given(queries=catalogs(), rows=ROWS)
def test_answers_keep_what_is_promised_of_them(queries: list[Query], rows: list[Row]) -> None:
    found = answers_of(queries, rows, PlanOptions("shared"))
    for query in queries:
        for row in found[query.name]:
            members = [member for member in rows if row["window_start"] in windows_of(query.window, member["tick"])]
            members = [member for member in members if member["k"] == row["k"]]
            for output in query.outputs:
                check_promise(
                    query.aggregates[output.aggregate or 0],
                    query.window,
                    members,
                    row["window_start"],
                    row[output.name],
                )
