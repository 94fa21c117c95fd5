"""Sessions in rounds against their definition: any cut, disorder, late tuples that bridge, queries that come later."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import ROWS, STREAM, TYPES, aggregates, make_query
from support.compare import assert_equal_rows, rows_of
from support.drawing import examples
from support.native import taken_of_plan, tuples_table
from support.rounds import in_order
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.state_codec import decode, encode
from windloom.errors import WindloomError
from windloom.kernels.families import ADD_INT
from windloom.kernels.techniques.registry import allowed
from windloom.model import Aggregate, Expression, Query, SessionWindow, TimeWindow
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.operator.parts import divide
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.rounds.lateness import LateCount
from windloom.rounds.questions import ask
from windloom.rounds.step import step
from windloom.slicing.slicings import SLICINGS
from windloom.state.plan_change import migrate
from windloom.state.state import State
from windloom.testing import answer
from windloom.weave.round_input import RoundInput, ScanResult

Row = dict[str, Any]

GAPS = st.integers(1, 9)
LISTS = [
    Aggregate("count_distinct", Expression.of_column("i")),
    Aggregate("quantile", Expression.of_column("i"), parameters=(0.5,)),
    Aggregate("top", Expression.of_column("i"), parameters=(2,)),
]
ASKED = st.lists(st.one_of(aggregates(), st.sampled_from(LISTS)), min_size=1, max_size=3, unique=True)


@st.composite
def catalogs(draw: st.DrawFn) -> list[Query]:
    """Sessions of a few gaps, groupings and predicates, and a window of time beside them."""
    found = []
    for i, gap in enumerate(draw(st.lists(GAPS, min_size=1, max_size=3))):
        grouping = draw(st.sampled_from([(), ("k",), ("f",), ("k", "f")]))
        found.append(make_query(f"q{i}", SessionWindow(gap), draw(ASKED), grouping, draw(st.sampled_from([None, "b"]))))
    return [*found, make_query("time", TimeWindow(8, 4), [Aggregate("count")], ("k",))]


def plan_of(queries: Sequence[Query], slicing: str = "pairs", technique: str = "auto") -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, PlanOptions("shared", slicing, technique), PlanningFacts())


def passing(query: Query, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if query.where is None or row["b"] is True]


def one_round(
    state: State, plan: Plan, rows: Sequence[Row], watermark: int, history_ticks: int = 0, as_tuples: bool = False
) -> tuple[State, list[Any], Any]:
    """A step through its log, of cells or of tuples, and a state through its bytes: as after a crash."""
    taken = taken_of_plan(plan, rows, state)
    tuples = {}
    if as_tuples:
        tuples = {scan.number: tuples_table(plan, scan, rows) for scan in plan.scans if isinstance(scan, WovenScan)}
        taken = ScanResult(behind=taken.behind)
    seen = {"s": max([row["tick"] for row in rows] + list(state.seen.values()))} if rows or state.seen else {}
    log = RoundLog(0, 0, RoundInput(taken, {"s": watermark}, seen), tuples=tuples)
    given = RoundLog.from_bytes("log", log.to_bytes()).complete(plan, state)
    state, answers, counts = step(state, given, plan, history_ticks=history_ticks)
    again = decode(encode(state))
    assert encode(again) == encode(state)
    return again, list(answers.blocks()), counts


class Definition:
    """Sessions of one query by their definition: tuples of open sessions, and up to where sessions are complete."""

    def __init__(self, query: Query) -> None:
        self.query, self.closed = query, TICK_MIN
        self.open: list[Row] = []

    def round(self, rows: Sequence[Row], watermark: int) -> tuple[list[Row], list[Row], int]:
        """What a round reports, the tuples of that, and how many tuples are late."""
        gap, wanted = self.query.window.range_ticks, passing(self.query, rows)
        in_time = [row for row in wanted if row["tick"] + gap >= self.closed]
        self.closed = max(self.closed, watermark)
        held = [*self.open, *in_time]
        reported = [row for row in answer(self.query, held) if row["window_end"] < self.closed]
        ended = [row for row in held if self._is_in(row, reported)]
        self.open = [row for row in held if not any(row is ended_row for ended_row in ended)]
        return reported, ended, len(wanted) - len(in_time)

    def _is_in(self, row: Row, reported: Sequence[Row]) -> bool:
        keys = [str(grouping.expression.column) for grouping in self.query.group_by]
        return any(
            session["window_start"] <= row["tick"] < session["window_end"]
            and all(repr(session[k]) == repr(row[k]) for k in keys)
            for session in reported
        )


@settings(max_examples=examples(80), deadline=None)
@given(queries=catalogs(), rows=ROWS, slicing=st.sampled_from(sorted(SLICINGS)))
def test_one_step_answers_what_the_oracle_answers(queries: list[Query], rows: list[Row], slicing: str) -> None:
    _, blocks, _ = one_round(State(), plan_of(queries, slicing), rows, TICK_MAX)
    for query in queries:
        own = passing(query, rows)
        assert_equal_rows(query, own, answer(query, own), rows_of(blocks, query))


@settings(max_examples=examples(80), deadline=None)
@given(
    queries=catalogs(),
    rows=ROWS,
    delays=st.lists(st.integers(0, 12), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 25), max_size=6),
    as_tuples=st.booleans(),
)
def test_any_cut_gives_the_sessions_of_a_batch(
    queries: list[Query], rows: list[Row], delays: list[int], cuts: list[int], as_tuples: bool
) -> None:
    plan, stream = plan_of(queries), in_order(rows, delays)
    state, blocks = State(), []
    for first, last in pairwise([0, *sorted(cuts), len(stream)]):
        watermark = max([row["tick"] for row in stream[:last]], default=TICK_MIN + 12) - max(delays)
        state, made, counts = one_round(state, plan, stream[first:last], watermark, as_tuples=as_tuples)
        assert not counts.late.queries
        blocks += made
    state, made, _ = one_round(state, plan, [], TICK_MAX)
    for query in queries:
        own = passing(query, stream)
        assert_equal_rows(query, own, answer(query, own), rows_of([*blocks, *made], query))
    assert not any(len(cells) for cells in state.cells.values())


ROUNDS = st.lists(st.tuples(ROWS, st.integers(-50, 90)), min_size=1, max_size=5)


@settings(max_examples=examples(120), deadline=None)
@given(queries=catalogs(), rounds=ROUNDS, history=st.sampled_from([0, 7, 1000]), as_tuples=st.booleans())
def test_late_tuples_bridge_open_sessions_and_no_complete_ones(
    queries: list[Query], rounds: list[tuple[list[Row], int]], history: int, as_tuples: bool
) -> None:
    plan, state = plan_of(queries), State()
    sessions = {query.name: Definition(query) for query in queries if query.name != "time"}
    for rows, watermark in [*rounds, ([], TICK_MAX)]:
        state, blocks, counts = one_round(state, plan, rows, watermark, history, as_tuples)
        for query in queries[:-1]:
            wanted, members, late = sessions[query.name].round(rows, watermark)
            assert_equal_rows(query, members, wanted, rows_of(blocks, query))
            assert counts.late.queries.get(query.name, LateCount()) == LateCount(0, late)


@settings(max_examples=examples(40), deadline=None)
@given(queries=catalogs(), rounds=ROUNDS, buckets=st.integers(1, 4))
def test_buckets_together_are_one_step(queries: list[Query], rounds: list[tuple[list[Row], int]], buckets: int) -> None:
    plan, whole = plan_of(queries), State()
    parts = [State() for _ in range(buckets)]
    for rows, watermark in rounds:
        taken = taken_of_plan(plan, rows, whole)
        divided = divide(taken.cells, plan, buckets)
        given = RoundInput(taken, {"s": watermark})
        blocks = []
        for bucket in range(buckets):
            own = divided.get(bucket, {})
            parts[bucket], answers, _ = step(parts[bucket], given.taking(ScanResult(own)), plan)
            blocks += list(answers.blocks())
        whole, answers, _ = step(whole, given, plan)
        for query in queries:
            wanted = rows_of(answers.blocks(), query)
            assert sorted(map(repr, rows_of(blocks, query))) == sorted(map(repr, wanted))


@settings(max_examples=examples(80), deadline=None)
@given(
    gap=GAPS,
    rounds=ROUNDS,
    added=st.integers(0, 4),
    history=st.sampled_from([0, 9, 1000]),
    shares=st.booleans(),
    asked=st.sampled_from([Aggregate("count"), Aggregate("sum", Expression.of_column("n"))]),
)
def test_a_query_that_comes_later_reports_complete_sessions_only(
    gap: int, rounds: list[tuple[list[Row], int]], added: int, history: int, shares: bool, asked: Aggregate
) -> None:
    running = make_query("a", SessionWindow(gap), [Aggregate("count")], ("k",) if shares else ())
    later = make_query("b", SessionWindow(gap), [asked], ("k",))
    plan, state = plan_of([running]), State()
    truth, found, wanted, members = Definition(later), [], [], []
    since: int | None = None
    for number, (rows, watermark) in enumerate([*rounds, ([], TICK_MAX)]):
        if number == added:
            plan, old = plan_of([running, later]), plan
            state = migrate(state, old, plan)
            since = state.since.get("b")
        state, blocks, _ = one_round(state, plan, rows, watermark, history)
        reported, ended, _ = truth.round(rows, watermark)
        members += ended
        found += rows_of(blocks, later) if number >= added else []
        wanted += reported
    # What was reported before it came, and is kept as history, it reports as well.
    complete = [row for row in wanted if since is None or row["window_start"] >= since]
    if added <= len(rounds):
        assert_equal_rows(later, members, complete, found)


def test_sessions_are_woven_and_the_native_intake_says_why_not() -> None:
    queries = [make_query("q", SessionWindow(10), [Aggregate("count")])]
    assert isinstance(plan_of(queries).scans[0], WovenScan)
    with pytest.raises(WindloomError, match="stream 's' cannot be taken in natively") as caught:
        make_plan({"s": STREAM}, queries, TYPES, PlanOptions(intake="native"), PlanningFacts())
    assert "query 'q' has session windows" in str(caught.value.detail)


def test_a_pause_of_exactly_the_gap_does_not_end_a_session() -> None:
    query = make_query("q", SessionWindow(10), [Aggregate("count")])
    rows = [{"tick": tick} for tick in (0, 10, 20, 31)]
    _, blocks, _ = one_round(State(), plan_of([query]), rows, TICK_MAX)
    assert rows_of(blocks, query) == [
        {"window_start": 0, "window_end": 30, "o0": 3},
        {"window_start": 31, "window_end": 41, "o0": 1},
    ]


def test_a_session_is_reported_when_the_frontier_has_passed_its_end() -> None:
    query = make_query("q", SessionWindow(10), [Aggregate("count")])
    plan = plan_of([query])
    state, blocks, _ = one_round(State(), plan, [{"tick": 0}], 10)
    assert rows_of(blocks, query) == []
    state, blocks, _ = one_round(state, plan, [{"tick": 10}], 20)
    assert rows_of(blocks, query) == []
    _, blocks, _ = one_round(state, plan, [], 21)
    assert rows_of(blocks, query) == [{"window_start": 0, "window_end": 20, "o0": 2}]


def test_a_question_is_answered_from_the_sessions_that_are_kept() -> None:
    query = make_query("q", SessionWindow(10), [Aggregate("count")])
    plan = plan_of([query])
    state, _, _ = one_round(State(), plan, [{"tick": tick} for tick in (0, 5, 30, 60)], 50, history_ticks=1000)
    answers, since = ask(state, plan, plan_of([make_query("ask", SessionWindow(10), [Aggregate("count")])]))
    (block,) = answers.blocks()
    assert since is None
    assert block.table.column("o0").to_pylist() == [2, 1]


def test_a_question_of_sessions_that_nobody_kept_is_refused() -> None:
    plan = plan_of([make_query("q", SessionWindow(10), [Aggregate("count")])])
    state, _, _ = one_round(State(), plan, [{"tick": tick} for tick in (0, 5, 30, 60)], 50)
    with pytest.raises(WindloomError, match="query 'ask' cannot be answered from what is kept"):
        ask(state, plan, plan_of([make_query("ask", SessionWindow(10), [Aggregate("count")])]))
    with pytest.raises(WindloomError, match="query 'ask' cannot be answered from what is kept"):
        ask(state, plan, plan_of([make_query("ask", SessionWindow(11), [Aggregate("count")])]))


@pytest.mark.parametrize("technique", sorted(allowed(ADD_INT)))
def test_every_technique_answers_a_session_from_its_one_cell(technique: str) -> None:
    asked = [Aggregate("count"), Aggregate("sum", Expression.of_column("i"))]
    query = make_query("q", SessionWindow(5), asked, ("k",))
    rows = [{"tick": (7 * i) % 101, "k": "ab"[i % 2], "i": i % 10} for i in range(60)]
    _, blocks, _ = one_round(State(), plan_of([query], technique=technique), rows, TICK_MAX)
    assert_equal_rows(query, rows, answer(query, rows), rows_of(blocks, query))
