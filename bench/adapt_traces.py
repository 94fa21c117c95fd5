"""Regret and fidelity on recorded packets (LBL-PKT-4, DEC-PKT-1): how good plans were for what rounds really were.

A hit is a round whose plan is the optimum, found afterwards with the statistics of that round and the same costs, as in
source B; fidelity is the share of hits. Plans whose utilities differ by a thousandth or less tie, and count as one:
plans often differ in a technique that takes a few microseconds more or less. Regret is by how much worse the plans of
all rounds were than the optima, in the objective.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from experiments.om import Trace, dec, lbl
from pyspark.sql import SparkSession

from bench.adapt_rivals import Rivals, clock_of_the_model, judging
from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW
from windloom import Loom
from windloom.engine.handle import Handle
from windloom.optimizer.adapt.worker import ImmediateWorker

#: The lengths of rounds, in seconds, over the hour of a trace: by the minute, and at times ten times as often.
#: Then other plans are best, on top of what changes with rates and keys.
LENGTHS = ([60] * 15 + [6] * 50) * 3
JOINED_LENGTHS = ([60] * 20 + [6] * 100) * 2
#: Plans are chosen for little time and little memory, with the weights of source B. Then it depends on what comes
#: whether tuples or partials are to be brought over.
OBJECTIVE = {"latency": 0.4, "memory": 0.6}
#: By trace: a slice of one holds about as many packets as a slice of the other.
SINGLE = {
    "LBL-PKT-4": {
        "all": "SELECT count(*) AS n, max(src) AS m FROM packets [RANGE 10 minutes SLIDE 5 seconds]",
        "served": "SELECT count(*) AS n, max(src) AS m FROM packets [RANGE 10 minutes SLIDE 20 seconds] WHERE dst = 5",
    },
    "DEC-PKT-1": {
        "all": "SELECT count(*) AS n, max(src) AS m FROM packets [RANGE 10 minutes SLIDE 200 ms]",
        "served": "SELECT count(*) AS n, max(src) AS m FROM packets [RANGE 10 minutes SLIDE 800 ms] WHERE dst = 5",
    },
}
JOINED = {
    trace: {
        "met": f"SELECT count(*) AS n FROM one [RANGE 3 minutes SLIDE {slide}] AS a JOIN two [RANGE 3 minutes] AS b"
        " ON a.dst = b.dst JOIN three [RANGE 3 minutes] AS c ON b.dst = c.dst"
        " WHERE a.dst < 20 AND b.dst < 20 AND c.dst < 20",
    }
    for trace, slide in {"LBL-PKT-4": "30 seconds", "DEC-PKT-1": "3 seconds"}.items()
}


@contextmanager
def stored(streams: Mapping[str, Trace], lengths: Sequence[int]) -> Iterator[Path]:
    """A file per stream and round."""
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as name:
        for stream, trace in streams.items():
            (Path(name) / stream).mkdir()
            edges = np.searchsorted(trace.seconds, np.cumsum([0, *lengths]))
            for number in range(len(lengths)):
                part = trace.part(slice(int(edges[number]), int(edges[number + 1])))
                ticks = (part.seconds * 1e6).astype(np.int64)
                columns = {"ts": pa.array(ticks, pa.timestamp("us", "UTC")), "src": part.sources, "dst": part.hosts}
                path = Path(name) / stream / f"p{number:03d}.parquet"
                pq.write_table(pa.table(columns), path)
                os.utime(path, (1_700_000_000 + number,) * 2)
        yield Path(name)


def run_trace(
    spark: SparkSession,
    streams: Mapping[str, Trace],
    queries: Mapping[str, str],
    lengths: Sequence[int],
    *,
    learned: bool = False,
    adapt: bool | Mapping[str, object] = True,
) -> tuple[Handle, Rivals]:
    """Every round is judged, whatever that costs; `learned` times rounds by a real clock, and learns from that."""
    loom = Loom(spark)
    with stored(streams, lengths) as folder, tempfile.TemporaryDirectory() as checkpoint:
        for name in streams:
            path = str(folder / name)
            frame = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
            rate = len(streams[name]) / sum(lengths)  # on average, as whoever asks would know it
            loom.stream(name, frame.parquet(path), time="ts", rate=rate)
        for name, text in queries.items():
            loom.query(name, text)
        clock = nullcontext() if learned else clock_of_the_model()
        with clock, patch("windloom.engine.start.BackgroundWorker", ImmediateWorker), judging() as rivals:
            handle = loom.start("memory", checkpoint=checkpoint, trigger=NOW, adapt=adapt, objective=OBJECTIVE)
            handle.await_termination()
    return handle, rivals


def _outcome(name: str, found: Mapping[str, tuple[Handle, Rivals]]) -> Outcome:
    figures, notes, fidelity, missed = {}, [], {}, {}
    for trace, (handle, rivals) in found.items():
        adapting, last = handle._loop.adapting, handle.recent_progress[-1]
        assert adapting is not None
        verdicts = adapting.adapter.verdicts
        figures[trace], missed[trace] = rivals.regret, rivals.missed
        fidelity[trace] = verdicts.same / verdicts.judged
        notes.append(
            f"{trace}: {figures[trace]:.2%}, fidelity {fidelity[trace]:.1%} of {verdicts.judged} rounds (within 3 % of"
            f" the optimum {verdicts.hits / verdicts.judged:.1%}, to the last technique"
            f" {rivals.exact / verdicts.judged:.0%}), {last.moves} moves, {last.switches} switches,"
            f" {rivals.lost:.2f} s lost of {rivals.seconds:.1f} s; {rivals.told()}"
        )
    details = {"regret": figures, "fidelity": fidelity, "missed": missed}
    return Outcome(name, max(figures.values()), "share", 0.02, "<=", "; ".join(notes), details)


def _traces() -> dict[str, Trace]:
    return {"LBL-PKT-4": lbl(), "DEC-PKT-1": dec()}


def fidelity_of_streams(repeats: int) -> Outcome:
    return _outcome("regret, one stream", _single(learned=False))


def learned_fidelity_of_streams(repeats: int) -> Outcome:
    return _outcome("regret, one stream, by this machine's clock", _single(learned=True))


def fidelity_of_joins(repeats: int) -> Outcome:
    return _outcome("regret, three-way join", _joined(True))


def fidelity_of_charts(repeats: int) -> Outcome:
    return _outcome("regret, three-way join, charts with k = 10", _joined({"parts": 10}))


def _single(*, learned: bool) -> dict[str, tuple[Handle, Rivals]]:
    spark = session()
    return {
        name: run_trace(spark, {"packets": trace}, SINGLE[name], LENGTHS, learned=learned)
        for name, trace in _traces().items()
    }


def _joined(adapt: bool | Mapping[str, object]) -> dict[str, tuple[Handle, Rivals]]:
    spark = session()
    found = {}
    for name, trace in _traces().items():
        parts = {stream: trace.part(trace.sources % 3 == i) for i, stream in enumerate(("one", "two", "three"))}
        found[name] = run_trace(spark, parts, JOINED[name], JOINED_LENGTHS, adapt=adapt)
    return found
