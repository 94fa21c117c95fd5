"""A program that answers one stream with the Spark operator until its files are read: killed and started again.

python -m support.operator_program FOLDER classic|connect [ROUNDS_LEFT]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from support.files import follow
from windloom import Loom
from windloom.spark.session import ROCKS_DB, local_session, use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "avg": "SELECT symbol, avg(price) AS p, count(*) AS n FROM trades [RANGE 60 s SLIDE 20 s] GROUP BY symbol",
    "high": "SELECT symbol, max(price) AS p, min(volume) AS v FROM trades [RANGE 90 s SLIDE 30 s] GROUP BY symbol",
    "odd": "SELECT count(*) AS n, sum(volume) AS v FROM trades [TUMBLE 40 seconds] WHERE volume % 2 = 1",
    "mid": "SELECT symbol, median(volume) AS p FROM trades [RANGE 60 s SLIDE 30 s] GROUP BY symbol",
    "pairs": "SELECT a.symbol, count(*) AS n, sum(a.volume * b.volume) AS v FROM trades [RANGE 60 s SLIDE 20 s] a"
    " JOIN trades [RANGE 40 s] b ON a.symbol = b.symbol WHERE b.price > 50 GROUP BY a.symbol",
    "ratio": "SELECT symbol, sum(price)/count(*) AS p FROM trades [TUMBLE 60 s] GROUP BY symbol HAVING count(*) > 1",
    "grown": "SELECT symbol, sum(volume) AS v FROM trades [LANDMARK SLIDE 40 s] GROUP BY symbol",
    "day": "SELECT symbol, sum(volume) AS v FROM trades [CUMULATE 2 minutes SLIDE 30 s] GROUP BY symbol",
}


def loom_over(spark: SparkSession, folder: Path, names: list[str] | None = None, *, batch: bool = False) -> Loom:
    loom = Loom(spark)
    frame = spark.read.parquet(str(folder / "in")) if batch else follow(spark, folder / "in")
    loom.stream("trades", frame, time="ts", delay="25 seconds")
    for name in names or QUERIES:
        loom.query(name, QUERIES[name])
    return loom


def connect_session() -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # of the server's workers
    with use_java():
        builder = SparkSession.builder.remote("local[2]")
        for key, value in {
            "spark.sql.streaming.stateStore.providerClass": ROCKS_DB,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    conf = {"spark.sql.shuffle.partitions": "2"}
    spark = connect_session() if kind == "connect" else local_session(cores=2, conf=conf)
    if kind == "connect":  # what a batch run says, by the same program
        table = loom_over(spark, folder, batch=True).answers().toArrow()
        pq.write_table(table, folder / "batch.parquet")
    answers = loom_over(spark, folder).answers(buckets=3)
    query = (
        answers.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    error = query.exception()
    assert error is None, str(error)
    (folder / "done").write_text("done")


if __name__ == "__main__":
    main()
