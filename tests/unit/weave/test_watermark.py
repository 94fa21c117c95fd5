"""What a round tells of time: frontiers by stream, and which streams are idle by the clock."""

from __future__ import annotations

from dataclasses import replace

from support.catalogs import STREAM
from support.micro_batches import ManualClock
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.state.state import State
from windloom.weave.round_input import RoundInput, Watermarks

STREAMS = {"s": replace(STREAM, name="s", delay_ticks=5), "t": replace(STREAM, name="t", delay_ticks=20)}


def test_a_frontier_is_the_largest_tick_of_its_stream_less_its_delay() -> None:
    told = Watermarks(STREAMS, ManualClock(), None).after(State(), {"s": 100, "t": 90}, {"s": 7, "t": 8})
    assert told == RoundInput(frontiers={"s": 95, "t": 70}, seen={"s": 100, "t": 90}, first={"s": 7, "t": 8})


def test_a_stream_that_brings_nothing_stays_where_it_was_and_others_go_on() -> None:
    watermarks = Watermarks(STREAMS, ManualClock(), None)
    state = State(frontiers={"s": 95, "t": 70}, seen={"s": 100, "t": 90})
    told = watermarks.after(state, {"t": 500}, {"t": 400})
    assert told.frontiers == {"s": 95, "t": 480}
    assert told.seen == {"s": 100, "t": 500}
    assert watermarks.after(State(), {"t": 500}, {"t": 400}).frontiers == {"t": 480}


def test_no_frontier_runs_backwards_whatever_a_round_brings() -> None:
    watermarks = Watermarks(STREAMS, ManualClock(), None)
    state = State(frontiers={"s": 95, "t": TICK_MAX}, seen={"s": 100, "t": 90})
    told = watermarks.after(state, {"s": 30, "t": 900}, {"s": 30, "t": 900})
    assert told.frontiers == {"s": 95, "t": TICK_MAX}
    assert told.seen == {"s": 100, "t": 900}
    assert watermarks.after(State(), {"t": TICK_MIN + 3}, {}).frontiers == {"t": TICK_MIN}


def test_the_end_closes_every_stream_whether_it_ever_brought_a_tuple_or_not() -> None:
    watermarks = Watermarks(STREAMS, ManualClock(), 1.0)
    everything = {"s": TICK_MAX, "t": TICK_MAX}
    assert watermarks.ended(State(seen={"s": 100}), {}, {}) == RoundInput(frontiers=everything, seen={"s": 100})
    told = watermarks.ended(State(seen={"s": 100}), {"s": 70, "t": 9}, {"s": 60, "t": 8})
    assert told == RoundInput(frontiers=everything, seen={"s": 100, "t": 9}, first={"s": 60, "t": 8})


def test_a_stream_is_idle_when_it_has_been_silent_for_long_enough() -> None:
    clock = ManualClock()
    watermarks = Watermarks(STREAMS, clock, 60.0)
    clock.now = 59.0
    assert watermarks.after(State(), {"s": 1}, {"s": 1}).idle == frozenset()
    clock.now = 60.0
    assert watermarks.after(State(), {"s": 2}, {"s": 2}).idle == {"t"}
    clock.now = 119.0
    assert watermarks.after(State(), {"t": 2}, {"t": 2}).idle == frozenset()
    clock.now = 500.0
    assert watermarks.after(State(), {}, {}).idle == {"s", "t"}


def test_without_idle_after_no_stream_is_ever_idle() -> None:
    clock = ManualClock()
    watermarks = Watermarks(STREAMS, clock, None)
    clock.now = 1e9
    assert watermarks.after(State(), {}, {}).idle == frozenset()
