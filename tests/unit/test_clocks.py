"""The clocks of benches: by the processor's, waiting takes nothing."""

from __future__ import annotations

import time
from inspect import signature

from bench import clocks

from windloom.engine.loop import RoundLoop


def clock_of_rounds() -> object:
    return signature(RoundLoop).parameters["clock"].default


def test_rounds_read_the_clock_that_was_asked_for() -> None:
    usual = clock_of_rounds()
    with clocks.rounds_by("wall"):
        assert clock_of_rounds() is usual
    with clocks.rounds_by("processor"):
        assert clock_of_rounds() is not usual
        assert clocks.of_thread is time.thread_time
    assert clock_of_rounds() is usual is time.perf_counter


def test_waiting_takes_nothing_of_the_processor() -> None:
    clock = clocks.processor_clock()
    before = clock()
    time.sleep(0.5)
    waited = clock() - before
    sum(range(500_000))
    assert waited < 0.4
    assert clock() > before
