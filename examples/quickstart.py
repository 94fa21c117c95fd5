"""Two sliding-window queries over generated trades, answered from one plan and checked against Spark itself."""

from windloom import Loom

loom = Loom.local()  # or Loom(spark), with a session of your own
trades = loom.spark.range(200_000).selectExpr(
    "timestamp_seconds(1767571200 + id / 20) AS ts", "concat('S', id % 5) AS symbol", "100 + sin(id / 900) AS price"
)
loom.stream("trades", trades, time="ts", delay="10 seconds")
loom.query("avg_1h", "SELECT symbol, avg(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol")
loom.query("high", "SELECT symbol, max(price) AS high FROM trades [RANGE 90 seconds SLIDE 20 seconds] GROUP BY symbol")
print(loom.explain())
results = loom.run(strategy="weave_share")
results["avg_1h"].orderBy("window_start", "symbol").show(3, truncate=False)
print(results.stats)
print(loom.verify("avg_1h"))
