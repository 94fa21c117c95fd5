"""Workloads of unlike queries in a batch: many groupings, predicates, windows and aggregates over 1M bids.

Answers count once all of them are there as Arrow, HAVING and expressions over aggregates included.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from bench.bids import EVENTS, UnlikeQuery, stored_bids, unlike_loom, unlike_queries
from bench.clocks import processor_clock
from bench.measure import Outcome, in_fresh_process, paired, peak_resident_bytes, seconds
from bench.peers import DuckDBProcess, check_rows, check_values, spark_frame
from bench.sessions import session
from bench.unlike_streams import UNLIKE_STREAMS
from bench.workloads import against_tumbling
from windloom import Loom

MANY_EVENTS = 8 * EVENTS
MIB = 1 << 20


def row_counts(loom: Loom) -> dict[str, int]:
    """Run the loom and take all answers as Arrow; the counts keep none of them in memory."""
    results = loom.run()
    return {name: results.arrow(name).num_rows for name in results}


def against_duckdb(
    queries: int, mixed: bool, bar: float, repeats: int, *, events: int = EVENTS, compared: int = 10
) -> Outcome:
    """DuckDB answers the queries one by one; it must have as many rows of each, and of some the same values."""
    asked, spark = unlike_queries(queries, mixed), session()
    with stored_bids(events) as folder:
        loom, duck = unlike_loom(spark, folder, asked), DuckDBProcess(folder)
        results = loom.run()
        check_rows(asked, {answered: results.arrow(answered).num_rows for answered in results}, duck.row_counts(asked))
        for query in evenly(asked, compared):
            check_values(query, results.arrow(query.name), duck.arrow(query))
        rows = results.stats.results
        del results
        found = paired(lambda: duck.row_counts(asked), lambda: row_counts(loom), repeats, warm=1)
        duck.close()
    note = f"{found['our_seconds']:.2f} s against {found['base_seconds']:.2f} s; {rows:,} results before HAVING"
    name = f"{_kind(mixed)} {queries} / DuckDB, one by one"
    return Outcome(name, 1 / float(str(found["ratio"])), "ratio", bar, "<=", note, {**found, "results": rows})


def plain_30(repeats: int) -> Outcome:
    return against_duckdb(30, False, 0.7, repeats)


def plain_100(repeats: int) -> Outcome:
    return against_duckdb(100, False, 0.25, repeats)


def mixed_30(repeats: int) -> Outcome:
    return against_duckdb(30, True, 0.5, repeats)


def mixed_100(repeats: int) -> Outcome:
    return against_duckdb(100, True, 0.2, repeats)


def against_spark(repeats: int, *, queries: int = 100, events: int = EVENTS, sampled: int = 30) -> Outcome:
    """Spark's own SQL for some of the queries, from the narrowest overlap to the widest, scaled to all."""
    asked, spark = unlike_queries(queries, mixed=True), session()
    chosen = evenly(sorted(asked, key=lambda query: (query.length / query.slide, query.name)), sampled)
    with stored_bids(events) as folder:
        loom = unlike_loom(spark, folder, asked)
        results = loom.run()
        for query in chosen:  # compiles, too
            theirs = spark_frame(spark, folder, query).toArrow()
            check_rows([query], {query.name: results.arrow(query.name).num_rows}, {query.name: theirs.num_rows})
            check_values(query, results.arrow(query.name), theirs)
        del results
        row_counts(loom)
        ours = statistics.median(seconds(lambda: row_counts(loom)) for _ in range(repeats))
        took = {query.cql: seconds(partial(_thrown_away, spark_frame(spark, folder, query))) for query in chosen}
    scaled = sum(took.values()) / len(chosen) * queries
    note = f"scaled from {len(chosen)} queries, one after the other: {ours:.2f} s against {scaled:,.0f} s"
    return Outcome(f"mixed {queries} / Spark's own SQL", ours / scaled, "ratio", 0.01, "<=", note, {"sample": took})


