"""Streams in rounds: disorder, lateness, and queries that come and go, against the rules by definition."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import INTAKES, ROWS, catalogs, make_query
from support.compare import assert_equal_answers
from support.drawing import examples
from support.round_streams import KINDS, check_rounds, check_states, drawn_rounds
from support.rounds import Round, in_order, renamed, run_rounds
from windloom.checkpoint.state_codec import encode
from windloom.model import Aggregate, Expression, Query, TimeWindow
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.optimizer.sharing.registry import STRATEGIES
from windloom.optimizer.stages import PlanOptions
from windloom.rounds.lateness import Lateness
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


@KINDS
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), options=OPTIONS)
def test_a_tuple_counts_in_every_window_that_is_open_when_it_comes(
    kinds: str, data: st.DataObject, options: PlanOptions
) -> None:
    rounds = data.draw(drawn_rounds(kinds, changes=False))
    run = run_rounds(rounds, options)
    check_rounds(rounds, run)
    check_states(run)


@KINDS
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), options=OPTIONS, history_ticks=st.sampled_from([0, 10, 1000]))
def test_queries_that_come_and_go_report_exact_windows_once_and_miss_none(
    kinds: str, data: st.DataObject, options: PlanOptions, history_ticks: int
) -> None:
    rounds = data.draw(drawn_rounds(kinds, changes=True))
    run = run_rounds(rounds, options, history_ticks)
    check_rounds(rounds, run)
    check_states(run)
    for life in run.lives:
        # Nothing of a window that starts behind all earlier tuples can be missing.
        earlier = [row["tick"] for round_ in rounds[: life.first] for row in round_.rows]
        if life.since is not None:
            assert earlier
            window = life.query.window
            assert life.since - (window.restart_ticks or window.slide_ticks) <= max(earlier)


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
