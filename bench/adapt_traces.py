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

from bench.adapt_rivals import Rivals, judging
from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW
from windloom import Loom
from windloom.engine.streaming import Handle
from windloom.optimizer.adapt.work import AtOnce

#: Half a minute of the trace per round, an hour in all.
ROUNDS, SECONDS = 120, 30
#: Plans are chosen for little time and little memory, as in source B; its weights. Then it depends on rate and keys
#: whether tuples or partials are brought over, and on these traces both change.
OBJECTIVE = {"latency": 0.4, "memory": 0.6}
#: By trace: slices hold about as many packets of a group in one as in the other.
SINGLE = {
    "LBL-PKT-4": {
        "hosts": "SELECT dst, count(*) AS n, max(src) AS m FROM packets [TUMBLE 30 seconds] GROUP BY dst",
    },
    "DEC-PKT-1": {
        "pairs": "SELECT src, dst, count(*) AS n FROM packets [TUMBLE 250 ms] GROUP BY src, dst",
    },
}
JOINED = {
    "LBL-PKT-4": {
        "met": "SELECT count(*) AS n FROM one [TUMBLE 30 seconds] AS a JOIN two [TUMBLE 30 seconds] AS b"
        " ON a.dst = b.dst JOIN three [TUMBLE 30 seconds] AS c ON b.dst = c.dst",
    },
    "DEC-PKT-1": {
        "met": "SELECT count(*) AS n FROM one [TUMBLE 1 second] AS a JOIN two [TUMBLE 1 second] AS b"
        " ON a.dst = b.dst JOIN three [TUMBLE 1 second] AS c ON b.dst = c.dst",
    },
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


def run_trace(spark: SparkSession, streams: Mapping[str, Trace], queries: Mapping[str, str]) -> tuple[Handle, Rivals]:
    """Every round is judged, whatever that costs."""
    loom = Loom(spark)
    with stored(streams) as folder, tempfile.TemporaryDirectory() as checkpoint:
        for name in streams:
            path = str(folder / name)
            frame = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
            loom.stream(name, frame.parquet(path), time="ts")
        for name, text in queries.items():
            loom.query(name, text)
        with patch("windloom.engine.streaming.start.Beside", AtOnce), judging() as rivals:
            handle = loom.start("memory", checkpoint=checkpoint, trigger=NOW, adapt={"parts": 10}, objective=OBJECTIVE)
            handle.await_termination()
    return handle, rivals


def _outcome(name: str, bar: float, found: Mapping[str, tuple[Handle, Rivals]]) -> Outcome:
    figures, notes, optima = {}, [], {}
    for trace, (handle, rivals) in found.items():
        adapting, last = handle._loop.adapting, handle.recent_progress[-1]
        assert adapting is not None
        verdicts = adapting.adapter.verdicts
        figures[trace], optima[trace] = verdicts.hits / verdicts.judged, rivals.distinct
        notes.append(
            f"{trace}: {figures[trace]:.0%} of {verdicts.judged} rounds (the very same plan"
            f" {verdicts.same / verdicts.judged:.0%}), {last.moves} moves, {last.switches} switches, {last.regret:.2f} s"
            f" lost of {rivals.seconds:.1f} s; {rivals.told()}"
        )
    details = {"fidelity": figures, "optima": optima}
    return Outcome(name, min(figures.values()), "share", bar, ">=", "; ".join(notes), details)


def _traces() -> dict[str, Trace]:
    return {"LBL-PKT-4": lbl(), "DEC-PKT-1": dec()}


def fidelity_of_streams(repeats: int) -> Outcome:
    spark = session()
    found = {name: run_trace(spark, {"packets": trace}, SINGLE[name]) for name, trace in _traces().items()}
    return _outcome("fidelity, one stream, k = 10", 0.9, found)


def fidelity_of_joins(repeats: int) -> Outcome:
    spark = session()
    found = {}
    for name, trace in _traces().items():
        parts = {stream: trace.part(trace.sources % 3 == i) for i, stream in enumerate(("one", "two", "three"))}
        found[name] = run_trace(spark, parts, JOINED[name])
    return _outcome("fidelity, three-way join, k = 10", 0.95, found)
