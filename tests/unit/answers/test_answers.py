"""Answers of several queries in one table."""

from __future__ import annotations

from support.catalogs import STREAM, TYPES, make_query
from support.compare import assert_equal_answers, rows_of
from support.native import taken_of_plan
from windloom.model import Aggregate, Expression, TimeWindow
from windloom.model.time import TICK_MAX
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