def thousand(repeats: int, *, queries: int = 100, events: int = EVENTS) -> Outcome:
    """Ten times the queries have about ten times the rows."""
    spark = session()
    with stored_bids(events) as folder:
        few, many = (unlike_loom(spark, folder, unlike_queries(n, mixed=False)) for n in (queries, 10 * queries))
        rows = [sum(row_counts(loom).values()) for loom in (few, many)]
        found = paired(lambda: row_counts(many), lambda: row_counts(few), repeats, warm=1)
    note = f"{found['base_seconds']:.2f} s and {rows[1]:,} rows against {found['our_seconds']:.2f} s and {rows[0]:,}"
    name = f"plain {10 * queries:,} / plain {queries}"
    return Outcome(name, float(str(found["ratio"])), "ratio", 3, "<=", note, {**found, "rows": rows})


def first_run(repeats: int, *, queries: int = 100, events: int = EVENTS) -> Outcome:
    """The first run of a process against its later ones, in processes of their own.

    One process more goes before them: after an update or on a new machine it compiles the kernels to files.
    """
    with stored_bids(events) as folder:
        runs = [in_fresh_process(first_and_warm, folder, queries, repeats) for _ in range(max(2, repeats // 2) + 1)][1:]
    first, warm, registering = (statistics.median(column) for column in zip(*runs, strict=True))
    figure = statistics.median(cold / warmed for cold, warmed, _ in runs)
    note = f"{first:.1f} s against {warm:.2f} s in {len(runs)} processes; registering the queries {registering:.1f} s"
    details: dict[str, object] = {"runs": [list(run) for run in runs]}
    return Outcome(f"plain {queries}, first run / warm", figure, "ratio", 5, "<=", note, details)


def first_and_warm(folder: Path, queries: int, repeats: int) -> tuple[float, float, float]:
    """Seconds of the first run and of a warm one, and of registering the queries; the session is up before."""
    spark = session()
    made: list[Loom] = []
    registering = seconds(lambda: made.append(unlike_loom(spark, folder, unlike_queries(queries, mixed=False))))
    first, *warm = (seconds(lambda: row_counts(made[0])) for _ in range(repeats + 2))
    return first, statistics.median(warm[1:]), registering


def many_events(repeats: int, *, queries: int = 100, events: int = MANY_EVENTS, mixed: bool = False) -> Outcome:
    """Eight times the events; those of the shorter stream are the first of the longer.

    The first two runs of so many events obtain most of their memory from the system, and are not counted.
    """
    asked, spark = unlike_queries(queries, mixed), session()
    with stored_bids(events // 8) as short, stored_bids(events) as long:
        few, many = (unlike_loom(spark, folder, asked) for folder in (short, long))
        found = paired(lambda: row_counts(many), lambda: row_counts(few), max(2, repeats // 2))
    note = f"{found['base_seconds']:.2f} s against {found['our_seconds']:.2f} s"
    name = f"{_kind(mixed)} {queries}, {events:,} events / {events // 8:,}"
    return Outcome(name, float(str(found["ratio"])), "ratio", 8.5, "<=", note, found)


def many_mixed_events(repeats: int, *, events: int = MANY_EVENTS) -> Outcome:
    return many_events(repeats, events=events, mixed=True)


def against_reading(repeats: int, *, queries: int = 100, events: int = EVENTS) -> Outcome:
    """All answers, against Arrow's reading of the columns that the queries use: no run can take less."""
    with stored_bids(events) as folder:
        loom = unlike_loom(session(), folder, unlike_queries(queries, mixed=False))
        found = paired(lambda: row_counts(loom), lambda: pq.read_table(folder), repeats)
    note = f"{found['base_seconds']:.2f} s against {found['our_seconds']:.3f} s"
    return Outcome(f"plain {queries} / reading", float(str(found["ratio"])), "ratio", 7, "<=", note, found)


def idle_share(repeats: int, *, queries: int = 100, events: int = EVENTS, mixed: bool = False) -> Outcome:
    """How much of the cores is idle during a run; on a machine with other work, what others use counts as idle."""
    cores, worked = os.cpu_count() or 1, processor_clock()
    with stored_bids(events) as folder:
        loom, shares = unlike_loom(session(), folder, unlike_queries(queries, mixed)), []
        for _ in range(2 + max(2, repeats)):
            begun, before = time.perf_counter(), worked()
            row_counts(loom)
            shares.append(1 - (worked() - before) / (time.perf_counter() - begun) / cores)
    note = f"{cores} cores; {min(shares[2:]):.0%} to {max(shares[2:]):.0%}; other work on the machine counts as idle"
    name = f"{_kind(mixed)} {queries}, {events:,} events: idle"
    return Outcome(name, 100 * statistics.median(shares[2:]), "%", 15, "<=", note, {"shares": shares})


def idle_share_mixed(repeats: int, *, events: int = MANY_EVENTS) -> Outcome:
    return idle_share(repeats // 2, events=events, mixed=True)


def planning_share(repeats: int, *, queries: int = 100, events: int = EVENTS) -> Outcome:
    """Processor time of planning in the first run of a loom, in a process that has run others."""
    worked, asked, found = processor_clock(), unlike_queries(queries, mixed=False), []
    with stored_bids(events) as folder:
        for _ in range(2 + repeats):
            loom, before = unlike_loom(session(), folder, asked), worked()
            results = loom.run()
            for name in results:
                results.arrow(name)
            found.append((results.measured.processor["plan"], worked() - before))
            del results
    share = statistics.median(planned / whole for planned, whole in found[2:])
    planned, whole = (statistics.median(column) for column in zip(*found[2:], strict=True))
    note = f"{1000 * planned:.0f} ms of {whole:.2f} s, of the processor"
    return Outcome(f"plain {queries}: planning / run", 100 * share, "%", 8, "<=", note, {"runs": found})


def planning_share_of_thousand(repeats: int, *, events: int = EVENTS) -> Outcome:
    return planning_share(repeats, queries=1_000, events=events)


def many_events_memory(repeats: int, *, queries: int = 100, events: int = MANY_EVENTS) -> Outcome:
    """The largest size of the Python driver over its whole life; all answers are taken, none is kept."""
    with stored_bids(events) as folder:
        peak, rows = in_fresh_process(peak_and_rows, folder, queries)
    note = f"{rows:,} rows; a process of its own, measured from its beginning"
    name = f"plain {queries}, {events:,} events: driver memory"
    return Outcome(name, peak / MIB, "MiB", 4096, "<=", note)


def peak_and_rows(folder: Path, queries: int) -> tuple[int, int]:
    rows = sum(row_counts(unlike_loom(session(), folder, unlike_queries(queries, mixed=False))).values())
    return peak_resident_bytes(), rows


def alike(repeats: int) -> Outcome:
    """What unlike queries must not cost the others: the workload `one_key`, to a higher bar."""
    return against_tumbling("100 alike queries, 1 key / tumbling groupBy", 100, 1, 0.95, repeats)


def evenly(queries: Sequence[UnlikeQuery], count: int) -> list[UnlikeQuery]:
    """So many of them, at even distances."""
    count = min(count, len(queries))
    return [queries[int((i + 0.5) * len(queries) / count)] for i in range(count)]


def _thrown_away(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _kind(mixed: bool) -> str:
    return "mixed" if mixed else "plain"


UNLIKE_WORKLOADS = {
    "unlike_plain_30": plain_30,
    "unlike_plain_100": plain_100,
    "unlike_mixed_30": mixed_30,
    "unlike_mixed_100": mixed_100,
    "unlike_spark": against_spark,
    "unlike_1000": thousand,
    "unlike_first": first_run,
    "unlike_8m": many_events,
    "unlike_8m_mixed": many_mixed_events,
    "unlike_reading": against_reading,
    "unlike_idle": idle_share,
    "unlike_idle_8m_mixed": idle_share_mixed,
    "unlike_planning": planning_share,
    "unlike_planning_1000": planning_share_of_thousand,
    "unlike_8m_memory": many_events_memory,
    **UNLIKE_STREAMS,
    "unlike_alike": alike,
}
