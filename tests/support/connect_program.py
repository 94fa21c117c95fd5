"""A program on a Spark Connect session of its own: DataFrames and texts are answered by looms, and compared.

It prints a line of JSON for each, and one for what is refused. Usage: connect_program.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from support.brought import INTERPRETED, Job, batch_jobs, streaming_jobs, write_bids
from windloom import Loom, WindloomError
from windloom.spark.verify.written import verify_frame

PASTED = Path(__file__).parents[1] / "equivalence" / "pasted"
TRADES = "ts timestamp, symbol string, venue string, price double, volume int, fee decimal(10,2), flag boolean"


def main(folder: Path) -> None:
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    try:
        path = write_bids(spark, folder, rows=600)
        for name, value in INTERPRETED.items():
            spark.conf.set(name, value)
        bids = spark.read.parquet(path)
        live = spark.readStream.schema(bids.schema).parquet(path)
        frames = {name: job(bids) for name, job in batch_jobs().items()}
        loom = _compared(Loom(spark), "job", frames)
        spark.read.csv(str(PASTED / "trades.csv"), schema=TRADES, header=True).createOrReplaceTempView("trades")
        texts = (PASTED / "spark.sql").read_text(encoding="utf-8").strip("\n").split("\n\n")[1:]
        written = {f"text_{number}": spark.sql(text.rstrip(";\n ")) for number, text in enumerate(texts)}
        _compared(Loom(spark), "text", written)
        few = Loom(spark)
        for name in list(frames)[::20]:
            few.query(name, frames[name])
        on_driver, by_operator = few.run(placement="driver"), few.run(placement="executors")
        for name in few.queries:
            same = _rows(by_operator.arrow(name)) == _rows(on_driver.arrow(name))
            print(json.dumps({"operator": name, "rows": same, "placement": by_operator.stats.placement}), flush=True)
        streaming = Loom(spark)
        for name, job in streaming_jobs().items():
            text = streaming.query(name, frame := job(live)).text
            same = name == "live_07" or _columns(streaming.answers(name)) == _columns(frame)  # which has sessions
            print(json.dumps({"live": name, "text": text, "schema": same, "streams": len(streaming.streams)}))
        for name in ("live_02", "live_08", "live_10"):
            _answered(streaming, name, streaming_jobs()[name], bids, folder)
        counted, minute = "SELECT count(*) FROM {b}", "window(ts, '1 minute')"
        refused = {
            "stream": lambda: streaming.start("memory"),
            "no window": lambda: loom.query("q", bids.groupBy("auction").count()),
            "no table": lambda: loom.query("q", spark.sql("SELECT 1")),
            "frames": lambda: loom.query("q", spark.sql(f"{counted} GROUP BY {minute}", b=bids)),
            "arguments": lambda: loom.query("q", spark.sql(f"{texts[0].rstrip(';')} HAVING n > :n", args={"n": 1})),
            "above a text": lambda: loom.query("q", written["text_0"].where("n > 1")),
            "sessions": lambda: streaming.answers("live_07"),
            "limit": lambda: loom.query("q", frames["job_01"].limit(3)),
            "join": lambda: loom.query("q", frames["job_01"].join(frames["job_04"], "window")),
            "union": lambda: loom.query("q", frames["job_01"].union(frames["job_01"])),
            "session": lambda: loom.query("q", spark.newSession().range(3).groupBy("id").count()),
            "tables": lambda: loom.query("q", bids.join(bids, "ts")),
            "udf": lambda: loom.query("q", frames["job_01"].select(F.udf(lambda n: n, "bigint")("count"))),
        }
        for what, ask in refused.items():
            try:
                ask()
            except WindloomError as error:
                print(json.dumps({"refused": what, "says": str(error)}), flush=True)
    finally:
        spark.stop()


def _compared(loom: Loom, kind: str, frames: dict[str, DataFrame]) -> Loom:
    """Answer DataFrames by a loom, and print how each compares with what Spark answers."""
    for name, frame in frames.items():
        loom.query(name, frame)
    results = loom.run()
    for name, frame in frames.items():
        verified = loom.verify(name, results)
        same = _columns(results[name]) == _columns(frame)
        found = {kind: name, "schema": same, "rows": verified.ok, "streams": len(loom.streams), "says": str(verified)}
        print(json.dumps(found), flush=True)
    return loom


def _answered(loom: Loom, name: str, job: Job, bids: DataFrame, folder: Path) -> None:
    """Run the streaming answers of a query, and compare the windows that are closed with those of the batch."""
    path = str(folder / name)
    stream = loom.answers(name).writeStream.format("parquet").option("checkpointLocation", f"{path}_checkpoint")
    stream.trigger(availableNow=True).start(path).awaitTermination()
    closed = bids.agg((F.max("ts") - F.expr("INTERVAL 10 SECONDS")).alias("t")).collect()[0]["t"]
    verified = verify_frame(
        name, job(bids).where(F.col("window.end") <= F.lit(closed)), loom.spark.read.parquet(path).toArrow()
    )
    print(json.dumps({"answered": name, "rows": verified.ok, "count": verified.rows, "says": str(verified)}))


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def _columns(frame: DataFrame) -> list[tuple[str, str, bool]]:
    return [(field.name, field.dataType.simpleString(), field.nullable) for field in frame.schema.fields]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
