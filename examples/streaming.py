"""A loom on a stream of files: rounds, a query that comes later, a question asked once, a restart."""

import tempfile
from pathlib import Path

from windloom import Loom

loom = Loom.local()  # or Loom(spark), with a session of your own
folder = Path(tempfile.mkdtemp())
hour = loom.spark.range(72_000).selectExpr(
    "timestamp_seconds(1767571200 + id / 20) AS ts", "concat('S', id % 5) AS symbol", "100 + sin(id / 900) AS price"
)


def bring(minutes: str) -> None:
    """Some minutes of trades arrive."""
    hour.where(f"minute(ts) BETWEEN {minutes}").coalesce(1).write.mode("append").parquet(str(folder / "trades"))


bring("0 AND 19")
trades = loom.spark.readStream.schema(hour.schema).parquet(str(folder / "trades"))
loom.stream("trades", trades, time="ts", delay="10 seconds")
loom.query("avg_5m", "SELECT symbol, avg(price) AS p FROM trades [RANGE 5 minutes SLIDE 1 minute] GROUP BY symbol")
places = {"path": folder / "answers", "checkpoint": folder / "checkpoint"}
handle = loom.start("parquet", **places, keep="1 hour")
handle.process_all_available()
print("first:", handle.progress)

print("added:", handle.add("avg_9m", "SELECT symbol, avg(price) AS p FROM trades [TUMBLE 9 minutes] GROUP BY symbol"))
print("added:", handle.add("high_9m", "SELECT symbol, max(price) AS p FROM trades [TUMBLE 9 minutes] GROUP BY symbol"))
bring("20 AND 39")
handle.process_all_available()
answer = handle.ask("SELECT symbol, avg(price) AS p FROM trades [RANGE 15 minutes SLIDE 5 minutes] GROUP BY symbol")
print("asked:", answer.table.num_rows, "rows; watermark", answer.watermark)
handle.stop()

bring("40 AND 59")
handle = loom.start("parquet", **places, keep="1 hour", trigger={"availableNow": True}, finish=True)
handle.await_termination()
for name in handle.queries:
    print(name, handle.arrow(name).num_rows, "rows")
