"""An aggregate of one's own: the geometric mean, defined in Python and called in CQL."""

import math
from typing import NamedTuple

from windloom import Loom


class Logs(NamedTuple):
    total: float
    count: int


loom = Loom.local()  # or Loom(spark), with a session of your own
trades = loom.spark.range(20_000).selectExpr(
    "timestamp_seconds(1767571200 + id / 20) AS ts", "concat('S', id % 5) AS symbol", "100 + sin(id / 900) AS price"
)
loom.stream("trades", trades, time="ts")
loom.aggregate(
    "geo_mean",
    lift=lambda x: Logs(math.log(x), 1),
    combine=lambda a, b: Logs(a.total + b.total, a.count + b.count),
    lower=lambda value: math.exp(value.total / value.count),
    neutral=Logs(0.0, 0),
)
loom.query("mean", "SELECT symbol, geo_mean(price) AS g FROM trades [RANGE 5 minutes SLIDE 1 minute] GROUP BY symbol")
loom.run()
print(loom.verify("mean"))
