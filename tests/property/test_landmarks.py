"""Landmark windows against their definition: every technique, any cut into rounds, and a state that does not grow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import INTAKES, ROWS, STREAM, TYPES, aggregates, growing_catalogs, make_query
from support.compare import assert_equal_answers, rows_of
from support.drawing import examples
from support.native import taken_of_plan
from support.rounds import first_of
from windloom.aggregates.registry import PlannedComponent
from windloom.answers.blocks import Block
from windloom.kernels.techniques.registry import TECHNIQUES, permits
from windloom.model import Aggregate, Expression, ExpressionKey, LandmarkWindow, Query, TimeWindow
from windloom.model.aggregate import Property
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.rounds.lateness import Lateness
from windloom.rounds.step import step
from windloom.slicing.slicings import SLICINGS
from windloom.state.state import State
from windloom.weave.round_input import RoundInput

Row = dict[str, Any]


def permitted(technique: str) -> st.SearchStrategy[Aggregate]:
    return aggregates().filter(
        lambda aggregate: all(permits(TECHNIQUES[technique], family) for family in _families(aggregate))
    )


def _families(aggregate: Aggregate) -> list[Any]:
    argument = None if aggregate.argument is None else TYPES[ExpressionKey("s", aggregate.argument.sql)]
    return [PlannedComponent(component, argument).family for component in aggregate.components]


def plan_of(
    queries: list[Query],
    strategy: str = "auto",
    slicing: str = "pairs",
    technique: str = "auto",
    intake: str = "auto",
) -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, PlanOptions(strategy, slicing, technique, intake), PlanningFacts())


def run(plan: Plan, rounds: list[list[Row]]) -> tuple[State, list[Block], list[State]]:
    """Tuples in order, so that none is late; the last round closes everything."""
    state, blocks, states = State(), [], []
    seen: dict[str, int] = {}
    for rows in rounds:
        seen = {"s": max([row["tick"] for row in rows], default=seen.get("s", 0))} if rows or seen else {}
        watermark = seen.get("s", state.closed_over(("s",)))
        state, answers, counts = step(
            state, RoundInput(taken_of_plan(plan, rows, state), {"s": watermark}, seen=seen, first=first_of(rows)), plan
        )
        assert counts.late == Lateness()
        blocks += list(answers.blocks())
        states.append(state)
    state, answers, _ = step(state, RoundInput(frontiers={"s": TICK_MAX}), plan)
    return state, blocks + list(answers.blocks()), states


@pytest.mark.parametrize("slicing", SLICINGS)
@pytest.mark.parametrize("strategy", ["no_share", "shared", "weave_share"])
@settings(max_examples=examples(30), deadline=None)
@given(queries=growing_catalogs(), rows=ROWS, intake=INTAKES)
def test_one_step_answers_what_the_oracle_answers(
    strategy: str, slicing: str, queries: list[Query], rows: list[Row], intake: str
) -> None:
    plan = plan_of(queries, strategy, slicing, intake=intake)
    seen = {"s": max(row["tick"] for row in rows)} if rows else {}
    _, answers, _ = step(
        State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}, seen=seen, first=first_of(rows)), plan
    )
    blocks = list(answers.blocks())
    for query in queries:
        assert_equal_answers(query, rows, rows_of(blocks, query))
        assert sorted(map(repr, rows_of(answers.blocks(3), query))) == sorted(map(repr, rows_of(blocks, query)))


@pytest.mark.parametrize("technique", [name for name, known in TECHNIQUES.items() if known.needs != (Property.LISTS,)])
@pytest.mark.parametrize("slicing", SLICINGS)
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data(), rows=ROWS, cuts=st.lists(st.integers(0, 25), max_size=4), intake=INTAKES)
def test_every_technique_and_every_cut_gives_the_same_rows(
    slicing: str, technique: str, data: st.DataObject, rows: list[Row], cuts: list[int], intake: str
) -> None:
    queries = data.draw(growing_catalogs(permitted(technique)))
    plan = plan_of(queries, "shared", slicing, technique, intake)
    ordered = sorted(rows, key=lambda row: row["tick"])
    bounds = [0, *sorted(cuts), len(ordered)]
    state, blocks, _ = run(plan, [ordered[first:last] for first, last in pairwise(bounds)])
    for query in queries:
        assert_equal_answers(query, rows, rows_of(blocks, query))
    assert all(len(cells) == 0 for cells in state.cells.values())


def test_a_landmark_is_before_the_first_tuple_of_the_stream_whether_it_passes_or_not() -> None:
    query = make_query("q", LandmarkWindow(10), [Aggregate("count")], where="b")
    plan = plan_of([query])
    rows = [{"tick": tick, "b": tick == 34} for tick in (7, 34, 58)]
    _, blocks, _ = run(plan, [rows[:1], rows[1:]])
    assert rows_of(blocks, query) == [{"window_start": 0, "window_end": end, "o0": 1} for end in (40, 50, 60)]


def test_the_state_of_landmark_windows_does_not_grow_with_the_stream() -> None:
    chosen = [
        Aggregate("count"),
        Aggregate("max", Expression.of_column("x")),
        Aggregate("avg", Expression.of_column("x")),
    ]
    queries = [
        make_query(f"q{i}", window, chosen, ("k",))
        for i, window in enumerate([LandmarkWindow(10), LandmarkWindow(7, 3), TimeWindow(40, 5)])
    ]
    plan = plan_of(queries)
    rounds = [[{"tick": 13 + 20 * n + i, "k": "abc"[i % 3], "x": float(n * i)} for i in range(20)] for n in range(200)]
    _, blocks, states = run(plan, rounds)
    sizes = [len(state.cells[0]) for state in states]
    assert max(sizes[100:]) == max(sizes[5:50])
    rows = [row for batch in rounds for row in batch]
    assert_equal_answers(queries[0], rows, rows_of(blocks, queries[0]))
