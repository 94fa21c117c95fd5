"""Windows of orders and of clicks by the same users, joined without pairing a single order with a click."""

from windloom import Loom

loom = Loom.local()  # or Loom(spark), with a session of your own
seconds = loom.spark.range(40_000)
orders = seconds.selectExpr(
    "timestamp_seconds(1767571200 + id) AS ts",
    "id * 7919 % 500 AS user",
    "concat('R', id % 4) AS region",
    "id % 90 AS price",
)
clicks = seconds.selectExpr(
    "timestamp_seconds(1767571200 + id) AS ts", "id * 104729 % 800 AS user", "if(id % 3 = 0, 'buy', 'look') AS kind"
)
loom.stream("orders", orders, time="ts", delay="10 seconds")
loom.stream("clicks", clicks, time="ts", delay="1 minute")
loom.query(
    "after_clicks",
    """SELECT o.region, count(*) AS pairs, sum(o.price) AS spent
       FROM orders [RANGE 1 hour SLIDE 5 minutes] o JOIN clicks [RANGE 30 minutes] c ON o.user = c.user
       WHERE c.kind = 'buy' GROUP BY o.region""",
)
loom.query(
    "unseen",
    """SELECT count(*) AS orders, sum(o.price) AS spent FROM orders [RANGE 1 hour SLIDE 5 minutes] o
       WHERE NOT EXISTS (SELECT 1 FROM clicks [RANGE 30 minutes] c WHERE c.user = o.user)""",
)
loom.query("by_user", "SELECT user, sum(price) AS spent FROM orders [RANGE 1 hour SLIDE 5 minutes] GROUP BY user")
print(loom.explain(query="after_clicks"))
results = loom.run()
results["after_clicks"].orderBy("window_end", "region").show(3, truncate=False)
print(loom.verify("after_clicks"))
print(loom.verify("unseen"))
