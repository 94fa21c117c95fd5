"""Relations: a table that a stream is joined with, of both kinds, and a table that changes while the stream runs."""

import tempfile
from pathlib import Path

from windloom import Loom

loom = Loom.local()  # or Loom(spark), with a session of your own
spark = loom.spark
folder = Path(tempfile.mkdtemp())


def put_orders(first: int) -> None:
    """A file with ten minutes of orders, one per second."""
    orders = spark.range(first, first + 600).selectExpr(
        "timestamp_seconds(1767571200 + id) AS ts", "id % 3 AS customer", "1 + id % 7 AS amount"
    )
    orders.coalesce(1).write.mode("append").parquet(str(folder / "orders"))


def put_people(city: str) -> None:
    """The whole table of people; customer 0 has moved to another city."""
    people = spark.createDataFrame([(0, city), (1, "Bern")], "id bigint, city string")
    people.coalesce(1).write.mode("overwrite").parquet(str(folder / "people"))


put_orders(0)
put_people("Basel")
orders = spark.readStream.schema("ts timestamp, customer bigint, amount bigint").parquet(str(folder / "orders"))
loom.stream("orders", orders, time="ts")
for name, retroactive in (("person", True), ("person_then", False)):
    loom.relation(name, lambda: spark.read.parquet(str(folder / "people")), retroactive=retroactive)
    loom.query(
        f"by_{name}",
        f"""SELECT p.city, sum(o.amount) AS spent FROM orders [TUMBLE 20 minutes] o
            LEFT JOIN {name} p ON o.customer = p.id GROUP BY p.city""",
    )
handle = loom.start("memory", checkpoint=folder / "checkpoint")
handle.process_all_available()
put_people("Chur")
put_orders(600)
put_orders(1200)
handle.process_all_available()
for name in ("by_person", "by_person_then"):
    handle[name].orderBy("window_end", "city").show()
handle.stop()
