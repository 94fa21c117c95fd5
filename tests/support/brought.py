"""DataFrames as people write them in their jobs, over one table of bids, to be given to a loom as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import col, expr, lit, session_window, window

#: Settings with which Spark interprets plans: to compile each of many small ones takes longer than to run it.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}

Job = Callable[[DataFrame], DataFrame]


def write_bids(spark: SparkSession, folder: Path, rows: int = 1_500) -> str:
    """Write bids in the order of their times, of which no two are equal; some columns have NULLs."""
    bids = spark.range(0, rows, 1, 1).selectExpr(
        "timestamp_micros(1767571200000000L + id * 4000000L + pmod(hash(id), 3000000)) AS ts",
        "id % 11 AS auction",
        "CASE WHEN id % 13 = 0 THEN NULL ELSE concat('b', pmod(hash(id, 1), 6)) END AS bidder",
        "CASE WHEN id % 17 = 0 THEN NULL ELSE pmod(hash(id, 2), 1000) / 8.0D END AS price",
        "CAST(pmod(hash(id, 3), 100) AS INT) AS amount",
        "CAST(pmod(hash(id, 4), 10000) / 100 AS DECIMAL(10,2)) AS fee",
        "id % 3 = 0 AS is_open",
        "named_struct('city', concat('c', id % 4), 'zip', CAST(id % 9 AS INT)) AS place",
        "array(CAST(id % 5 AS INT), CAST(id % 7 AS INT)) AS sizes",
        "map('x', id % 6) AS extra",
        "date_add(DATE '2026-01-05', CAST(id % 3 AS INT)) AS day",
        "id % 5 AS `order`",
    )
    path = str(folder / "bids")
    bids.write.parquet(path)
    return path


def batch_jobs() -> dict[str, Job]:
    """Return sixty DataFrames by name, each as a function of the bids."""
    minute, sliding = window("ts", "1 minute"), window("ts", "10 minutes", "2 minutes")
    jobs: dict[str, Job] = {}

    def job(write: Job) -> None:
        jobs[f"job_{len(jobs) + 1:02}"] = write

    job(lambda b: b.groupBy(minute).count())
    job(lambda b: b.groupBy(sliding, "auction").agg(F.avg("price").alias("p")))
    job(lambda b: b.groupBy(sliding.alias("w"), col("auction")).agg(F.sum("amount"), F.max("price"), F.min("price")))
    job(lambda b: b.where("price > 40").groupBy(minute, "bidder").agg(F.count("*").alias("n")))
    job(lambda b: b.filter(col("is_open") & (col("amount") >= 10)).groupBy(minute).agg(F.sum("fee").alias("fees")))
    job(lambda b: b.groupBy(window("ts", "7 minutes", "3 minutes", "1 minute"), "is_open").agg(F.count("price")))
    job(lambda b: b.groupBy("auction", minute).agg(F.stddev("price"), F.var_pop("price").alias("v")))
    job(lambda b: b.groupBy(minute).agg(F.count_distinct("bidder").alias("bidders")))
    job(lambda b: b.groupBy(minute, "auction").agg(F.max_by("bidder", "ts"), F.min_by("amount", "ts").alias("first")))
    job(lambda b: b.groupBy(sliding).agg(F.median("price").alias("m"), F.expr("percentile(amount, 0.25)").alias("q")))
    job(lambda b: b.groupBy(session_window("ts", "5 seconds"), "auction").count())
    job(lambda b: b.groupBy("bidder", session_window(col("ts"), "40 seconds")).agg(F.sum("amount").alias("a")))
    job(lambda b: b.groupBy(minute).agg(F.sum("price").alias("s")).where("s > 500"))
    job(lambda b: b.groupBy(minute, "bidder").count().filter(col("count") > 2).select("window", "bidder"))
    job(lambda b: b.groupBy(sliding, "auction").count().select(col("window.start").alias("begins"), "auction", "count"))
    job(lambda b: b.groupBy(sliding).count().select("window.start", "window.end", "count"))
    job(lambda b: b.groupBy(sliding).count().withColumn("end", col("window.end")).drop("window"))
    job(lambda b: b.groupBy(minute, "auction").count().orderBy("window", col("count").desc(), "auction"))
    job(lambda b: b.groupBy(minute).agg(F.sum("amount").alias("a")).sort(F.desc("a"), "window.start").select("a"))
    job(lambda b: b.withColumn("total", col("price") * col("amount")).groupBy(minute).agg(F.sum("total")))
    job(lambda b: b.select("ts", (col("amount") % 4).alias("slot")).groupBy(sliding, "slot").count())
    job(lambda b: b.groupBy(minute, (col("auction") % 2).alias("odd")).agg(F.max("fee")))
    job(lambda b: b.groupBy(minute, F.upper("bidder")).agg(F.avg("amount")))
    job(lambda b: b.groupBy(minute, "place.city").agg(F.sum("place.zip").alias("z")))
    job(lambda b: b.groupBy(minute).agg((F.sum("price") / F.count("price")).alias("mean"), F.avg("price").alias("avg")))
    job(lambda b: b.groupBy(minute).agg(F.round(F.avg("fee"), 1).alias("fee"), lit("eu").alias("region")))
    job(lambda b: b.groupBy(minute).agg(F.sum(F.when(col("is_open"), col("amount")).otherwise(0)).alias("open")))
    job(
        lambda b: b.groupBy(minute).agg(
            expr("count(*) FILTER (WHERE price > 60)"), expr("sum(fee) FILTER (WHERE is_open)")
        )
    )
    job(lambda b: b.groupBy(minute).agg({"price": "max", "amount": "sum"}))
    job(lambda b: b.groupBy(minute, "auction").max("amount", "price"))
    job(lambda b: b.groupBy(minute, "auction").mean("fee"))
    job(lambda b: b.selectExpr("ts", "coalesce(bidder, 'none') AS who").groupBy(minute, "who").count())
    job(lambda b: b.where(col("bidder").isin("b1", "b2") | col("bidder").isNull()).groupBy(minute).count())
    job(lambda b: b.where(col("bidder").like("b%") & ~col("bidder").endswith("3")).groupBy(sliding).count())
    job(lambda b: b.where(col("amount").between(20, 60)).groupBy(sliding).agg(F.sum("amount")))
    job(lambda b: b.where(F.array_contains("sizes", 2)).groupBy(minute).agg(F.max(col("sizes")[1])))
    job(lambda b: b.groupBy(minute).agg(F.sum(F.element_at("extra", "x")).alias("x"), F.max(F.size("sizes"))))
    job(lambda b: b.where(F.exists("sizes", lambda size: size > 5)).groupBy(minute).count())
    job(lambda b: b.where(F.hour("ts") == 0).groupBy(sliding, F.date_trunc("hour", "ts").alias("hour")).count())
    job(lambda b: b.where(expr("extract(minute FROM ts) < 40")).groupBy(minute, "day").agg(F.min("ts"), F.max("day")))
    job(lambda b: b.groupBy(minute, F.concat_ws("-", "bidder", col("amount").cast("string")).alias("key")).count())
    job(lambda b: b.groupBy(window(col("ts"), "90 seconds")).agg(F.bit_xor("amount"), F.bool_or("is_open")))
    job(lambda b: b.toDF(*(f"c{i}" for i in range(len(b.columns)))).groupBy(window("c0", "2 minutes"), "c1").count())
    job(lambda b: b.withColumnRenamed("ts", "at").groupBy(window("at", "2 minutes")).agg(F.avg("price").alias("at")))
    job(lambda b: b.alias("x").groupBy(window("x.ts", "2 minutes"), "x.auction").agg(F.count_distinct("x.amount")))
    job(lambda b: b.groupBy(minute, "order").agg(F.sum("order").alias("group")))
    job(lambda b: b.groupBy(minute).agg(F.sum("amount").alias("n"), F.sum("auction").alias("window_start")))
    job(lambda b: b.groupBy(minute).agg(F.max("amount"), F.max("amount")))
    job(lambda b: b.groupBy(minute.alias("from")).agg(F.count(lit(1)).alias("select")))
    job(lambda b: b.withColumn("w", sliding).groupBy("w", "auction").agg(F.sum("fee")))
    job(lambda b: b.withColumn("w", minute).where("w.start >= TIMESTAMP '2026-01-05 00:30:00'").groupBy("w").count())
    job(
        lambda b: (
            b.select("*", F.nullif("bidder", lit("b2")).alias("who")).groupBy(minute).agg(F.count("who").alias("n"))
        )
    )
    job(lambda b: b.dropDuplicates(["auction", "bidder"]).groupBy(minute).count())
    job(lambda b: b.union(b.where("is_open")).groupBy(minute).agg(F.sum("amount")))
    job(
        lambda b: (
            b.join(b.groupBy("auction").agg(F.max("fee").alias("top")), "auction").groupBy(minute).agg(F.max("top"))
        )
    )
    job(lambda b: b.select("ts", F.explode("sizes").alias("size")).groupBy(minute, "size").count())
    job(
        lambda b: (
            b.select(F.unix_timestamp("ts").alias("s"), "fee")
            .groupBy(window(F.timestamp_seconds("s"), "1 minute"))
            .agg(F.sum("fee"))
        )
    )
    job(
        lambda b: (
            b.select(col("ts").cast("string").alias("text"), "fee")
            .groupBy(window("text", "1 minute"))
            .agg(F.sum("fee"))
        )
    )
    job(
        lambda b: (
            b.groupBy(minute)
            .agg(F.max("amount").alias("a"))
            .where(col("a").isNotNull())
            .select((col("a") + 1).alias("b"), F.date_format("window.end", "HH:mm").alias("until"))
        )
    )
    job(lambda b: b.groupBy(minute, "is_open").agg(F.sum("amount").cast("double").alias("a"), F.min("bidder")))
    job(lambda b: b.groupBy(minute).agg(F.max_by(F.struct("bidder", col("amount").alias("a")), "ts").alias("best")))
    job(lambda b: b.groupBy(minute).agg(F.mode("auction", True).alias("m"), F.mode("bidder", True)))
    return jobs


def streaming_jobs() -> dict[str, Job]:
    """Return twenty streaming DataFrames by name, each as a function of the bids; they have answers as batches, too."""
    minute, sliding = window("ts", "1 minute"), window("ts", "10 minutes", "2 minutes")
    jobs: dict[str, Job] = {}

    def job(write: Job) -> None:
        jobs[f"live_{len(jobs) + 1:02}"] = write

    def late(bids: DataFrame) -> DataFrame:
        return bids.withWatermark("ts", "10 seconds")

    job(lambda b: late(b).groupBy(minute).count())
    job(lambda b: late(b).groupBy(sliding, "auction").agg(F.avg("price").alias("p")))
    job(lambda b: late(b).where("price > 40").groupBy(minute, "bidder").agg(F.count("*").alias("n")))
    job(lambda b: late(b.where("is_open")).groupBy(minute).agg(F.sum("fee").alias("fees")))
    job(lambda b: late(b).groupBy(window("ts", "7 minutes", "3 minutes", "1 minute")).agg(F.max("price")))
    job(lambda b: late(b).groupBy(minute).agg(F.max_by("bidder", "ts").alias("last"), F.stddev("price")))
    job(lambda b: late(b).groupBy(session_window("ts", "5 seconds"), "auction").count())
    job(lambda b: late(b).groupBy(minute).agg(F.sum("amount").alias("s")).where("s > 500"))
    job(lambda b: late(b).groupBy(sliding).count().select(col("window.start").alias("begins"), "count"))
    job(lambda b: late(b).groupBy(minute, "auction").count().select("auction", "count", "window"))
    job(lambda b: late(b).withColumn("t", col("price") * col("amount")).groupBy(minute).agg(F.sum("t")))
    job(lambda b: late(b).groupBy(minute, (col("auction") % 2).alias("odd")).agg(F.max("fee")))
    job(lambda b: late(b).groupBy(minute, "place.city").agg(F.sum("place.zip").alias("z")))
    job(lambda b: late(b).groupBy(minute).agg(F.round(F.avg("fee"), 1), lit("eu").alias("region")))
    job(lambda b: late(b).groupBy(minute).agg(expr("count(*) FILTER (WHERE price > 60)")))
    job(lambda b: late(b).groupBy(minute, "order").max("amount", "price"))
    job(lambda b: late(b).where(F.array_contains("sizes", 2)).groupBy(minute).agg(F.max(col("sizes")[1])))
    job(lambda b: late(b).withColumn("w", minute).groupBy("w", "day").agg(F.min("ts")))
    job(lambda b: late(b).groupBy(minute.alias("w")).agg(F.max("amount"), F.max("amount")))
    job(lambda b: late(b).groupBy(window("ts", "90 seconds")).agg(F.bit_xor("amount"), F.bool_or("is_open")))
    return jobs
