"""The step against the oracle: every strategy, slicing, technique and intake, whole and cut into rounds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import INTAKES, ROWS, STREAM, TYPES, aggregates, catalogs, make_query
from support.compare import assert_equal_answers, rows_of
from support.drawing import examples
from support.native import taken_of_plan
from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.families import ADD_FLOAT, Family
from windloom.kernels.techniques.registry import TECHNIQUES, allowed, permits
from windloom.model import Aggregate, Expression, ExpressionKey, Query, TimeWindow, Window
from windloom.model.aggregate import Property
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.rounds.lateness import LateCount, Lateness
from windloom.rounds.step import step
from windloom.slicing.slicings import SLICINGS
from windloom.state.state import State
from windloom.weave.round_input import RoundInput
from windloom_tools.oracle.answers import windows_of

Row = dict[str, Any]


def plan_of(
    queries: list[Query],
    strategy: str = "shared",
    slicing: str = "pairs",
    technique: str = "auto",
    intake: str = "woven",
) -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, PlanOptions(strategy, slicing, technique, intake), PlanningFacts())


@pytest.mark.parametrize("slicing", SLICINGS)
@pytest.mark.parametrize("strategy", ["no_share", "shared", "random", "weave_share"])
@settings(max_examples=examples(40), deadline=None)
@given(queries=catalogs(), rows=ROWS, intake=INTAKES)
def test_one_step_answers_what_the_oracle_answers(
    strategy: str, slicing: str, queries: list[Query], rows: list[Row], intake: str
) -> None:
    plan = plan_of(queries, strategy, slicing, intake=intake)
    _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)
    blocks = list(answers.blocks())
    for query in queries:
        assert_equal_answers(query, rows, rows_of(blocks, query))


def families(aggregate: Aggregate) -> list[Family]:
    argument = None if aggregate.argument is None else TYPES[ExpressionKey("s", aggregate.argument.sql)]
    return [PlannedComponent(component, argument).family for component in aggregate.components]


@pytest.mark.parametrize("technique", [name for name, known in TECHNIQUES.items() if known.needs != (Property.LISTS,)])
@pytest.mark.parametrize("slicing", SLICINGS)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data(), rows=ROWS, intake=INTAKES)
def test_every_technique_answers_what_its_properties_allow(
    slicing: str, technique: str, data: st.DataObject, rows: list[Row], intake: str
) -> None:
    permitted = aggregates().filter(
        lambda aggregate: all(permits(TECHNIQUES[technique], family) for family in families(aggregate))
    )
    chosen = data.draw(st.lists(permitted, min_size=1, max_size=2, unique=True))
    windows = data.draw(
        st.lists(
            st.builds(TimeWindow, st.integers(1, 30), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=4
        )
    )
    queries = [make_query(f"q{i}", window, chosen, ("k",)) for i, window in enumerate(windows)]
    plan = plan_of(queries, "shared", slicing, technique, intake)
    _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)
    blocks = list(answers.blocks())
    for query in queries:
        assert_equal_answers(query, rows, rows_of(blocks, query))


@pytest.mark.parametrize("slicing", SLICINGS)
@settings(max_examples=examples(40), deadline=None)
@given(queries=catalogs(3), rows=ROWS, cuts=st.lists(st.integers(0, 25), max_size=5), intake=INTAKES)
def test_any_cut_into_rounds_gives_the_rows_of_one_round(
    slicing: str, queries: list[Query], rows: list[Row], cuts: list[int], intake: str
) -> None:
    plan = plan_of(queries, "weave_share", slicing, intake=intake)
    ordered = sorted(rows, key=lambda row: row["tick"])
    bounds = [0, *sorted(cuts), len(ordered)]
    state, blocks = State(), []
    for first, last in pairwise(bounds):
        batch = ordered[first:last]
        # In order, so every tuple still to come is at or after the largest time seen: none is late.
        watermark = max((row["tick"] for row in ordered[:last]), default=state.closed_over(("s",)))
        state, answers, counts = step(state, RoundInput(taken_of_plan(plan, batch, state), {"s": watermark}), plan)
        blocks += list(answers.blocks())
        assert counts.late == Lateness()
    state, answers, _ = step(state, RoundInput(frontiers={"s": TICK_MAX}), plan)
    blocks += list(answers.blocks())
    assert all(len(cells) == 0 for cells in state.cells.values())
    for query in queries:
        assert_equal_answers(query, rows, rows_of(blocks, query))


@settings(max_examples=examples(60), deadline=None)
@given(
    windows=st.lists(
        st.builds(TimeWindow, st.integers(1, 24), st.integers(1, 16), st.integers(-9, 9)), min_size=1, max_size=3
    ),
    early=ROWS,
    late=ROWS,
    watermark=st.integers(-30, 60),
    intake=INTAKES,
)
def test_a_late_tuple_counts_in_its_open_windows_and_is_counted_exactly(
    windows: list[Window], early: list[Row], late: list[Row], watermark: int, intake: str
) -> None:
    queries = [
        make_query(f"q{i}", window, [Aggregate("count"), Aggregate("max", Expression.of_column("n"))], ("k",))
        for i, window in enumerate(windows)
    ]
    plan = plan_of(queries, intake=intake)
    state, first, _ = step(State(), RoundInput(taken_of_plan(plan, early), {"s": watermark}), plan)
    _, second, counts = step(state, RoundInput(taken_of_plan(plan, late, state), {"s": TICK_MAX}), plan)
    blocks = [*first.blocks(), *second.blocks()]
    for query in queries:
        span = query.window.range_ticks
        closed = [row for row in rows_of(blocks, query) if row["window_end"] <= watermark]
        open_ = [row for row in rows_of(blocks, query) if row["window_end"] > watermark]
        both = rows_of(_whole(plan, early), query)
        assert sorted(map(repr, closed)) == sorted(repr(row) for row in both if row["window_end"] <= watermark)
        everything = rows_of(_whole(plan, early + late), query)
        assert sorted(map(repr, open_)) == sorted(repr(row) for row in everything if row["window_end"] > watermark)
        assert span > 0
        assert counts.late.queries.get(query.name, LateCount()) == count_late([query], late, watermark)
    assert counts.late.streams.get("s", LateCount()) == count_late(queries, late, watermark)


def count_late(queries: list[Query], rows: list[Row], watermark: int) -> LateCount:
    found = LateCount()
    for row in rows:
        ends = [
            start + query.window.range_ticks for query in queries for start in windows_of(query.window, row["tick"])
        ]
        missed = sum(end <= watermark for end in ends)
        found += LateCount(int(0 < missed < len(ends)), int(0 < missed == len(ends)))
    return found


def _whole(plan: Plan, rows: list[Row]) -> list[Any]:
    return list(step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)[1].blocks())


@settings(max_examples=examples(30), deadline=None)
@given(queries=catalogs(3), rows=ROWS, limit=st.integers(1, 40), intake=INTAKES)
def test_the_size_of_blocks_does_not_change_the_rows(
    queries: list[Query], rows: list[Row], limit: int, intake: str
) -> None:
    plan = plan_of(queries, intake=intake)
    _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)
    for query in queries:
        small = rows_of(answers.blocks(limit), query)
        assert sorted(map(repr, small)) == sorted(map(repr, rows_of(answers.blocks(), query)))


@pytest.mark.parametrize("intake", ["woven", "native"])
def test_sums_are_right_after_huge_values_have_passed(intake: str) -> None:
    query = make_query(
        "q",
        TimeWindow(10, 1),
        [Aggregate("sum", Expression.of_column("x")), Aggregate("avg", Expression.of_column("x"))],
    )
    rows = [{"tick": t, "x": 1e15 if t % 40 == 0 else 0.1 * (t % 7)} for t in range(400)]
    rows[200]["x"] = 1e300
    rows[280]["x"] = float("inf")
    for technique in ("auto", *allowed(ADD_FLOAT)):
        plan = plan_of([query], technique=technique, intake=intake)
        _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)
        assert_equal_answers(query, rows, rows_of(list(answers.blocks()), query))
