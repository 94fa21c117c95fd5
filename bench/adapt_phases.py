"""A stream whose rate and key space change by a hundred times, three times: adapting against plans that stay."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW
from windloom import Loom
from windloom.engine.handle import Handle
from windloom.optimizer.adapt.candidates import choices_of
from windloom.optimizer.adapt.chart_views import described
from windloom.sinks.memory import MemorySink
from windloom.statistics.estimates import Estimates

#: Seconds of event time of a round.
SECONDS = 10


@dataclass(frozen=True, slots=True)
class Phase:
    """So many rounds with a rate (per second) and a number of keys."""

    rate: int
    keys: int
    rounds: int = 8


#: Rate and keys change by a hundred times each, in either direction, three times.
PHASES = (Phase(100_000, 100), Phase(1_000, 10_000), Phase(100_000, 1_000_000), Phase(1_000, 10_000))
VALUES = "vwxy"
#: Four values of each tuple are asked for, twice each. While keys are few, Spark brings over a few partials of eight
#: fields instead of a million tuples of six columns, so a native intake is much faster; while keys are many, there
#: are as many partials as tuples, and they are wider, so a woven one is. So phases have unlike plans: the outcome has
#: what each plan took in each phase.
QUERIES = {
    "sums": f"SELECT k, {', '.join(f'sum({name}) AS s{name}' for name in VALUES)}"
    " FROM events [TUMBLE 10 seconds] GROUP BY k",
    "highs": f"SELECT k, {', '.join(f'max({name}) AS m{name}' for name in VALUES)}"
    " FROM events [RANGE 20 seconds SLIDE 10 seconds] GROUP BY k",
}


@contextmanager
def stored_phases() -> Iterator[Path]:
    """A file per round, in order of time."""
    rng, number = np.random.default_rng(3), 0
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as name:
        for phase in PHASES:
            for _ in range(phase.rounds):
                count, first = phase.rate * SECONDS, number * SECONDS * 1_000_000
                ticks = first + np.sort(rng.integers(0, SECONDS * 1_000_000, count))
                columns = {
                    "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
                    "k": rng.integers(0, phase.keys, count),
                    **{name: np.round(rng.lognormal(4, 1, count), 2) for name in VALUES},
                }
                path = Path(name) / f"p{number:03d}.parquet"
                pq.write_table(pa.table(columns), path)
                os.utime(path, (1_700_000_000 + number,) * 2)
                number += 1
        yield Path(name)


def _followed(spark: SparkSession, folder: Path, among: Path) -> DataFrame:
    """The files of a folder, a file per round; `among` holds files of the same columns."""
    schema = spark.read.parquet(str(among)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def learned_of(spark: SparkSession, folder: Path, phase: int) -> Estimates:
    """What a batch run over the first rounds of a phase learns of it."""
    first = sum(each.rounds for each in PHASES[:phase])
    # Of two rounds: within one slice no time passes by which a rate could be told.
    rounds = [str(folder / f"p{number:03d}.parquet") for number in (first, first + 1)]
    shown = _asked(spark, spark.read.parquet(*rounds))
    shown.run(placement="driver")
    return shown._learned.estimates


def plan_for(spark: SparkSession, folder: Path, learned: Estimates) -> str:
    """With which plan a stream starts that knows this; nothing comes."""
    with tempfile.TemporaryDirectory() as empty:
        return run_stream(spark, Path(empty), folder, learned)[2]


def run_phases(spark: SparkSession, folder: Path, learned: Estimates | None) -> tuple[list[float], int]:
    """Seconds of all rounds by phase, and how often plans were switched; what is `learned` makes a plan that stays."""
    seconds, switches, _ = run_stream(spark, folder, folder, learned)
    return _by_phase(seconds), switches


def run_stream(
    spark: SparkSession, folder: Path, among: Path, learned: Estimates | None
) -> tuple[list[float], int, str]:
    """Seconds of all rounds, how often plans were switched, and the last plan."""
    loom = _asked(spark, _followed(spark, folder, among))
    if learned is not None:
        loom._learned.estimates = learned
    with tempfile.TemporaryDirectory() as checkpoint:
        handle = loom.start("memory", checkpoint=checkpoint, trigger=NOW, adapt=learned is None)
        handle.await_termination()
    rounds = handle.recent_progress
    _drop_rows(handle)
    switches = rounds[-1].switches if rounds else 0
    return [progress.total_seconds for progress in rounds], switches, described(choices_of(handle.plan))


def _drop_rows(handle: Handle) -> None:
    """Spark's callback keeps a handle for as long as the session, and the handle a gigabyte of rows in memory."""
    for sink in handle._loop._sinks.values():
        assert isinstance(sink, MemorySink)
        sink._rounds.clear()


