"""A stream on a cluster, placed on executors: a program of its own, because a process has one Spark session.

`python -m support.cluster_program MASTER FOLDER` tells as JSON what it answered and how often shards were attempted. In
the second round the first attempt of a shard is killed when it has written its files.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from support.cluster import SHORT_LIVED
from support.sharded import two_lives
from windloom.checkpoint.shards import pieces
from windloom.checkpoint.storage import watched
from windloom.spark.session import local_session

CONF = {
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.executor.memory": "512m",
    "spark.executorEnv.WINDLOOM_FAULT": "after shard:2",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.quantile": "0.3",
    "spark.sql.shuffle.partitions": "2",
}


def main(master: str, folder: Path) -> None:
    pieces.LEAST_ROWS = 2  # so that shards write rows by themselves
    spark = local_session(cores=2, memory="512m", conf={**CONF, "spark.master": master})
    shards = folder / "executors" / "c" / "shards"
    attempts: dict[str, int] = {}

    def look(point: str) -> None:
        if point == "before log":  # files of all attempts are there, and none is recorded yet
            names = Counter(path.name.rpartition("-")[0] for path in shards.glob("*.state"))
            attempts.update({name: max(count, attempts.get(name, 0)) for name, count in names.items()})

    with watched(look):
        answers = two_lives(spark, folder, "executors")
    left = sorted(path.name for path in shards.iterdir())
    written = sorted(path.name for path in (folder / "executors" / "out").glob("*/*-shard-*.parquet"))
    print(json.dumps({"answers": answers, "attempts": attempts, "left": left, "written": written}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
