"""A batch run by the Spark operator on a cluster: a program of its own, because a process has one Spark session.

`python -m support.cluster_program MASTER FOLDER` prints its rows as JSON. A worker process is killed while it reads.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from support.cluster import SHORT_LIVED
from support.many_groups import QUERIES, rows
from windloom import Loom
from windloom.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONF = {
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.quantile": "0.3",
    "spark.sql.shuffle.partitions": "2",
}


def answers_over(frame: DataFrame, placement: str) -> dict[str, list[list[str]]]:
    """The rows of every query, as text."""
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts")
    for name, text in QUERIES.items():
        loom.query(name, text)
    results = loom.run(placement=placement)
    return {name: [list(map(str, row)) for row in rows(results.arrow(name))] for name in QUERIES}


def killed_once(marker: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on; the first process that comes here is killed."""
    for batch in batches:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            yield batch
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def main(master: str, folder: Path) -> None:
    spark = local_session(cores=2, memory="512m", conf={**CONF, "spark.master": master})
    frame, marker = spark.read.parquet(str(folder / "in")), str(folder / "killed")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return killed_once(marker, batches)

    print(json.dumps(answers_over(frame.mapInArrow(read, frame.schema), "executors")))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
