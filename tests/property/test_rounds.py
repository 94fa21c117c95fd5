"""Streams in rounds: disorder, lateness, and queries that come and go, against the rules by definition."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import INTAKES, ROWS, catalogs, make_query
from support.compare import assert_equal_answers, assert_equal_rows
from support.drawing import examples
from support.rounds import Round, Run, changed_queries, count_late, expected_rows, in_order, renamed, run_rounds
from windloom.checkpoint.state_codec import decode, encode
from windloom.model import Aggregate, Expression, LandmarkWindow, Query, TimeWindow
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows.cumulate import CumulateWindow
from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.optimizer.stages import PlanOptions
from windloom.rounds.lateness import LateCount, Lateness
from windloom.slicing.slicings import SLICINGS

Row = dict[str, Any]
OPTIONS = st.builds(
    PlanOptions,
    st.sampled_from(sorted(STRATEGIES)),
    st.sampled_from(sorted(SLICINGS)),
    st.just("auto"),
    INTAKES,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    catalog=catalogs(3),
    rows=ROWS,
    delays=st.lists(st.integers(0, 12), min_size=1, max_size=7),
    cuts=st.lists(st.integers(0, 25), max_size=6),
    options=OPTIONS,
)
def test_disorder_within_the_delay_changes_no_row_however_the_stream_is_cut(
    catalog: list[Query], rows: list[Row], delays: list[int], cuts: list[int], options: PlanOptions
) -> None:
    arrived = in_order(rows, delays)
    running = {query.name: query for query in catalog}
    rounds, largest = [], TICK_MIN
    for first, last in pairwise([0, *sorted(cuts), len(arrived)]):
        batch = arrived[first:last]
        largest = max([largest, *(row["tick"] for row in batch)])
        rounds.append(Round(batch, largest - max(delays), running))
    run = run_rounds([*rounds, Round([], TICK_MAX, running)], options)
    for life in run.lives:
        assert_equal_answers(life.query, rows, [row for part in life.reported.values() for row in part])
    assert all(late == Lateness() for late in run.late)
    assert all(len(cells) == 0 for cells in run.states[-1].cells.values())


#: Few groupings and components, so that queries often share a set and differ in edges or components.
ASKED = [
    Aggregate("count"),
    Aggregate("sum", Expression.of_column("i")),
    Aggregate("min", Expression.of_column("k")),
    Aggregate("last", Expression.of_column("k")),
    Aggregate("count", where=Expression.of_column("b")),
    Aggregate("min_by", Expression.of_column("i"), Expression.of_column("k")),
]
WINDOWS = {
    "sliding or growing": [
        *(TimeWindow(*ticks) for ticks in [(4, 2), (8, 4), (6, 3), (12, 4), (5, 2), (9, 8, 1), (3, 6), (10, 1)]),
        *(LandmarkWindow(*ticks) for ticks in [(4,), (6, 1), (5,)]),
    ],
    "cumulating": [
        *(CumulateWindow(*ticks) for ticks in [(12, 4), (10, 2, 3), (18, 6, 7), (6, 3), (8, 1, 5), (5, 5, 1)]),
        TimeWindow(8, 4),
    ],
}
KINDS = pytest.mark.parametrize("kinds", list(WINDOWS))


def asking(kinds: str) -> st.SearchStrategy[Query]:
    return st.builds(
        lambda window, aggregate, grouping, where: make_query("q", window, [aggregate], grouping, where),
        st.sampled_from(WINDOWS[kinds]),
        st.sampled_from(ASKED),
        st.sampled_from([(), (), (), ("k",)]),
        st.sampled_from([None, None, None, "b"]),
    )


@st.composite
def streams(draw: st.DrawFn, kinds: str, changes: bool) -> list[Round]:
    """Rounds of tuples that come more or less in order, and, if wanted, queries that come, go and are replaced."""
    names, asked = ["a", "b", "c"], asking(kinds)
    running = {name: renamed(draw(asked), name) for name in names[: draw(st.integers(1, 3))]}
    rounds: list[Round] = []
    now, watermark = 0, TICK_MIN
    for _ in range(draw(st.integers(1, 8))):
        if changes and rounds and draw(st.booleans()):
            running = changed_queries(draw, running, names, asked)
        ticks = draw(st.lists(st.integers(-6, 10), max_size=12))
        rows = [{"tick": now + tick, "k": "abc"[tick % 3], "i": tick % 5, "b": tick % 4 > 0} for tick in ticks]
        now = max([now, *(row["tick"] for row in rows)])
        watermark = max(watermark, now - draw(st.integers(0, 8)))
        rounds.append(Round(rows, watermark, running))
    return rounds


@KINDS
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), options=OPTIONS)
def test_a_tuple_counts_in_every_window_that_is_open_when_it_comes(
    kinds: str, data: st.DataObject, options: PlanOptions
) -> None:
    rounds = data.draw(streams(kinds, changes=False))
    check(rounds, run_rounds(rounds, options))


@KINDS
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), options=OPTIONS, history_ticks=st.sampled_from([0, 10, 1000]))
def test_queries_that_come_and_go_report_exact_windows_once_and_miss_none(
    kinds: str, data: st.DataObject, options: PlanOptions, history_ticks: int
) -> None:
    rounds = data.draw(streams(kinds, changes=True))
    run = run_rounds(rounds, options, history_ticks)
    check(rounds, run)
    for life in run.lives:
        # Nothing of a window that starts behind all earlier tuples can be missing.
        earlier = [row["tick"] for round_ in rounds[: life.first] for row in round_.rows]
        if life.since is not None:
            assert earlier
            window = life.query.window
            assert life.since - (window.restart_ticks or window.slide_ticks) <= max(earlier)


def check(rounds: list[Round], run: Run) -> None:
    for life in run.lives:
        expected = expected_rows(rounds, life)
        for number, rows in expected.items():
            arrived = [row for round_ in rounds[: number + 1] for row in round_.rows]
            assert_equal_rows(life.query, arrived, rows, life.reported[number])
    for number in range(len(rounds)):
        alive = [life for life in run.lives if life.first <= number <= life.last]
        late = run.late[number]
        assert late.streams.get("s", LateCount()) == count_late(rounds, number, alive)
        for life in alive:
            assert late.queries.get(life.query.name, LateCount()) == count_late(rounds, number, [life])
        assert encode(decode(encode(run.states[number]))) == encode(run.states[number])


def test_a_thousand_rounds_of_churning_queries_leave_a_flat_state() -> None:
    least, most = (Aggregate(function, Expression.of_column("k")) for function in ("min", "max"))
    last = Aggregate("last", Expression.of_column("k"))
    staying = {
        "a": make_query("a", TimeWindow(30, 10), [least, last]),
        "b": make_query("b", TimeWindow(20, 10), [most], ("i",)),
    }
    coming = [make_query("q", TimeWindow(20 + 7 * i, 5 + 3 * i, i), [most], ((), ("i",))[i % 2]) for i in range(12)]
    rounds = []
    for number in range(1000, 2000):
        changing = {f"q{i}": renamed(coming[(number // 3 + i) % len(coming)], f"q{i}") for i in range(2)}
        # Every tuple has a value of its own, and groups come and go: neither may be remembered for ever.
        rows = [{"tick": 10 * number + i, "k": f"{number:04}-{i}", "i": number // 4} for i in range(5)]
        rounds.append(Round(rows, number * 10, staying | changing))
    run = run_rounds(rounds, history_ticks=200)
    sizes = [len(encode(state)) for state in run.states]
    assert max(sizes[600:]) <= 1.05 * max(sizes[200:600])
    assert max(state.nbytes for state in run.states[600:]) <= 1.05 * max(state.nbytes for state in run.states[200:600])
