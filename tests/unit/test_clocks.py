"""The clocks of benches: by the processor's, waiting takes nothing."""

from __future__ import annotations

import time

from bench.clocks import of_thread, processor_clock, rounds_by

from windloom.engine.running.placement import Stopwatch


def taken(clock: str) -> float:
    watch = Stopwatch()
    with rounds_by(clock), watch("stage"):
        time.sleep(0.2)
    return watch.seconds["stage"]


def test_rounds_that_wait_take_nothing_of_the_processor() -> None:
    assert taken("wall") >= 0.2
    assert taken("processor") < 0.15


def test_a_clock_goes_on() -> None:
    clock = processor_clock()
    before = clock()
    sum(range(200_000))
    assert clock() >= before
    assert of_thread() > 0
