"""A program on a Spark Connect session of its own: sixty DataFrames are answered by a loom, and compared.

It prints a line of JSON for each, and one for what is refused. Usage: connect_program.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from support.brought import INTERPRETED, batch_jobs, streaming_jobs, write_bids
from windloom import Loom, WindloomError


def main(folder: Path) -> None:
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    try:
        path = write_bids(spark, folder, rows=600)
        for name, value in INTERPRETED.items():
            spark.conf.set(name, value)
        bids = spark.read.parquet(path)
        live = spark.readStream.schema(bids.schema).parquet(path)
        frames = {name: job(bids) for name, job in batch_jobs().items()}
        loom = Loom(spark)
        for name, frame in frames.items():
            loom.query(name, frame)
        results = loom.run()
        for name, frame in frames.items():
            verified = loom.verify(name, results)
            same = _columns(results[name]) == _columns(frame)
            print(json.dumps({"job": name, "schema": same, "rows": verified.ok, "says": str(verified)}), flush=True)
        streaming = Loom(spark)
        for name, job in streaming_jobs().items():
            text = streaming.query(name, job(live)).text
            print(json.dumps({"live": name, "text": text, "streams": len(streaming.streams)}), flush=True)
        refused = {
            "stream": lambda: streaming.start("memory"),
            "executors": lambda: loom.run(placement="executors"),
            "no window": lambda: loom.query("q", bids.groupBy("auction").count()),
            "sql": lambda: loom.query("q", spark.sql("SELECT 1")),
            "limit": lambda: loom.query("q", frames["job_01"].limit(3)),
            "udf": lambda: loom.query("q", frames["job_01"].select(F.udf(lambda n: n, "bigint")("count"))),
        }
        for what, ask in refused.items():
            try:
                ask()
            except WindloomError as error:
                print(json.dumps({"refused": what, "says": str(error)}), flush=True)
    finally:
        spark.stop()


def _columns(frame: DataFrame) -> list[tuple[str, str, bool]]:
    return [(field.name, field.dataType.simpleString(), field.nullable) for field in frame.schema.fields]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
