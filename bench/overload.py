"""Overload: tuples come twice as fast as rounds that answer everything could take; deadlines with a budget and without.

Files arrive by the clock, each with the events of one *period*. The period is half of what a plain round takes for one
file, measured before, so that plain rounds fall behind further and further. Windows are multiples of the period: a file
always means the same work. An answer counts as given when the sink has it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW
from windloom import Loom
from windloom.engine.handle import Handle
from windloom.sinks.registry import SINKS
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace

#: Events of a file, keys they have, and windows of a query that end per file.
EVENTS, KEYS, ENDS = 20_000, 2_000, 8
#: Files that arrive, those before any answer counts, and those by which the period is measured.
FILES, COLD, CALIBRATED = 32, 8, 14
#: Urgent queries want their answers within so many periods; there are so many of them, and of the others.
WITHIN, URGENT, OTHERS = 4, 4, 180
#: Where event time begins, about, in milliseconds.
BEGIN = 1_700_000_000_000
#: No period is shorter, in milliseconds.
LEAST_PERIOD = 300
MICROSECONDS = 1_000_000


@dataclass
class ClockedSink(Sink):
    """Notes when the windows of each query arrive, and keeps no row."""

    target: ClassVar[str | None] = None
    #: By query and end of a window, in microseconds: the time of the clock.
    arrived: ClassVar[dict[tuple[str, int], float]] = {}
    results: ClassVar[int] = 0

    @classmethod
    def open(cls, place: SinkPlace) -> ClockedSink:
        return cls()

    def write(self, round: int, answers: RoundAnswers) -> None:
        found: set[tuple[str, int]] = set()
        for _, rows in answers.rows():
            ClockedSink.results += rows.num_rows
            urgent = rows.filter(pc.starts_with(rows["query"], "urgent"))
            ends = urgent["window_end"].cast(pa.int64()).to_pylist()
            found.update(zip(urgent["query"].to_pylist(), ends, strict=True))
        now = time.time()
        for key in found:
            ClockedSink.arrived.setdefault(key, now)


@dataclass(frozen=True)
class Kept:
    """Windows of urgent queries that should have been answered, those that were, in time, and what it took."""

    wanted: int
    in_time: int
    worst: float  # seconds
    rounds: int
    results: int
    postponed: int  # windows, at the end

    @property
    def share(self) -> float:
        return self.in_time / self.wanted

    def told(self) -> str:
        return f"{self.share:.1%} of {self.wanted} in time, {self.worst:.1f} s at worst, {self.rounds} rounds"


def queries_of(period: int) -> dict[str, str]:
    """CQL by name, for a period in milliseconds."""
    found = {}
    for number in range(URGENT):
        text = f"SELECT k, count(*) AS n, max(v) AS m FROM events [RANGE {(number + 2) * period} ms"
        # Windows end in the middle of a file, so that they are closed when it comes.
        text += f" SLIDE {period} ms OFFSET {period // 2} ms] WHERE v > {90 + number} GROUP BY k"
        found[f"urgent_{number}"] = f"WITHIN {WITHIN * period} ms PRIORITY 1 AS {text}"
    slide = period // ENDS
    for number in range(OTHERS):
        text = f"SELECT k, sum(v) AS s, max(v) AS m, avg(v) AS a FROM events [RANGE {(8 + number) * slide} ms"
        found[f"other_{number}"] = f"{text} SLIDE {slide} ms] GROUP BY k"
    return found


def begin_of(period: int) -> int:
    """Where event time begins, in microseconds: at a multiple of the period, which is in milliseconds."""
    return BEGIN // period * period * 1000


def write_file(folder: Path, number: int, period: int) -> Path:
    """The events of one period, in order."""
    rng = np.random.default_rng(number)
    first = begin_of(period) + number * period * 1000
    columns = {
        "ts": pa.array(first + np.sort(rng.integers(0, period * 1000, EVENTS)), pa.timestamp("us", "UTC")),
        "k": rng.integers(0, KEYS, EVENTS),
        "v": rng.integers(0, 100, EVENTS),
    }
    path = folder / f"p{number:04d}.parquet"
    pq.write_table(pa.table(columns), path)
    os.utime(path, (BEGIN // 1000 + number,) * 2)
    return path


@dataclass
class Arrivals:
    """Moves files to where the stream sees them, one at the end of each period."""

    folder: Path
    files: list[Path]
    period: int
    begun: float = 0.0
    thread: threading.Thread = field(init=False)

    def start(self) -> None:
        self.begun = time.time()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        for number, file in enumerate(self.files):
            time.sleep(max(0.0, self.begun + (number + 1) * self.period / 1000 - time.time()))
            os.utime(file)
            shutil.move(str(file), str(self.folder / file.name))

    def lateness(self, end: int, arrived: float) -> float:
        """Seconds from when a window had ended to when its answer arrived."""
        return arrived - (self.begun + (end - begin_of(self.period)) / MICROSECONDS)


def start(spark: SparkSession, folder: Path, period: int, trigger: Mapping[str, object], budget: str | None) -> Handle:
    loom = Loom(spark)
    schema = "ts timestamp, k bigint, v bigint"
    reader = spark.readStream.schema(schema)
    if trigger == NOW:
        reader = reader.option("maxFilesPerTrigger", 1)
    loom.stream("events", reader.parquet(str(folder)), time="ts")
    for name, text in queries_of(period).items():
        loom.query(name, text)
    return loom.start("clocked", trigger=trigger, budget=budget)


def measured_period(spark: SparkSession) -> tuple[int, float]:
    """Half of what a plain round takes for one file, in milliseconds, and these seconds."""
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as name:
        for number in range(CALIBRATED):
            write_file(Path(name), number, 1000)
        handle = start(spark, Path(name), 1000, NOW, None)
        handle.await_termination()
    plain = statistics.median(progress.total_seconds for progress in handle.recent_progress[COLD:])
    return max(LEAST_PERIOD, int(500 * plain) // (2 * ENDS) * 2 * ENDS), plain


def run(spark: SparkSession, period: int, budget: str | None) -> Kept:
    """What becomes of urgent windows when a file comes every period."""
    ClockedSink.arrived.clear()
    ClockedSink.results = 0
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as name:
        made, seen = Path(name) / "made", Path(name) / "seen"
        made.mkdir()
        seen.mkdir()
        arrivals = Arrivals(seen, [write_file(made, number, period) for number in range(FILES)], period)
        handle = start(spark, seen, period, {"processingTime": "0 seconds"}, budget)
        arrivals.start()
        arrivals.thread.join()
        time.sleep((WITHIN + 1) * period / 1000)  # what comes later is late
        handle.stop()
        rounds = handle.recent_progress
    return counted(arrivals, dict(ClockedSink.arrived), len(rounds), sum(rounds[-1].postponed.values()))


def counted(arrivals: Arrivals, arrived: Mapping[tuple[str, int], float], rounds: int, postponed: int) -> Kept:
    """Of windows that end after the first files; one that never arrived is late."""
    period = arrivals.period * 1000
    ends = [begin_of(arrivals.period) + number * period + period // 2 for number in range(COLD, FILES)]
    late = [
        arrivals.lateness(end, arrived.get((f"urgent_{number}", end), time.time()))
        for number in range(URGENT)
        for end in ends
    ]
    limit = WITHIN * arrivals.period / 1000
    in_time = sum(seconds <= limit for seconds in late)
    return Kept(len(late), in_time, max(late), rounds, ClockedSink.results, postponed)


def overload(repeats: int) -> Outcome:
    """The share of priority-1 answers that arrive within their deadline, against rounds that answer all in order."""
    spark = session()
    with patch.dict(SINKS, {"clocked": "bench.overload:ClockedSink"}):
        measured_period(spark)  # compiles
        period, plain = measured_period(spark)
        fifo = run(spark, period, None)
        ours = run(spark, period, f"{period // 2} ms")
    note = (
        f"a file per {period / 1000:.2f} s, plain rounds take {plain:.2f} s; with a budget of {period / 2000:.2f} s"
        f" {ours.told()}; plain rounds {fifo.told()}"
    )
    details = {"fifo": fifo.__dict__, "budget": ours.__dict__, "period_ms": period, "plain_seconds": plain}
    return Outcome("overload: urgent answers in time", ours.share, "share", 0.99, ">=", note, details)


OVERLOAD_WORKLOADS: dict[str, Callable[[int], Outcome]] = {"overload": overload}
