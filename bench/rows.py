"""Workloads of rows: an interval join against Spark's own, what keeping tuples costs, questions, orders of joins."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import permutations
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.bids import PER_SECOND, stored_bids
from bench.measure import Outcome, seconds
from bench.sessions import session
from bench.streams import NOW, WARM, loom_rounds, round_files
from windloom import Loom

JOINED, KEYS, PER_ROUND = 1_000_000, 10_000, 100_000
#: Tuples of one stream per second, and how far those of a pair may lie apart: about two pairs for each tuple.
RATE, WITHIN = 1_000, 10
_EPOCH = 1_767_571_200_000_000


@contextmanager
def stored_streams(names: Sequence[str], tuples: int, per_file: int, keys: int) -> Iterator[Path]:
    """A folder per stream, with one file per round: `ts`, `k`, `x`, in order of time."""
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as folder:
        rng = np.random.default_rng(11)
        for name in names:
            (Path(folder) / name).mkdir()
            for number, first in enumerate(range(0, tuples, per_file)):
                ticks = _EPOCH + (np.arange(first, first + per_file) * 1_000_000) // RATE
                columns = {"k": rng.integers(0, keys, per_file), "x": rng.integers(0, 1_000, per_file)}
                table = pa.table({"ts": pa.array(ticks).view(pa.timestamp("us", tz="UTC")), **columns})
                file = Path(folder) / name / f"{number:04d}.parquet"
                pq.write_table(table, file)
                os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        yield Path(folder)


def followed(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


# ---- an interval join -----------------------------------------------------------------------------------------------


def interval_join(repeats: int, tuples: int = JOINED) -> Outcome:
    """Both streams in turn, into Parquet; what the whole stream takes, without the first time."""
    spark = session()
    pairs = []
    with stored_streams(("l", "r"), tuples, PER_ROUND, KEYS) as folder:
        for _ in range(max(2, repeats // 2)):
            theirs, their_rows = _spark_pairs(spark, folder)
            ours, our_rows = _loom_pairs(spark, folder)
            assert 0 < our_rows == their_rows, (our_rows, their_rows)
            pairs.append((theirs, ours))
    counted = pairs[1:]
    figure = statistics.median(theirs / ours for theirs, ours in counted)
    note = f"{counted[-1][1]:.1f} s against {counted[-1][0]:.1f} s; {our_rows:,} pairs"
    name = f"Spark's interval join / ours, {tuples // 1000}k + {tuples // 1000}k"
    return Outcome(name, figure, "ratio", 2, ">=", note, {"pairs": pairs})


def _spark_pairs(spark: SparkSession, folder: Path) -> tuple[float, int]:
    left, right = (followed(spark, folder / name).withWatermark("ts", "0 seconds") for name in "lr")
    right = right.selectExpr("ts AS rts", "k AS rk", "x AS y")
    near = f"rts < ts + INTERVAL {WITHIN} SECONDS AND ts < rts + INTERVAL {WITHIN} SECONDS"
    joined = left.join(right, F.expr(f"k = rk AND {near}")).selectExpr("k", "x", "y")
    with tempfile.TemporaryDirectory() as place:
        writer = joined.writeStream.format("parquet").option("checkpointLocation", f"{place}/checkpoint")
        took = seconds(lambda: writer.trigger(**NOW).start(f"{place}/out").awaitTermination())
        return took, spark.read.parquet(f"{place}/out").count()


def _loom_pairs(spark: SparkSession, folder: Path) -> tuple[float, int]:
    loom = Loom(spark)
    for name in "lr":
        loom.stream(name, followed(spark, folder / name), time="ts", rate=RATE)
    loom.query("pairs", f"SELECT l.k, l.x, r.x AS y FROM l JOIN r WITHIN {WITHIN} seconds ON l.k = r.k")
    with tempfile.TemporaryDirectory() as place:

        def run() -> None:
            handle = loom.start(
                "parquet", path=f"{place}/out", checkpoint=f"{place}/checkpoint", trigger=NOW, finish=True
            )
            handle.await_termination()

        took = seconds(run)
        return took, sum(pq.read_metadata(file).num_rows for file in Path(f"{place}/out").glob("*/*.parquet"))


# ---- what keeping tuples costs --------------------------------------------------------------------------------------


def kept_tuples(repeats: int, rounds: int = 8) -> Outcome:
    """The same rounds of 500,000 events and 100 queries, with all tuples kept for an hour and without."""
    spark = session()
    pairs = []
    with round_files(spark, 1, rounds) as place:
        for _ in range(max(2, repeats // 2 + 1)):
            plain, _ = loom_rounds(spark, place, 100, 1, "memory")
            kept, handle = loom_rounds(spark, place, 100, 1, "memory", keep_tuples="1 hour")
            pairs.append((statistics.median(plain[WARM:]), statistics.median(kept[WARM:])))
    figure = statistics.median(kept / plain for plain, kept in pairs[1:])
    assert handle.progress is not None
    stages = ", ".join(f"{name} {took * 1000:.0f} ms" for name, took in handle.progress.seconds.items())
    note = f"{pairs[-1][1]:.3f} s per round against {pairs[-1][0]:.3f} s; {stages}"
    return Outcome("round with tuples kept / without", figure, "ratio", 1.25, "<=", note, {"pairs": pairs})


# ---- a question -----------------------------------------------------------------------------------------------------

ASKED = ("price > 20 AND channel <> 'api'", "channel, country", "avg(price) AS p, max(bidder) AS b, count(*) AS n")


def asked(repeats: int, events: int = 3_600_000, per_file: int = 400_000) -> Outcome:
    """A question over all kept tuples that nothing keeps partials for, against Spark on the files the stream read."""
    spark = session()
    where, groups, selected = ASKED
    text = f"SELECT {groups}, {selected} FROM bids [RANGE 10 minutes SLIDE 1 minute] WHERE {where} GROUP BY {groups}"
    with stored_bids(events, per_file=per_file) as folder, tempfile.TemporaryDirectory() as checkpoint:
        loom = Loom(spark)
        loom.stream("bids", followed(spark, folder), time="ts", rate=PER_SECOND)
        loom.query("all", "SELECT count(*) AS n FROM bids [TUMBLE 1 minute]")
        handle = loom.start("memory", checkpoint=checkpoint, keep_tuples="2 hours")
        handle.process_all_available()

        def theirs() -> pa.Table:
            bids = spark.read.parquet(str(folder)).where(where)
            names = groups.split(", ")
            windows = bids.groupBy(F.window("ts", "10 minutes", "1 minute"), *names)
            return windows.agg(*map(F.expr, selected.split(", "))).toArrow()

        def ours() -> pa.Table:
            return handle.ask(text).table

        for _ in range(2):
            whole, answered = theirs(), ours()
        pairs = [(seconds(theirs), seconds(ours)) for _ in range(repeats)]
        handle.stop()
    assert 0 < answered.num_rows <= whole.num_rows
    figure = statistics.median(our / their for their, our in pairs)
    note = f"{pairs[-1][1]:.2f} s against {pairs[-1][0]:.2f} s; {answered.num_rows:,} rows of {events:,} tuples"
    return Outcome("ask over an hour of tuples / Spark", figure, "ratio", 0.5, "<=", note, {"pairs": pairs})


# ---- orders of joins ------------------------------------------------------------------------------------------------


def join_orders(repeats: int, tuples: int = 400_000) -> Outcome:
    """Three streams with one key, of which one is rare: every order is forced, and the chosen one is among them.

    There are enough tuples for orders to differ: pairs of the two streams that are not rare outweigh everything else.
    """
    spark = session()
    text = (
        "SELECT ISTREAM a.x AS p, c.x AS q FROM a [TUMBLE 60 seconds] JOIN b [TUMBLE 60 seconds] ON a.k = b.k"
        " JOIN c [TUMBLE 60 seconds] ON b.k = c.k AND a.k = c.k WHERE c.x < 20"
    )
    orders = list(permutations(range(3)))
    taken: dict[tuple[int, ...], list[float]] = {order: [] for order in orders}
    with stored_streams("abc", tuples, tuples, KEYS) as folder:

        def loom() -> Loom:
            made = Loom(spark)
            for name in "abc":
                made.stream(name, spark.read.parquet(str(folder / name)), time="ts", rate=RATE)
            made.query("chain", text)
            return made

        (chosen,) = loom().plan().rows[0].orders
        for _ in range(repeats + 1):
            for order in orders:
                with patch("windloom.optimizer.rows.join_order", return_value=order):
                    forced = loom()
                    assert forced.plan().rows[0].orders == (order,)
                taken[order].append(seconds(partial(forced.run, placement="driver")))
    medians = {order: statistics.median(own[1:]) for order, own in taken.items()}
    best = min(medians, key=lambda order: medians[order])
    note = ", ".join(f"{''.join('abc'[i] for i in order)} {took:.2f} s" for order, took in medians.items())
    note += f"; chosen {''.join('abc'[i] for i in chosen)}"
    figure = medians[chosen] / medians[best]
    return Outcome("chosen join order / best forced one", figure, "ratio", 1.1, "<=", note, {"chosen": list(chosen)})


ROW_WORKLOADS = {
    "rows_interval_join": interval_join,
    "rows_kept": kept_tuples,
    "rows_asked": asked,
    "rows_orders": join_orders,
}
