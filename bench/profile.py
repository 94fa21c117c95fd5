"""`python -m bench profile NAME`: where the time of a workload goes, by stage, and how much of the cores is idle.

The workload runs as it always does; every run and every round in it is measured, and the median of the later half of
those with equally many queries is told. The processor worked for this process; what Spark's JVM worked meanwhile is
told beside it, in steps of its clock. On a machine with other work, cores that others use count as idle.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from bench.clocks import processor_clock
from windloom.answers.blocks import Stopwatch
from windloom.engine.loom import Loom
from windloom.engine.loop import CompletedRound, RoundLoop
from windloom.engine.results import DriverResults
from windloom.explain.analysis import MeasuredRun, stage_lines

#: Seconds of a stage: by the wall, and of the processor.
Stages = dict[str, tuple[float, float]]


class Recorder:
    """The stages of every round, by the number of its queries; what comes before a round and after it is added."""

    def __init__(self) -> None:
        self.rounds: dict[int, list[Stages]] = {}
        self._ahead: Stages = {}
        self._last: Stages = {}
        self._processor = processor_clock()

    def ran(self, loop: RoundLoop, run: Callable[[], CompletedRound]) -> CompletedRound:
        begun = self._processor() - time.process_time()
        done = run()
        spark = max(0.0, self._processor() - time.process_time() - begun)
        seconds = done.progress.seconds
        stages = {name: (seconds[name], done.processor.get(name, 0.0)) for name in seconds}
        self._last, self._ahead = {**self._ahead, **stages, "(Spark)": (0.0, spark)}, {}
        assert loop.plan is not None
        self.rounds.setdefault(sum(1 for _ in loop.plan.queries), []).append(self._last)
        return done

    def timed(self, stage: str, action: Callable[[], Any], *, ahead: bool = False) -> Any:
        watch = Stopwatch()
        with watch(stage):
            found = action()
        stages = self._ahead if ahead else self._last
        wall, worked = stages.get(stage, (0.0, 0.0))
        stages[stage] = wall + watch.seconds[stage], worked + watch.processor[stage]
        return found

    def lines(self) -> Iterator[str]:
        for queries, rounds in self.rounds.items():
            later = rounds[len(rounds) // 2 :]
            yield f"{queries:,} queries; medians of the last {len(later)} of {len(rounds)} runs or rounds"
            names = dict.fromkeys(name for each in later for name in each)
            seconds, processor = (
                {name: statistics.median(each.get(name, (0.0, 0.0))[i] for each in later) for name in names}
                for i in (0, 1)
            )
            measured = MeasuredRun(os.cpu_count() or 1, seconds, processor)
            yield from stage_lines(measured.stages, measured.all)


@contextmanager
def recorded() -> Iterator[Recorder]:
    """While the block runs, planning, rounds and finished answers of this process are measured."""
    recorder = Recorder()
    run, plan, arrow = RoundLoop.run, Loom._plan, DriverResults.arrow

    def measured_run(loop: RoundLoop, *given: Any, **options: Any) -> CompletedRound:
        return recorder.ran(loop, lambda: run(loop, *given, **options))

    def measured_plan(loom: Loom, *given: Any, **options: Any) -> Any:
        return recorder.timed("plan", lambda: plan(loom, *given, **options), ahead=True)

    def measured_arrow(results: DriverResults, name: str) -> Any:
        return recorder.timed("finish", lambda: arrow(results, name))

    with (
        patch.object(RoundLoop, "run", measured_run),
        patch.object(Loom, "_plan", measured_plan),
        patch.object(DriverResults, "arrow", measured_arrow),
    ):
        yield recorder


def profile(name: str, workload: Callable[[], object]) -> None:
    """Runs a workload and prints its stages."""
    with recorded() as recorder:
        workload()
    print(name)
    for line in recorder.lines():
        print(line)
    sys.stdout.flush()
