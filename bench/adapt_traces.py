"""Fidelity on recorded packets (LBL-PKT-4, DEC-PKT-1): the share of rounds with the best plan for what they were."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from experiments.om import Trace, dec, lbl
from pyspark.sql import SparkSession

from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW
from windloom import Loom
from windloom.engine.streaming import Handle
from windloom.optimizer.adapt.work import AtOnce

#: A minute of the trace per round, an hour in all.
ROUNDS, SECONDS = 60, 60
#: Long windows that move by little, so that much depends on how they are answered.
SINGLE = {
    "pairs": "SELECT src, dst, count(*) AS n, avg(dst) AS a FROM packets [RANGE 20 minutes SLIDE 5 seconds]"
    " GROUP BY src, dst",
    "sources": "SELECT src, count(*) AS n, max(dst) AS d, avg(dst) AS a FROM packets [RANGE 30 minutes SLIDE 2 seconds]"
    " GROUP BY src",
    "short": "SELECT src, stddev(dst) AS d FROM packets [RANGE 3 minutes SLIDE 1 second] WHERE dst = 5 GROUP BY src",
    "all": "SELECT count(*) AS n, max(src) AS s FROM packets [RANGE 1 hour SLIDE 1 second]",
}
JOINED = {
    "met": "SELECT count(*) AS n FROM one [RANGE 5 minutes SLIDE 5 seconds] AS a JOIN two [RANGE 5 minutes] AS b"
    " ON a.dst = b.dst JOIN three [RANGE 5 minutes] AS c ON b.dst = c.dst",
    "by": "SELECT a.src, count(*) AS n FROM one [RANGE 5 minutes SLIDE 5 seconds] AS a JOIN three [RANGE 10 minutes]"
    " AS c ON a.dst = c.dst GROUP BY a.src",
    "one": "SELECT src, avg(dst) AS a, max(dst) AS m FROM one [RANGE 20 minutes SLIDE 2 seconds] GROUP BY src",
}


@contextmanager
def stored(streams: Mapping[str, Trace]) -> Iterator[Path]:
    """A file per stream and round."""
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as name:
        for stream, trace in streams.items():
            (Path(name) / stream).mkdir()
            edges = np.searchsorted(trace.seconds, np.arange(ROUNDS + 1) * SECONDS)
            for number in range(ROUNDS):
                part = trace.part(slice(int(edges[number]), int(edges[number + 1])))
                ticks = (part.seconds * 1e6).astype(np.int64)
                columns = {"ts": pa.array(ticks, pa.timestamp("us", "UTC")), "src": part.sources, "dst": part.hosts}
                path = Path(name) / stream / f"p{number:03d}.parquet"
                pq.write_table(pa.table(columns), path)
                os.utime(path, (1_700_000_000 + number,) * 2)
        yield Path(name)


def run_trace(spark: SparkSession, streams: Mapping[str, Trace], queries: Mapping[str, str]) -> Handle:
    """Every round is judged, whatever that costs."""
    loom = Loom(spark)
    with stored(streams) as folder, tempfile.TemporaryDirectory() as checkpoint:
        for name in streams:
            path = str(folder / name)
            frame = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
            loom.stream(name, frame.parquet(path), time="ts")
        for name, text in queries.items():
            loom.query(name, text)
        with patch("windloom.engine.streaming.start.Beside", AtOnce):
            handle = loom.start("memory", checkpoint=checkpoint, trigger=NOW, adapt={"parts": 10})
            handle.await_termination()
    return handle


def _outcome(name: str, bar: float, handles: Mapping[str, Handle]) -> Outcome:
    figures, notes = {}, []
    for trace, handle in handles.items():
        adapting, last = handle._loop.adapting, handle.recent_progress[-1]
        assert adapting is not None
        verdicts = adapting.adapter.verdicts
        figures[trace] = verdicts.hits / verdicts.judged
        notes.append(
            f"{trace}: {figures[trace]:.0%} (the very same plan {verdicts.same / verdicts.judged:.0%}),"
            f" {last.moves} moves, {last.switches} switches, {last.regret:.2f} s lost"
        )
    return Outcome(name, min(figures.values()), "share", bar, ">=", "; ".join(notes), {"fidelity": figures})


def fidelity_of_streams(repeats: int) -> Outcome:
    spark = session()
    traces = {"LBL-PKT-4": lbl(), "DEC-PKT-1": dec()}
    handles = {name: run_trace(spark, {"packets": trace}, SINGLE) for name, trace in traces.items()}
    return _outcome("fidelity, one stream, k = 10", 0.9, handles)


def fidelity_of_joins(repeats: int) -> Outcome:
    spark = session()
    handles = {}
    for name, trace in {"LBL-PKT-4": lbl(), "DEC-PKT-1": dec()}.items():
        parts = {stream: trace.part(trace.sources % 3 == i) for i, stream in enumerate(("one", "two", "three"))}
        handles[name] = run_trace(spark, parts, JOINED)
    return _outcome("fidelity, three-way join, k = 10", 0.95, handles)
