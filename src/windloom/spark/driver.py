"""Final step on the driver: partials cross from the JVM once, as Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

from windloom.plan.physical import Plan
from windloom.rounds import Answers, RoundInput, State, step
from windloom.rounds.frontiers import all_closed
from windloom.rounds.step import StepCounts
from windloom.spark.partials import Partials, check_times


@dataclass(frozen=True, slots=True)
class DriverRun:
    answers: Answers
    counts: StepCounts
    seconds: Mapping[str, float]


def run_on_driver(plan: Plan, partials: Partials) -> DriverRun:
    """One Spark job, then one step with every frontier at +∞; the answers are made when their blocks are read."""
    begun = perf_counter()
    table = partials.frame.toArrow()
    collected = perf_counter()
    split = partials.split(table)
    check_times(plan, split)
    seen, first = partials.largest_ticks(table), partials.smallest_ticks(table)
    _, answers, counts = step(State(), RoundInput(split, all_closed(plan.streams), seen, first), plan)
    return DriverRun(answers, counts, {"partials": collected - begun, "merge": perf_counter() - collected})
