"""A program that runs one stream until its files are read: started, killed and started again by the kill test.

python -m support.stream_program FOLDER PLACEMENT [keep_tuples=TIME] [SINK=TARGET …]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from support.files import follow
from windloom import Loom, sink
from windloom.engine.handle import Handle
from windloom.engine.progress import RoundProgress
from windloom.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "avg": "SELECT symbol, avg(price) AS p, count(*) AS n FROM trades [RANGE 60 s SLIDE 20 s] GROUP BY symbol",
    "high": "SELECT symbol, max(price) AS p, min(volume) AS v FROM trades [RANGE 90 s SLIDE 30 s] GROUP BY symbol",
    "odd": "SELECT count(*) AS n, sum(volume) AS v FROM trades [TUMBLE 40 seconds] WHERE volume % 2 = 1",
    "pairs": "SELECT a.symbol, count(*) AS n, sum(a.volume * b.volume) AS v FROM trades [RANGE 60 s SLIDE 20 s] a"
    " JOIN trades [RANGE 40 s] b ON a.symbol = b.symbol WHERE b.price > 50 GROUP BY a.symbol",
    "changed": "SELECT symbol, count(*) AS n, max(volume) AS v FROM trades [RANGE 60 s SLIDE 20 s] WHERE price > 60"
    " GROUP BY symbol EMIT CHANGES",
    "every": "SELECT symbol, count(*) AS n FROM trades [TUMBLE 10 s] WHERE volume > 60 GROUP BY symbol EMIT EMPTY",
    "gone": "SELECT symbol, sum(volume) AS v FROM trades [TUMBLE 20 seconds] GROUP BY symbol",
}
#: From kept tuples; equal rows are there several times.
ROW_QUERIES = {
    "rows": "SELECT symbol, volume % 2 AS odd FROM trades [RANGE 40 s SLIDE 20 s] WHERE price > 60",
    "standing": "SELECT symbol, volume % 4 AS v FROM trades [RANGE 90 s SLIDE 30 s] WHERE price > 90 EMIT CHANGES",
    "alone": "SELECT symbol, volume FROM trades [TUMBLE 20 s] a WHERE NOT EXISTS (SELECT 1 FROM trades [TUMBLE 20 s] b"
    " WHERE b.symbol = a.symbol AND b.volume > a.volume)",
    "other": "SELECT symbol FROM trades [RANGE 40 s SLIDE 20 s] EXCEPT ALL SELECT symbol FROM trades [RANGE 40 s]"
    " WHERE volume > 30",
    "near": "SELECT a.symbol, a.volume AS v, b.volume AS w FROM trades a JOIN trades b WITHIN 10 seconds"
    " ON a.symbol = b.symbol AND a.volume < b.volume",
    "above": "SELECT a.symbol, count(*) AS n, sum(a.volume) AS v FROM trades [TUMBLE 20 s] a"
    " JOIN trades [TUMBLE 20 s] b ON a.price < b.price GROUP BY a.symbol",
}
#: What enters and leaves has no present result, so the sink `current` does not take it.
MOVING = {
    "entering": "SELECT ISTREAM symbol, volume FROM trades [RANGE 60 s SLIDE 20 s] WHERE volume > 80",
    "leaving": "SELECT DSTREAM symbol, volume % 3 AS v FROM trades [RANGE 60 s SLIDE 20 s] WHERE volume > 70",
}
#: Added when the stream runs: its sums and edges are kept for another query, so it answers from all of history.
ADDED = "SELECT symbol, count(*) AS n FROM trades [RANGE 40 s SLIDE 20 s] GROUP BY symbol"
ADD_AFTER, REMOVE_AFTER = 2, 4
#: Guests come every third round and go as the next but one comes. What "avg" reports of their windows, they report too;
#: largest volumes are kept for nobody else, so they begin with the first window that no tuple has come for yet.
_GUEST_ROWS = "symbol, avg(price) AS p, count(*) AS n, max(volume) AS v"
GUEST = f"SELECT {_GUEST_ROWS} FROM trades [RANGE 60 s SLIDE 20 s] GROUP BY symbol"
GUEST_EVERY, MOST_GUESTS = 3, 2


def declared(sinks: Collection[str]) -> dict[str, str]:
    return {**QUERIES, **ROW_QUERIES, **({} if "current" in sinks else MOVING)}


def staying(sinks: Collection[str]) -> tuple[str, ...]:
    """Queries that are there from the first round to the last."""
    return tuple(name for name in declared(sinks) if name != "gone")


def start(
    spark: SparkSession,
    folder: Path,
    sinks: Mapping[str, str] | None = None,
    *,
    finish: bool,
    keep_tuples: str | None = None,
    done: Callable[[RoundProgress], None] = lambda _: None,
) -> Handle:
    """`sinks` are more than Parquet, by name, with their targets; `done` is called after every round."""
    loom = Loom(spark)
    loom.stream("trades", follow(spark, folder / "in"), time="ts", delay="30 seconds")
    for name, text in declared(sinks or {}).items():
        loom.query(name, text)
    handle: Handle | None = None

    def change(progress: RoundProgress) -> None:
        done(progress)
        if handle is not None:
            change_queries(handle, progress.round)

    handle = loom.start(
        ["parquet", *(sink(*target) for target in (sinks or {}).items())],
        path=folder / "out",
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True},
        keep="1 day",
        finish=finish,
        snapshot_rounds=3,
        keep_tuples=keep_tuples,
        progress=change,
    )
    return handle


def change_queries(handle: Handle, round: int) -> None:
    """Queries come and go, whenever the stream has got so far; again if a crash came before the record."""
    if round >= ADD_AFTER and "added" not in handle.queries:
        handle.add("added", ADDED)
    if round >= REMOVE_AFTER and "gone" in handle.queries:
        handle.remove("gone")
    if round % GUEST_EVERY == 0:
        handle.add(f"guest_{round}", GUEST)
        guests = [name for name in handle.queries if name.startswith("guest_")]
        if len(guests) > MOST_GUESTS:
            handle.remove(guests[0])


def main() -> int:
    conf = {"spark.sql.shuffle.partitions": "2"}
    spark = local_session(cores=2, memory="1g", app="windloom-kill", conf=conf)
    _, folder, *others = sys.argv
    sinks = {name: target for name, _, target in (text.partition("=") for text in others)}
    kept = sinks.pop("keep_tuples", None)
    start(spark, Path(folder), sinks, finish=False, keep_tuples=kept).await_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
