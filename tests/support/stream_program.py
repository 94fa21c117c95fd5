"""A program that runs one stream until its files are read: started, killed and started again by the kill test.

python -m support.stream_program FOLDER [--finish]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from support.files import follow
from windloom import Loom
from windloom.engine.streaming import Handle
from windloom.engine.streaming.progress import RoundProgress
from windloom.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "avg": "SELECT symbol, avg(price) AS p, count(*) AS n FROM trades [RANGE 60 s SLIDE 20 s] GROUP BY symbol",
    "high": "SELECT symbol, max(price) AS p, min(volume) AS v FROM trades [RANGE 90 s SLIDE 30 s] GROUP BY symbol",
    "odd": "SELECT count(*) AS n, sum(volume) AS v FROM trades [TUMBLE 40 seconds] WHERE volume % 2 = 1",
    "gone": "SELECT symbol, sum(volume) AS v FROM trades [TUMBLE 20 seconds] GROUP BY symbol",
}
#: Added when the stream runs: its sums and edges are kept for another query, so it answers from all of history.
ADDED = "SELECT symbol, count(*) AS n FROM trades [RANGE 40 s SLIDE 20 s] GROUP BY symbol"
ADD_AFTER, REMOVE_AFTER = 2, 4


def start(spark: SparkSession, folder: Path, *, finish: bool) -> Handle:
    loom = Loom(spark)
    loom.stream("trades", follow(spark, folder / "in"), time="ts", delay="30 seconds")
    for name, text in QUERIES.items():
        loom.query(name, text)
    handle: Handle | None = None

    def change(done: RoundProgress) -> None:
        if handle is not None:
            change_queries(handle, done.round)

    handle = loom.start(
        path=folder / "out",
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True},
        keep="1 day",
        finish=finish,
        snapshot_rounds=3,
        progress=change,
    )
    return handle


def change_queries(handle: Handle, round: int) -> None:
    """One query comes and one goes, whenever the stream has got so far; again if a crash came before the record."""
    if round >= ADD_AFTER and "added" not in handle.queries:
        handle.add("added", ADDED)
    if round >= REMOVE_AFTER and "gone" in handle.queries:
        handle.remove("gone")


def main() -> int:
    spark = local_session(cores=2, memory="1g", app="windloom-kill")
    handle = start(spark, Path(sys.argv[1]), finish="--finish" in sys.argv)
    handle.await_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
