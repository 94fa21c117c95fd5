"""Answers of several queries in one table."""

from __future__ import annotations

import random

import pytest

from support.catalogs import STREAM, TYPES, make_query
from support.compare import assert_equal_answers, rows_of
from support.native import taken_of_plan
from windloom.model import Aggregate, Expression, LandmarkWindow, SessionWindow, TimeWindow, Window
from windloom.model.time import TICK_MAX
from windloom.model.windows.cumulate import CumulateWindow
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.rounds.step import step
from windloom.state.state import State
from windloom.weave.round_input import RoundInput


def test_functions_of_one_type_fill_one_column_whatever_they_compute_with() -> None:
    number = Expression.of_column("i")
    queries = [
        make_query(name, TimeWindow(10, 5), [Aggregate(name, number)], ("k",)) for name in ("bit_and", "max", "bit_xor")
    ]
    plan = make_plan({"s": STREAM}, queries, TYPES, PlanOptions("shared"), PlanningFacts())
    assert len(plan.shapes) == 1
    empty = {"f": 1.0, "x": None, "n": None, "d": None, "b": None}
    rows = [{"tick": tick, "k": "a", "i": i, **empty} for tick, i in ((1, 6), (2, 3), (7, None))]
    _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}), plan)
    blocks = list(answers.blocks())
    for query in queries:
        assert_equal_answers(query, rows, rows_of(blocks, query))


@pytest.mark.parametrize(
    "windows",
    [
        [TimeWindow(10, 5), TimeWindow(20, 5), TimeWindow(7, 3, 2)],
        [LandmarkWindow(4), LandmarkWindow(6), LandmarkWindow(4, 1)],
        [CumulateWindow(12, 3), CumulateWindow(12, 4)],
        [SessionWindow(3)],
    ],
)
@pytest.mark.parametrize("block_rows", [40, 1 << 20])
def test_queries_with_the_same_windows_answer_as_if_each_was_alone(windows: list[Window], block_rows: int) -> None:
    draw, number = random.Random(len(windows)), Expression.of_column("i")
    functions = ["sum", "max", "count", "avg", "count_distinct"]
    queries = []
    for i in range(24):
        chosen = [Aggregate(name, number) for name in draw.sample(functions, draw.choice([1, 1, 3]))]
        queries.append(make_query(f"q{i}", draw.choice(windows), chosen, draw.choice([("k",), ()])))
    plan = make_plan({"s": STREAM}, queries, TYPES, PlanOptions("shared"), PlanningFacts())
    empty = {"f": 1.0, "x": None, "n": None, "d": None, "b": None}
    rows = [
        {"tick": tick, "k": draw.choice(["a", "b", None]), "i": draw.choice([1, 2, 30, None]), **empty}
        for tick in sorted(draw.sample(range(120), 40))
    ]
    seen, first = ({"s": edge(row["tick"] for row in rows)} for edge in (max, min))
    _, answers, _ = step(State(), RoundInput(taken_of_plan(plan, rows), {"s": TICK_MAX}, seen, first), plan)
    blocks = list(answers.blocks(block_rows))
    for query in queries:
        assert_equal_answers(query, rows, rows_of(blocks, query))
    made = [block.table["k"].chunk(0).indices for block in blocks if "k" in block.table.column_names]
    assert len({column.buffers()[1].address for column in made}) < len(made), "queries share what they can"