def _by_phase(rounds: Sequence[float]) -> list[float]:
    """The sums of the seconds of rounds; a round that finishes the stream belongs to the last phase."""
    edges = [0, *accumulate(phase.rounds for phase in PHASES[:-1]), len(rounds)]
    return [sum(rounds[begin:end]) for begin, end in pairwise(edges)]


def _asked(spark: SparkSession, events: DataFrame) -> Loom:
    loom = Loom(spark)
    loom.stream("events", events, time="ts")
    for name, text in QUERIES.items():
        loom.query(name, text)
    return loom


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of all rounds, by phase: of adapting, and of fixed plans by the phase they are for; and these plans."""

    adapting: Sequence[float]
    switches: int
    fixed: Mapping[int, Sequence[float]]
    plans: Mapping[int, str]

    def total(self, phase: int) -> float:
        """What the plan for a phase took."""
        return sum(self.fixed[phase])


def measured(repeats: int, phases: Sequence[int]) -> Measured:
    """All in turn, several times; the median of each counts, without the first time, which compiles.

    Of phases that have the same plan, the first one stands for all.
    """
    spark = session()
    adapting: list[list[float]] = []
    fixed: dict[int, list[list[float]]] = {}
    with stored_phases() as folder:
        learned = {phase: learned_of(spark, folder, phase) for phase in phases}
        plans = {phase: plan_for(spark, folder, learned[phase]) for phase in phases}
        distinct = {plan: phase for phase, plan in reversed(plans.items())}
        for _ in range(max(2, repeats // 2)):
            seconds, switches = run_phases(spark, folder, None)
            adapting.append(seconds)
            for phase in sorted(distinct.values()):
                fixed.setdefault(phase, []).append(run_phases(spark, folder, learned[phase])[0])
    medians = {phase: _median(times[1:]) for phase, times in fixed.items()}
    return Measured(_median(adapting[1:]), switches, medians, plans)


def _median(runs: Sequence[Sequence[float]]) -> Sequence[float]:
    """The run of the median total."""
    return sorted(runs, key=sum)[(len(runs) - 1) // 2]


def phases_against_best(repeats: int) -> Outcome:
    found = measured(repeats, range(len(PHASES)))
    best = min(found.fixed, key=found.total)
    return _outcome("adapting / the best fixed plan in hindsight", found, best, 1.1)


def phases_against_first(repeats: int) -> Outcome:
    return _outcome("adapting / the plan for the first phase", measured(repeats, [0]), 0, 0.7)


def _outcome(name: str, found: Measured, phase: int, bar: float) -> Outcome:
    adapting, fixed = found.adapting, found.fixed[phase]
    note = (
        f"{sum(adapting):.1f} s with {found.switches} switches (by phase {_told(adapting)}), {sum(fixed):.1f} s"
        f" ({_told(fixed)}) with the plan for phase {phase + 1} ({found.plans[phase]})"
    )
    details: dict[str, object] = {"adapting": adapting, "fixed": dict(found.fixed), "plans": dict(found.plans)}
    return Outcome(name, sum(adapting) / sum(fixed), "ratio", bar, "<=", note, details)


def _told(phases: Sequence[float]) -> str:
    return " + ".join(f"{seconds:.1f}" for seconds in phases)
