"""A driver that Spark allows results of one megabyte per job: a program of its own, as a process has one session.

`python -m support.small_driver` tells as JSON what came of runs that bring more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windloom import Loom, WindloomError
from windloom.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TUPLES = 60_000


def loom_of(frame: DataFrame) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("events", frame, time="ts")
    loom.query("each", "SELECT text, count(*) AS c, sum(n) AS n FROM events [TUMBLE 1 day] GROUP BY text")
    return loom


def refusal(loom: Loom) -> list[str]:
    try:
        loom.run(placement="driver", intake="woven")
    except WindloomError as error:
        return [error.message, error.detail, error.hint]
    return []


def main() -> None:
    conf = {
        "spark.driver.maxResultSize": "1m",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",  # to partitions of more than a megabyte
    }
    spark = local_session(cores=2, memory="1g", app="windloom-small-driver", conf=conf)
    columns = ["timestamp_seconds(id) AS ts", "id AS n", "concat('a text that is long enough ', id) AS text"]
    frame = spark.range(TUPLES, numPartitions=16).selectExpr(*columns)
    woven = loom_of(frame).run(placement="driver", intake="woven").arrow("each")
    native = loom_of(frame).run(placement="driver", intake="native")
    executors = loom_of(frame).run(placement="executors", buckets=8)
    by_rows = Loom(spark)
    by_rows.stream("events", frame, time="ts")
    by_rows.query("last", "SELECT max(text) AS t, sum(n) AS n FROM events [ROWS 60000 SLIDE 60000]")
    found = {
        "groups": woven.num_rows,
        "sum": sum(woven["n"].to_pylist()),
        "rows": native.arrow("each").num_rows,
        "in_files": executors.arrow("each").num_rows,
        "one_partition": refusal(loom_of(frame.coalesce(1))),
        "one_partition_of_rows": refusal(by_rows),  # tuples that are counted pass through one partition
    }
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
