"""Rounds whose state is kept in segments, in process: against the rules by definition, against tables, and crashed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import INTAKES, make_query
from support.drawing import examples
from support.durable import make_batches, reported, run_stream, small_segments
from support.micro_batches import CrashError, crash_after
from support.round_streams import KINDS, check_rounds, drawn_rounds
from support.rounds import Round, run_rounds
from windloom.checkpoint.state_codec import encode
from windloom.model import Aggregate, Expression, TimeWindow
from windloom.optimizer.stages import PlanOptions
from windloom.state.held import HeldSets
from windloom.state.segments import Segment
from windloom.state.state import State

ROUNDS = 12


@KINDS
@settings(max_examples=examples(60), deadline=None)
@given(
    data=st.data(),
    intake=INTAKES,
    history_ticks=st.sampled_from([0, 10, 1000]),
    read_again=st.sampled_from([1, 2]),
)
def test_queries_over_segments_report_exact_windows_and_the_past_that_they_keep_is_that_of_tables(
    kinds: str, data: st.DataObject, intake: str, history_ticks: int, read_again: int
) -> None:
    rounds = data.draw(drawn_rounds(kinds, changes=True))
    options = PlanOptions(intake=intake)
    with small_segments(read_again):
        run = run_rounds(rounds, options, history_ticks, State(HeldSets()))
    check_rounds(rounds, run)
    for own, other in zip(run.states, run_rounds(rounds, options, history_ticks).states, strict=True):
        assert (own.history, own.since, own.frontiers) == (other.history, other.since, other.frontiers)
        assert _kept(own) == _kept(other)


def _kept(state: State) -> dict[int, list[tuple[object, ...]]]:
    """The cells of each set as rows: group, slice, number of tuples."""
    found = {}
    for number, cells in state.cells.items():
        if len(cells):
            columns = [key.to_pylist() for key in cells.keys]
            group_of = np.repeat(np.arange(cells.groups), np.diff(cells.group_bounds))
            groups = [tuple(column[group] for column in columns) for group in group_of]
            found[number] = sorted(zip(groups, cells.starts.tolist(), cells.tuples.tolist(), strict=True), key=repr)
    return found


def test_a_round_that_closes_no_window_reads_no_cells_of_earlier_rounds() -> None:
    query = make_query(
        "q", TimeWindow(100, 50), [Aggregate("count"), Aggregate("sum", Expression.of_column("i"))], ("k",)
    )
    rounds = [
        Round([{"tick": 50 + number, "k": group, "i": 1, "b": True} for group in "abc"], 50 + number, {"q": query})
        for number in range(40)
    ]
    with small_segments():
        compacted = run_rounds(rounds, begun=State(HeldSets())).states[-1]
        with patch.multiple("windloom.state.held", COMPACTED_BYTES=0, COMPACTED_TIMES=0):
            run = run_rounds(rounds, begun=State(HeldSets()))
    assert len(_segments(compacted)) < len(rounds) // 2, "segments of one stretch are put together"
    # What earlier rounds have left is there as it was: the same arrays.
    *_, earlier, last = run.states
    held = {each.name: each.held for each in _segments(last)}
    assert all(held[each.name] is each.held for each in _segments(earlier))
    assert len(held) == len(_segments(earlier)) + 1


def _segments(state: State) -> list[Segment]:
    assert isinstance(state.cells, HeldSets)
    return [each for own in state.cells.segments.values() for each in own.segments]


@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 5), crashes=st.lists(st.integers(0, 60), min_size=1, max_size=6))
def test_crashes_of_a_stream_in_segments_change_no_answer_and_no_state(seed: int, crashes: list[int]) -> None:
    rounds = make_batches(seed, ROUNDS)
    with tempfile.TemporaryDirectory() as name:
        folder, tables, whole = Path(name, "crashed"), Path(name, "tables"), Path(name, "whole")
        run_stream(tables, rounds)
        with small_segments():
            for crash in crashes:
                try:
                    with crash_after(crash):
                        run_stream(folder, rounds)
                except CrashError:
                    pass
            state = run_stream(folder, rounds)
            assert encode(state) == encode(run_stream(whole, rounds))
        assert reported(folder) == reported(whole) == reported(tables)
