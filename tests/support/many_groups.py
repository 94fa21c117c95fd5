"""A stream of trades with many groups, and its queries."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from support.files import follow
from support.trades import ROWS
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windloom.engine.handle import Handle

QUERIES = {
    "avg": "SELECT symbol, avg(price) AS p FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
    "max": "SELECT symbol, max(price) AS p FROM trades [RANGE 50 seconds SLIDE 20 seconds] GROUP BY symbol",
    "close": "SELECT symbol, last(price) AS p, min_by(volume, price) FILTER (WHERE volume > 2) AS v"
    " FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol",
    "big": "SELECT count(*) AS n, sum(volume) AS v FROM trades [TUMBLE 40 seconds] WHERE volume > 5",
    "ratio": "SELECT symbol, sum(price)/count(*) AS r FROM trades [TUMBLE 60 s] GROUP BY symbol HAVING count(*) > 1",
}
#: From kept tuples.
ROW_QUERIES = {
    "rows": "SELECT symbol, volume FROM trades [RANGE 30 seconds SLIDE 10 seconds] WHERE volume > 5",
    "near": "SELECT a.symbol, a.volume AS v, b.volume AS w FROM trades a JOIN trades b WITHIN 10 seconds"
    " ON a.symbol = b.symbol AND a.volume < b.volume",
    "above": "SELECT count(*) AS n FROM trades [TUMBLE 20 s] a JOIN trades [TUMBLE 20 s] b ON a.price < b.price",
    "close_by": "SELECT a.volume AS v, b.volume AS w FROM trades a JOIN trades b WITHIN 5 seconds"
    " ON a.symbol = b.symbol",
}
EVERY = {**QUERIES, **ROW_QUERIES}
ADDED = "SELECT symbol, sum(volume) AS v FROM trades [RANGE 40 seconds SLIDE 15 seconds] GROUP BY symbol"


def random_trades(seed: int, count: int = 160) -> list[tuple[Any, ...]]:
    """Many symbols and none, disorder beyond the delay, prices that add up without rounding."""
    rng = random.Random(seed)
    start, second = ROWS[0][0], (ROWS[1][0] - ROWS[0][0]) / 7
    return [
        (
            start + second * (7 * (i // 3) - rng.choice([0, 0, 0, 5, 40])),
            rng.choice([None, "", *"ABCDEFG"]),
            None if rng.random() < 0.1 else rng.randint(1, 400) / 4,
            i % 9,
        )
        for i in range(count)
    ]


def start(
    spark: SparkSession,
    source: Path,
    place: Path | str,
    queries: Mapping[str, str] = QUERIES,
    **options: Any,
) -> Handle:
    loom = Loom(spark)
    loom.stream("trades", follow(spark, source), time="ts", delay="10 seconds")
    for name, text in queries.items():
        loom.query(name, text)
    options.setdefault("trigger", {"availableNow": True})
    return loom.start(
        "parquet",
        path=f"{place}/out",
        checkpoint=f"{place}/c",
        snapshot_rounds=2,
        **options,
    )


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)
