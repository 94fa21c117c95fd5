"""Windows of rows in rounds against their definition: any cut, disorder, late tuples, queries that come later."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import ROWS, STREAM, TYPES, aggregates, make_query
from support.compare import assert_equal_rows, rows_of
from support.drawing import examples
from support.native import taken_of_plan
from support.positions import full, take_rows, watermark_of
from support.rounds import in_order
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.state_codec import decode, encode
from windloom.model import Aggregate, Expression, Query, RowsWindow, TimeWindow, Window
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.rounds.lateness import LateCount, Lateness
from windloom.rounds.step import step
from windloom.slicing.slicings import SLICINGS
from windloom.state.frontiers import advanced
from windloom.state.plan_change import migrate
from windloom.state.state import State
from windloom.testing import answer
from windloom.weave.round_input import RoundInput, take_together
from windloom_tools.oracle.answers import positions

Row = dict[str, Any]
K, F = Expression.of_column("k"), Expression.of_column("f")

WINDOWS = st.one_of(
    st.builds(RowsWindow, st.integers(1, 9), st.integers(1, 6), st.integers(-4, 4)),
    st.builds(
        RowsWindow, st.integers(1, 5), st.integers(1, 4), st.integers(0, 3), st.sampled_from([(K,), (F,), (K, F)])
    ),
)


@st.composite
def catalogs(draw: st.DrawFn) -> list[Query]:
    """Windows of rows, and one of time beside them; grouped at least by what is counted by."""
    found = []
    for i, window in enumerate(draw(st.lists(WINDOWS, min_size=1, max_size=3))):
        keys = {str(expression.column) for expression in window.partition_by} | draw(
            st.sets(st.sampled_from(["k", "f"]))
        )
        chosen = draw(st.lists(aggregates(), min_size=1, max_size=2, unique=True))
        found.append(make_query(f"q{i}", window, chosen, tuple(sorted(keys)), draw(st.sampled_from([None, "b"]))))
    return [*found, make_query("time", TimeWindow(8, 4), [Aggregate("count")], ("k",))]


def plan_of(queries: Sequence[Query], slicing: str = "pairs") -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, PlanOptions("shared", slicing), PlanningFacts())


def one_round(state: State, plan: Plan, rows: Sequence[Row], watermark: int) -> tuple[State, list[Any], Any]:
    """A step through its log, and a state through its bytes: as after a crash."""
    frontiers = advanced(state.frontiers, {"s": watermark})
    counted, intake = take_rows(plan, {"s": rows}, state, frontiers)
    taken = take_together([taken_of_plan(plan, rows, state), counted])
    seen = {"s": max([row["tick"] for row in rows] + list(state.seen.values()))} if rows or state.seen else {}
    log = RoundLog(0, 0, RoundInput(taken, frontiers, seen, rows=intake))
    log = RoundLog.from_bytes("log", log.to_bytes())
    state, answers, counts = step(state, log.input, plan)
    again = decode(encode(state))
    assert encode(again) == encode(state)
    return again, list(answers.blocks()), counts


def assert_rows(query: Query, stream: Sequence[Row], actual: list[Row]) -> None:
    """What a query reports of a stream whose tuples have all been counted."""
    passing = [row for row in stream if query.where is None or row["b"] is True]
    wanted = answer(query, passing, stream=stream)
    places = (
        positions(query.window, stream) if query.window.is_of_positions else {id(row): row["tick"] for row in stream}
    )
    placed = [{**row, "tick": places[id(row)]} for row in passing]
    assert_equal_rows(query, placed, wanted, actual)


@settings(max_examples=examples(80), deadline=None)
@given(
    queries=catalogs(),
    rows=ROWS,
    delays=st.lists(st.integers(0, 12), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 25), max_size=6),
    slicing=st.sampled_from(sorted(SLICINGS)),
)
def test_any_cut_gives_the_rows_of_the_definition(
    queries: list[Query], rows: list[Row], delays: list[int], cuts: list[int], slicing: str
) -> None:
    plan, stream = plan_of(queries, slicing), [full(row) for row in in_order(rows, delays)]
    state, blocks = State(), []
    for first, last in pairwise([0, *sorted(cuts), len(stream)]):
        watermark = watermark_of(stream[:last], max(delays))
        state, made, counts = one_round(state, plan, stream[first:last], watermark)
        assert counts.late == Lateness()
        blocks += made
    state, made, _ = one_round(state, plan, [], TICK_MAX)
    for query in queries:
        assert_rows(query, stream, rows_of(blocks + made, query))
    assert all(len(cells) == 0 for cells in state.cells.values())
    assert state.positions.waiting["s"].num_rows == 0


@settings(max_examples=examples(80), deadline=None)
@given(queries=catalogs(), rounds=st.lists(st.tuples(ROWS, st.integers(0, 20)), min_size=1, max_size=4))
def test_a_tuple_behind_the_watermark_is_counted_as_late_and_has_no_position(
    queries: list[Query], rounds: list[tuple[list[Row], int]]
) -> None:
    plan = plan_of(queries)
    state, blocks, stream, dropped = State(), [], [], []
    arrived: list[Row] = []
    for rows, delay in rounds:
        rows = [full(row) for row in rows]
        arrived += rows
        stream += [row for row in rows if row["tick"] >= state.closed_over(("s",))]
        dropped.append([row for row in rows if row["tick"] < state.closed_over(("s",))])
        state, made, counts = one_round(state, plan, rows, watermark_of(arrived, delay))
        blocks += made
        for query in queries[:-1]:
            late = [row for row in dropped[-1] if query.where is None or row["b"] is True]
            assert counts.late.queries.get(query.name, LateCount()) == LateCount(0, len(late))
    _, made, _ = one_round(state, plan, [], TICK_MAX)
    for query in queries[:-1]:
        assert_rows(query, stream, rows_of(blocks + made, query))


@settings(max_examples=examples(60), deadline=None)
@given(
    window=WINDOWS,
    later=WINDOWS,
    where=st.sampled_from([None, "b"]),
    ticks=st.lists(st.integers(0, 3), min_size=4, max_size=40),
    added=st.integers(1, 5),
)
def test_a_query_that_comes_later_reports_windows_of_which_nothing_is_missing(
    window: Window, later: Window, where: str | None, ticks: list[int], added: int
) -> None:
    grouping = ("f", "k")
    first = make_query("first", window, [Aggregate("count")], grouping)
    second = make_query(
        "second", later, [Aggregate("count"), Aggregate("sum", Expression.of_column("i"))], grouping, where
    )
    stream: list[Row] = []
    for gap in ticks:
        tick = (stream[-1]["tick"] if stream else 0) + gap
        stream.append(full({"tick": tick, "k": "ab"[tick % 2], "f": 1.0, "i": len(stream), "b": gap < 2}))
    rounds = [stream[i : i + 5] for i in range(0, len(stream), 5)]
    state, blocks, old = State(), [], plan_of([first])
    plan = old
    counted_from, since = 0, None
    for number, rows in enumerate(rounds):
        if number == added:
            plan = plan_of([first, second])
            state = migrate(state, old, plan)
            since = state.since.get("second")
            shared = window.partition_by == later.partition_by
            counted_from = 0 if shared else max(row["tick"] for row in stream[: 5 * number]) + 1
        state, made, _ = one_round(state, plan, rows, watermark_of(stream[: 5 * number + len(rows)], 2))
        blocks += made
    _, made, _ = one_round(state, plan, [], TICK_MAX)
    assert_rows(first, stream, rows_of(blocks + made, first))
    if added < len(rounds):
        counted = [row for row in stream if row["tick"] >= counted_from]
        passing = [row for row in counted if where is None or row["b"]]
        wanted = answer(second, passing, stream=counted)
        wanted = [row for row in wanted if since is None or row["window_start"] >= since]
        found = rows_of(blocks + made, second)
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_the_state_of_windows_of_rows_does_not_grow_with_the_stream() -> None:
    chosen = [Aggregate("count"), Aggregate("max", Expression.of_column("x"))]
    queries = [
        make_query("all", RowsWindow(40, 7), chosen, ("k",)),
        make_query("own", RowsWindow(30, 10, 0, (K,)), chosen, ("k",)),
    ]
    plan, state, sizes = plan_of(queries), State(), []
    for number in range(60):
        rows = [full({"tick": 20 * number + i, "k": "abc"[i % 3], "x": float(i)}) for i in range(20)]
        state, _, _ = one_round(state, plan, rows, 20 * number + 10)
        sizes.append((sum(map(len, state.cells.values())), state.positions.nbytes))
    assert max(sizes[30:]) == max(sizes[5:30])
    assert isinstance(state.positions.waiting["s"], pa.Table)
