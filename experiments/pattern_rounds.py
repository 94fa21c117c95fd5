"""The queries of source E, section 3.6, asked of Windloom: in rounds, into the sink `current`."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench.measure import cpu_seconds
from pyspark.sql import SparkSession

from experiments.pattern_plans import Links
from windloom import Loom

#: A multiple of every slide, so that windows end where units of time of the operators do.
_EPOCH = 1_767_600_000
NAMES = "abc"

TEXTS: Mapping[str, str] = {
    "join": "SELECT a.id AS l, b.id AS r FROM a {w} JOIN b {w} ON a.src = b.src WHERE a.ok AND b.ok EMIT CHANGES",
    "distinct": "SELECT DISTINCT src FROM a {w} EMIT CHANGES",
    "grouped": "SELECT src, count(*) AS n FROM a {w} GROUP BY src",
    "bags": "SELECT src FROM a {w} EXCEPT ALL SELECT src FROM b {w} EMIT CHANGES",
    "not_exists": "SELECT a.id AS l FROM a {w} WHERE NOT EXISTS (SELECT 1 FROM b {w} WHERE b.src = a.src) EMIT CHANGES",
    "negated_join": "SELECT a.id AS l, c.id AS r FROM a {w} JOIN c {w} ON a.src = c.src WHERE c.ok AND NOT EXISTS"
    " (SELECT 1 FROM b {w} WHERE b.src = a.src) EMIT CHANGES",
}
#: The columns that tell which rows are there, and the streams that are read.
_SHOWN = {
    "join": "lr",
    "distinct": ["src"],
    "grouped": ["src"],
    "bags": ["src"],
    "not_exists": "l",
    "negated_join": "lr",
}
_READ = {"join": "ab", "distinct": "a", "grouped": "a", "bags": "ab", "not_exists": "ab", "negated_join": "abc"}


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the rounds after the windows were full took, each: in seconds, rows reported and bytes written.

    `processor` is the time of the processors, Spark's JVM included.
    """

    seconds: float
    processor: float
    stages: Mapping[str, float]
    rows: float
    written: float
    tuples: int  # per round, of all streams that are read
    present: Counter[tuple[int, ...]]  # after the last round


def run_rounds(spark: SparkSession, name: str, links: Links, length: int, slide: int, rounds: int) -> Rounds:
    """Rounds bring a slide each, up to the last whole one and a unit; the last `rounds` of them are measured."""
    text = TEXTS[name].format(w=f"[RANGE {length} seconds SLIDE {slide} seconds]")
    read = _READ[name]
    with tempfile.TemporaryDirectory(prefix="windloom-rounds-") as folder:
        place = Path(folder)
        _store(place, links, slide, read)
        loom = Loom(spark)
        for stream in read:
            schema = spark.read.parquet(str(place / stream)).schema
            frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place / stream))
            loom.stream(stream, frame, time="ts", rate=1)
        loom.query("q", text)
        spent: list[float] = []
        handle = loom.start(
            "current",
            path=str(place / "now"),
            checkpoint=str(place / "kept"),
            trigger={"availableNow": True},
            progress=lambda _: spent.append(cpu_seconds()),
        )
        handle.await_termination()
        own = handle.spark_query.recentProgress
        seconds = [batch["durationMs"]["triggerExecution"] / 1000 for batch in own if batch["numInputRows"]][-rounds:]
        told = handle.recent_progress[-rounds:]
        rows = pq.read_table(place / "now" / "q", partitioning=None)
    columns = [rows[column].to_pylist() for column in _SHOWN[name]]
    stages = {stage for progress in told for stage in progress.seconds}
    return Rounds(
        fmean(seconds),
        (spent[-1] - spent[-rounds - 1]) / rounds,
        {stage: fmean(progress.seconds.get(stage, 0.0) for progress in told) for stage in stages},
        fmean(progress.results for progress in told),
        fmean(next(iter(progress.sinks.values())).get("bytes", 0.0) for progress in told),
        len(read) * slide,
        Counter(zip(*columns, strict=True)),
    )


def _store(place: Path, links: Links, slide: int, read: str) -> None:
    """A file per stream and round. Its last tuple is at the end of the window that it closes, and not in it."""
    for link, stream in enumerate(NAMES):
        if stream not in read:
            continue
        (place / stream).mkdir()
        for number, last in enumerate(range(slide, links.units, slide)):
            times = np.arange(last - slide + 1 if number else 0, last + 1)
            table = pa.table(
                {
                    "ts": pa.array((_EPOCH + times) * 1_000_000).view(pa.timestamp("us", tz="UTC")),
                    "id": times,
                    "src": links.value[link, times],
                    "ok": links.passes[link, times],
                }
            )
            file = place / stream / f"{number:06d}.parquet"
            pq.write_table(table, file)
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
