"""Holistic aggregates: exact COUNT(DISTINCT) over many overlapping windows against Spark's own, one query at a time."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.measure import Outcome, seconds
from bench.sessions import session
from windloom import Loom
from windloom.spark.verify.verify import time_spark_window

EVENTS, PER_SECOND = 4_000_000, 1_000
QUERIES = 100
#: Users that events are of; few of them are there all the time (the cube of a uniform share).
USERS = 20_000
SLIDES = (10, 12, 15, 20, 30, 60)


def distinct_windows(repeats: int, sampled: int = 3) -> Outcome:
    """All windows in one loom; Spark's `count(DISTINCT user)` over `window()` for a few of them, scaled to all."""
    spark = session()
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as folder:
        path = str(Path(folder) / "visits")
        share = f"(pmod(xxhash64(id), {1 << 20}) / {1 << 20}D)"
        spark.range(EVENTS, numPartitions=16).selectExpr(
            f"timestamp_micros(id * {1_000_000 // PER_SECOND}) AS ts", f"CAST({USERS} * pow({share}, 3) AS INT) AS user"
        ).write.parquet(path)
        visits = spark.read.parquet(path)
        loom = Loom(spark)
        loom.stream("visits", visits, time="ts", rate=PER_SECOND)
        for number in range(QUERIES):
            slide = SLIDES[number % len(SLIDES)]
            window = f"[RANGE {slide * (4 + number // 2)} seconds SLIDE {slide} seconds]"
            loom.query(f"q{number}", f"SELECT count(DISTINCT user) AS users FROM visits {window}")
        stats = loom.run().stats
        ours = min(seconds(loom.run) for _ in range(repeats))
        ordered = sorted(loom.queries.values(), key=lambda query: (query.window.overlap, query.name))
        chosen = [ordered[int((i + 0.5) * QUERIES / sampled)] for i in range(sampled)]
        streams, frames = loom.streams, {"visits": visits}
        took = {
            f"range/slide {chosen_query.window.overlap:g}": time_spark_window(chosen_query, streams, frames)
            for chosen_query in chosen
        }
    scaled = sum(took.values()) / sampled * QUERIES
    note = (
        f"scaled from {sampled} queries, one after the other: {scaled:,.0f} s against {ours:.2f} s; "
        f"{stats.results:,} results"
    )
    details = {"sample": took, "ours": ours, "partials": stats.partials}
    return Outcome("100 windows of COUNT(DISTINCT) / Spark's own", scaled / ours, "ratio", 20, ">=", note, details)


HOLISTIC = {"distinct_windows": distinct_windows}
