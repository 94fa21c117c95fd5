"""The workloads of relations: tuples joined as they come in, and versions that windows see, against Spark's joins."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.measure import Outcome
from bench.sessions import session
from bench.streams import NOW, WARM, followed, round_files
from bench.workloads import PER_SECOND
from windloom import Loom

#: Symbols of the stream, of which each has a row in the relation, and the sectors that these belong to.
SYMBOLS, SECTORS = 10_000, 20
ROUNDS = 8
QUERY = """SELECT l.sector, sum(t.price) AS total, max(t.price) AS high, count(*) AS n
    FROM trades [RANGE 1 minute SLIDE 10 seconds] t {kind} listing l ON t.symbol = l.symbol GROUP BY l.sector"""


def listing_file(spark: SparkSession, place: Path) -> str:
    """The relation as a Parquet file; a tenth of the symbols are not in it."""
    path = str(place / "listing.parquet")
    symbols = spark.read.parquet(str(place / "in")).select("symbol").distinct()
    rows = symbols.where("pmod(hash(symbol), 10) > 0").selectExpr(
        "symbol", f"concat('sector ', pmod(hash(symbol), {SECTORS})) AS sector", "hash(symbol) AS lot"
    )
    rows.coalesce(1).write.parquet(path)
    return path


def joined_rounds(spark: SparkSession, place: Path, path: str) -> list[float]:
    """Seconds of each round that joins with Spark, groups natively and takes the partials over as Arrow."""
    slices = F.expr("unix_micros(ts) DIV 10000000L").alias("slice")

    def aggregate(batch: DataFrame, number: int) -> None:
        listing = spark.read.parquet(path)
        joined = batch.join(F.broadcast(listing), "symbol", "left")
        joined.groupBy(slices, "sector").agg(F.sum("price"), F.max("price"), F.count("*")).toArrow()

    with tempfile.TemporaryDirectory() as checkpoint:
        writer = followed(spark, place).writeStream.foreachBatch(aggregate).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [told["durationMs"]["triggerExecution"] / 1000 for told in query.recentProgress if told["numInputRows"]]


def loom_rounds(spark: SparkSession, place: Path, path: str, *, retroactive: bool) -> list[float]:
    """Seconds of each round of a loom that reads the relation by a function, as a user gives it."""
    loom = Loom(spark)
    loom.stream("trades", followed(spark, place), time="ts", rate=PER_SECOND)
    loom.relation("listing", lambda: spark.read.parquet(path), retroactive=retroactive)
    loom.query("by_sector", QUERY.format(kind="LEFT JOIN"))
    with tempfile.TemporaryDirectory() as folder:
        handle = loom.start("memory", checkpoint=f"{folder}/checkpoint", trigger=NOW)
        handle.await_termination()
        progress = handle.spark_query.recentProgress
    return [told["durationMs"]["triggerExecution"] / 1000 for told in progress if told["numInputRows"]]


def _against_spark(name: str, bar: float, repeats: int, *, retroactive: bool) -> Outcome:
    """Both streams in turn; the median round of each, and of their ratios the median."""
    spark = session()
    with round_files(spark, SYMBOLS, ROUNDS) as place:
        path, pairs = listing_file(spark, place), []
        for _ in range(max(2, repeats // 2 + 1)):
            base = statistics.median(joined_rounds(spark, place, path)[WARM:])
            pairs.append((base, statistics.median(loom_rounds(spark, place, path, retroactive=retroactive)[WARM:])))
    ratio = statistics.median(ours / base for base, ours in pairs[1:])
    note = f"{pairs[-1][1]:.3f} s per round against {pairs[-1][0]:.3f} s; a relation of {SYMBOLS * 9 // 10:,} rows"
    return Outcome(name, ratio, "ratio", bar, "<=", note, {"pairs": pairs})


def enrichment(repeats: int) -> Outcome:
    """A non-retroactive relation: tuples are joined as they come in, then aggregated, logged and answered."""
    name = "round joined with a relation / the same Spark join"
    return _against_spark(name, 1.1, repeats, retroactive=False)


def versions(repeats: int) -> Outcome:
    """A retroactive relation: tuples are aggregated by symbol, and folded with the version when windows close."""
    name = "round with a retroactive relation / Spark join"
    return _against_spark(name, 2.0, repeats, retroactive=True)


RELATION_WORKLOADS = {"relations_enrichment": enrichment, "relations_versions": versions}
