"""Unlike queries over bids: catalogs drawn at random, always the same ones, and the bids as Parquet files."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from windloom import Loom

EVENTS, PER_SECOND = 1_000_000, 1_000
#: Events per file; on a stream a file is a round.
PER_FILE = 100_000
GROUPINGS: list[tuple[str, ...]] = [(), ("auction",), ("channel",), ("country",), ("channel", "country"), ("bidder",)]
#: `None` stands here twice: a sixth of the queries take every bid.
PREDICATES = [
    None,
    None,
    "price > 100",
    "price > 500",
    "channel = 'web'",
    "channel IN ('app','api')",
    "country = 'US'",
    "country <> 'US' AND price > 50",
    "price BETWEEN 10 AND 20",
    "auction < 10",
    "bidder % 2 = 0",
    "country = 'DE' OR country = 'FR'",
]
#: Range and slide in seconds.
WINDOWS = [(10, 10), (60, 10), (300, 60), (3600, 300), (900, 60), (60, 60), (1800, 600)]
_SUMMARIES = [
    "count(*) AS n",
    "sum(price) AS s",
    "avg(price) AS a",
    "max(price) AS hi",
    "min(price) AS lo",
    "stddev(price) AS sd",
]
_COMPUTED = ["sum(price) FILTER (WHERE channel = 'web') AS w", "max(price) - min(price) AS spread"]
PLAIN = _SUMMARIES + _COMPUTED
MIXED = [
    *_SUMMARIES,
    "count(DISTINCT bidder) AS u",
    "last(price) AS l",
    *_COMPUTED,
    "approx_count_distinct(bidder) AS au",
    "median(price) AS med",
    "max_by(bidder, price) AS best",
]
HAVING = "count(*) > 5"
_CHANNELS = ["web", "app", "api", "partner"]
_COUNTRIES = ["US", "DE", "FR", "BR", "IN", "JP", "CN"]


@dataclass(frozen=True)
class UnlikeQuery:
    """The parts of a query, from which every engine's text is made; `length` and `slide` are seconds."""

    name: str
    groups: tuple[str, ...]
    aggregates: tuple[str, ...]
    predicate: str | None
    length: int
    slide: int
    having: str | None

    @property
    def select(self) -> str:
        return ", ".join(self.groups + self.aggregates)

    @property
    def cql(self) -> str:
        window = f"[RANGE {self.length} seconds SLIDE {self.slide} seconds]"
        return f"SELECT {self.select} FROM bids {window}{self.where}{self.group_by()}{self.tail}"

    @property
    def where(self) -> str:
        return f" WHERE {self.predicate}" if self.predicate else ""

    @property
    def tail(self) -> str:
        return f" HAVING {self.having}" if self.having else ""

    def group_by(self, *before: str) -> str:
        """The GROUP BY with what an engine groups windows by before the query's own columns."""
        grouped = (*before, *self.groups)
        return f" GROUP BY {', '.join(grouped)}" if grouped else ""


def unlike_queries(count: int, mixed: bool) -> list[UnlikeQuery]:
    """The first `count` of an endless catalog; `mixed` adds distinct counts, medians, picks and sketches."""
    draw = random.Random(3)
    found = []
    for number in range(count):
        groups = draw.choice(GROUPINGS)
        size = draw.randint(1, 3)
        aggregates = tuple(draw.sample(MIXED if mixed else PLAIN, size))
        predicate, (length, slide) = draw.choice(PREDICATES), draw.choice(WINDOWS)
        having = HAVING if draw.random() < 0.2 else None
        found.append(UnlikeQuery(f"q{number}", groups, aggregates, predicate, length, slide, having))
    return found


def write_bids(folder: Path, events: int = EVENTS, per_second: int = PER_SECOND, per_file: int = PER_FILE) -> None:
    """Files in order of event time, at even distances; the first files of a longer stream are those of a shorter."""
    rng = np.random.default_rng(5)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(-(-events // per_file)):
        first, count = number * per_file, min(per_file, events - number * per_file)
        ticks = np.arange(first, first + count, dtype=np.int64) * (1_000_000 // per_second)
        columns = {
            "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
            "auction": rng.zipf(1.3, count).clip(1, 1000),
            "bidder": rng.integers(0, 5000, count),
            "price": np.round(rng.lognormal(4, 1, count), 2),
            "channel": pa.array(rng.choice(_CHANNELS, count)),
            "country": pa.array(rng.choice(_COUNTRIES, count)),
        }
        path = folder / f"p{number:03d}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_700_000_000 + number,) * 2)  # Spark follows files in order of their times


@contextmanager
def stored_bids(events: int = EVENTS, per_second: int = PER_SECOND, per_file: int = PER_FILE) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as folder:
        write_bids(Path(folder), events, per_second, per_file)
        yield Path(folder)


def unlike_loom(spark: SparkSession, folder: Path, queries: list[UnlikeQuery]) -> Loom:
    loom = Loom(spark)
    loom.stream("bids", spark.read.parquet(str(folder)), time="ts", rate=PER_SECOND)
    for query in queries:
        loom.query(query.name, query.cql)
    return loom
