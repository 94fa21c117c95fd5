"""Workloads of plans that follow the data: what following costs a round, and how well rounds are predicted."""

from __future__ import annotations

import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import thread_time
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from bench import clocks
from bench.adapt_charts import drawing, planning
from bench.adapt_phases import phases_against_best, phases_against_first
from bench.adapt_traces import (
    fidelity_of_charts,
    fidelity_of_joins,
    fidelity_of_streams,
    learned_fidelity_of_streams,
)
from bench.bids import PER_FILE, UnlikeQuery, stored_bids, unlike_queries
from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW
from bench.unlike_streams import followed
from windloom import Loom
from windloom.engine.handle import Handle
from windloom.engine.progress import RoundProgress

#: Everything that a round does for statistics and plans to come, where it is called from.
FOLLOWING = (
    "windloom.weave.round_input.scanned_tuples",
    "windloom.weave.round_input.scanned_partials",
    "windloom.rounds.step.count_links",
    "windloom.engine.driver.observe",
    "windloom.engine.loop.to_json",
    "windloom.statistics.estimates.Memory.add",
    "windloom.engine.replanning.Adapting.begin",
    "windloom.engine.replanning.Adapting.told",
    "windloom.engine.replanning.Adapting.kept",
    "windloom.engine.replanning.Adapting.foresee",
    "windloom.engine.replanning.Adapting.done",
)
#: What is done beside rounds, in a thread of its own.
BESIDE = "windloom.optimizer.adapt.worker.BackgroundWorker._run"
#: Rounds of a steady stream, and how many of them are not counted: code is compiled, and a chart is drawn.
ROUNDS, COLD = 48, 16


@dataclass
class Spent:
    """Seconds of each round that went into some functions, and processor seconds of threads beside it."""

    here: float = 0.0
    beside: float = 0.0
    rounds: list[tuple[float, float]] = field(default_factory=list)

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            begun = clocks.of_thread()
            try:
                return function(*arguments, **named)
            finally:
                self.here += clocks.of_thread() - begun

        return run

    def timed_beside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            begun = thread_time()
            try:
                return function(*arguments)
            finally:
                self.beside += thread_time() - begun

        return run

    def mark(self, done: RoundProgress) -> None:
        """A round is over."""
        self.rounds.append((self.here, self.beside))
        self.here = self.beside = 0.0


@contextmanager
def watching() -> Iterator[Spent]:
    spent = Spent()
    with ExitStack() as scope:
        for name in FOLLOWING:
            place, _, function = name.rpartition(".")
            found = _resolve(place)
            scope.enter_context(patch.object(found, function, spent.timed(getattr(found, function))))
        place, _, function = BESIDE.rpartition(".")
        found = _resolve(place)
        scope.enter_context(patch.object(found, function, spent.timed_beside(getattr(found, function))))
        yield spent


def _resolve(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(import_module(module), attribute)


def steady_rounds(
    spark: SparkSession, folder: Path, queries: list[UnlikeQuery], done: Callable[[RoundProgress], None] | None = None
) -> Handle:
    """A stream of bids, a file per round, all rows kept in memory."""
    loom = Loom(spark)
    loom.stream("bids", followed(spark, folder), time="ts")
    for query in queries:
        loom.query(query.name, query.cql)
    ready = threading.Event()

    def told(progress: RoundProgress) -> None:
        ready.wait()
        if done is not None:
            done(progress)

    with tempfile.TemporaryDirectory() as checkpoint:
        handle = loom.start("memory", checkpoint=checkpoint, trigger=NOW, progress=told)
        ready.set()
        handle.await_termination()
    return handle


def overhead(repeats: int) -> Outcome:
    """The share of a round of 100,000 bids, 100 unlike queries, that goes into observing, looking up and reporting."""
    asked, spark = unlike_queries(100, False), session()
    with stored_bids(ROUNDS * PER_FILE, per_file=PER_FILE) as folder, watching() as spent:
        steady_rounds(spark, folder, asked)  # compiles
        spent.rounds.clear()
        handle = steady_rounds(spark, folder, asked, spent.mark)
    took = [progress.total_seconds for progress in handle.recent_progress][COLD:]
    here, beside = (statistics.fmean(seconds[i] for seconds in spent.rounds[COLD:]) for i in (0, 1))
    figure = (here + beside) / statistics.fmean(took)
    note = (
        f"{1e3 * here:.1f} ms in and {1e3 * beside:.1f} ms beside a round of {statistics.fmean(took):.3f} s,"
        f" after {COLD} rounds"
    )
    details = {"rounds": spent.rounds, "seconds": took}
    return Outcome("following the data / a round of 100 queries", figure, "ratio", 0.02, "<=", note, details)


def predicted(repeats: int) -> Outcome:
    """How far the seconds that are predicted of a round, before it begins, lie from those that it takes."""
    asked, spark = unlike_queries(100, True), session()
    with stored_bids(ROUNDS * PER_FILE, per_file=PER_FILE) as folder:
        handle = steady_rounds(spark, folder, asked)
    rounds = [progress for progress in handle.recent_progress[COLD:] if progress.predicted is not None]
    off = [abs((progress.predicted or 0.0) / progress.total_seconds - 1) for progress in rounds]
    adapter = handle._loop.adapting.adapter  # type: ignore[union-attr]
    alone = adapter._costs._entries[0][2].seconds
    taken = statistics.median(progress.total_seconds for progress in rounds)
    note = (
        f"median of {len(off)} rounds of {taken:.3f} s, of 100 mixed queries; constants alone predict {alone:.3f} s,"
        " the rest is learned from the rounds before"
    )
    pairs = [(progress.predicted, progress.total_seconds) for progress in rounds]
    figure = statistics.median(off)
    return Outcome("predicted / taken seconds of a round, off by", figure, "share", 0.15, "<=", note, {"pairs": pairs})


ADAPT_WORKLOADS: dict[str, Callable[[int], Outcome]] = {
    "adapt_overhead": overhead,
    "adapt_plan": planning,
    "adapt_chart": drawing,
    "adapt_best": phases_against_best,
    "adapt_first": phases_against_first,
    "adapt_fidelity": fidelity_of_streams,
    "adapt_fidelity_joins": fidelity_of_joins,
    "adapt_fidelity_charts": fidelity_of_charts,
    "adapt_fidelity_learned": learned_fidelity_of_streams,
    "adapt_predicted": predicted,
}
