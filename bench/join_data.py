"""Orders and clicks of users as Parquet files, joins of them, and the same joins as Spark and DuckDB would say them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windloom import Loom

DAY = 24 * 3600
MICROS = 1_000_000
#: Of the join that most workloads ask: r/s = 10.
LENGTH, SLIDE = 3000, 300
REGIONS, PAGES = 20, 20


@dataclass(frozen=True)
class Written:
    """Files of both streams."""

    orders: Path
    clicks: Path
    per_second: tuple[float, float]


@contextmanager
def stored_streams(
    orders: int, clicks: int, keys: int, *, regions: int = REGIONS, files: int = 8, span: int = DAY
) -> Iterator[Written]:
    """So many tuples of each stream over `span` seconds, in order of time, in so many files each."""
    with tempfile.TemporaryDirectory(prefix="windloom-bench-") as folder:
        found = Written(Path(folder) / "orders", Path(folder) / "clicks", (orders / span, clicks / span))
        for seed, (place, count) in enumerate(((found.orders, orders), (found.clicks, clicks))):
            _write(place, count, keys, regions, files, span, seed)
        yield found


def _write(place: Path, count: int, keys: int, groups: int, files: int, span: int, seed: int) -> None:
    place.mkdir()
    rng = np.random.default_rng(seed)
    ticks = np.sort(rng.integers(0, span * MICROS, count))
    bounds = np.linspace(0, count, files + 1).astype(int)
    for number in range(files):
        own = ticks[bounds[number] : bounds[number + 1]]
        table = pa.table(
            {
                "ts": pa.array(own, pa.timestamp("us", "UTC")),
                "user": rng.integers(0, keys, len(own)),
                ("region", "page")[seed]: pa.array(rng.integers(0, groups, len(own)).astype(str)),
                ("price", "amount")[seed]: rng.integers(1, 100, len(own)),
            }
        )
        path = place / f"p{number:03d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number,) * 2)  # Spark follows files in order of their times


@dataclass(frozen=True)
class JoinText:
    """The parts of a join of orders o and clicks c, from which every engine's text is made; lengths are seconds."""

    name: str = "spent"
    aggregates: tuple[str, ...] = ("sum(c.amount) AS spent", "count(*) AS pairs")
    group: str = "o.region"
    lengths: tuple[int, int] = (LENGTH, LENGTH)
    slide: int = SLIDE

    @property
    def cql(self) -> str:
        first, second = self.lengths
        return (
            f"SELECT {self.group}, {', '.join(self.aggregates)}"
            f" FROM orders [RANGE {first} seconds SLIDE {self.slide} seconds] o"
            f" JOIN clicks [RANGE {second} seconds] c ON o.user = c.user GROUP BY {self.group}"
        )

    @property
    def columns(self) -> list[str]:
        return [self.group.rpartition(".")[2], *(aggregate.rpartition(" AS ")[2] for aggregate in self.aggregates)]

    def spark_sql(self) -> str:
        """Windows on both sides, then the join, then the aggregate: what users write first."""
        return (
            f"SELECT {self.group}, e AS window_end, {', '.join(self.aggregates)}"
            f" FROM (SELECT *, {self._window(0)} AS e FROM orders) o"
            f" JOIN (SELECT *, {self._window(1)} AS e FROM clicks) c USING (user, e) GROUP BY e, {self.group}"
        )

    def _window(self, side: int) -> str:
        start = (-self.lengths[side]) % self.slide
        return f"window(ts, '{self.lengths[side]} seconds', '{self.slide} seconds', '{start} seconds').end"

    def spark_sql_by_side(self) -> str:
        """The best that is written by hand: each side is aggregated per window, key and group before the join."""
        assert self == JoinText(lengths=self.lengths, slide=self.slide), "written out for one query"
        clicks = f"SELECT user, {self._window(1)} AS e, count(*) AS n, sum(amount) AS amount FROM clicks"
        return (
            "SELECT region, e AS window_end, sum(o.n * c.amount) AS spent, sum(o.n * c.n) AS pairs FROM"
            f" (SELECT user, region, {self._window(0)} AS e, count(*) AS n FROM orders GROUP BY user, region, e) o"
            f" JOIN ({clicks} GROUP BY user, e) c USING (user, e) GROUP BY e, region"
        )

    def duckdb_sql(self) -> str:
        """Every tuple once for each window it lies in, joined on the window's end and the key."""
        return (
            f"SELECT {self.group}, e AS window_end, {', '.join(self.aggregates)}"
            f" FROM ({self._expanded('orders', 0)}) o JOIN ({self._expanded('clicks', 1)}) c USING (user, e)"
            f" GROUP BY e, {self.group}"
        )

    def _expanded(self, stream: str, side: int) -> str:
        slide, overlap = self.slide * MICROS, self.lengths[side] // self.slide
        return f"SELECT *, t - t % {slide} + k * {slide} AS e FROM {stream}, range(1, {overlap + 1}) x(k)"


def grid_of_joins(count: int) -> list[JoinText]:
    """Joins that differ in ranges, aggregates and groups."""
    aggregates = (
        ("sum(c.amount) AS spent", "count(*) AS pairs"),
        ("sum(o.price) AS price", "count(*) AS pairs"),
        ("sum(o.price * c.amount) AS weighed",),
        ("avg(c.amount) AS mean", "count(*) AS pairs"),
    )
    return [
        JoinText(
            f"join_{i}",
            aggregates[i // 2 % len(aggregates)],
            ("o.region", "c.page")[i % 2],
            (SLIDE * (1 + i * 7 % 10), SLIDE * (1 + i // 10 % 10)),
        )
        for i in range(count)
    ]


def plain_queries(count: int) -> dict[str, str]:
    """Queries over one stream each: of all tuples, by region or page, and some by user."""
    found = {}
    for i in range(count):
        stream, group, value = (("orders", "region", "price"), ("clicks", "page", "amount"))[i % 2]
        by = (group, "", group, "user")[i // 2 % 4]
        slide = 3600 if by == "user" else SLIDE
        length = slide * (1 + i // 8 % 10)
        select = ", ".join(filter(None, [by, f"sum({value}) AS total", "count(*) AS n"]))
        window = f"[RANGE {length} seconds SLIDE {slide} seconds]"
        found[f"plain_{i}"] = f"SELECT {select} FROM {stream} {window}" + (f" GROUP BY {by}" if by else "")
    return found


def join_loom(spark: SparkSession, stored: Written, queries: dict[str, str]) -> Loom:
    loom = Loom(spark)
    loom.stream("orders", spark.read.parquet(str(stored.orders)), time="ts", rate=stored.per_second[0])
    loom.stream("clicks", spark.read.parquet(str(stored.clicks)), time="ts", rate=stored.per_second[1])
    for name, text in queries.items():
        loom.query(name, text)
    return loom


def spark_views(spark: SparkSession, stored: Written) -> None:
    spark.read.parquet(str(stored.orders)).createOrReplaceTempView("orders")
    spark.read.parquet(str(stored.clicks)).createOrReplaceTempView("clicks")


def stream_join(orders: DataFrame, clicks: DataFrame, text: JoinText) -> DataFrame:
    """Spark's own stream-stream join of windows with an aggregation over it."""
    sides = [
        frame.withWatermark("ts", "0 seconds").withColumn(
            "w", F.window("ts", f"{text.lengths[0]} seconds", f"{text.slide} seconds")
        )
        for frame in (orders, clicks)
    ]
    joined = sides[0].drop("ts").join(sides[1].drop("ts"), ["w", "user"])
    return joined.groupBy("w", "region").agg(F.sum("amount").alias("spent"), F.count("*").alias("pairs"))


def check_same(ours: pa.Table, theirs: pa.Table, text: JoinText) -> None:
    """The same rows: ends, groups and values. An average may be rounded otherwise."""
    left, right = (_in_order(table, text) for table in (ours, theirs))
    if left.num_rows != right.num_rows:
        raise AssertionError(f"{left.num_rows:,} rows, not {right.num_rows:,}: {text.cql}")
    for name in left.column_names:
        left_column, right_column = left[name], right[name]
        if pa.types.is_floating(left_column.type) or pa.types.is_decimal(right_column.type):
            left_column, right_column = (
                np.asarray(column.cast(pa.float64())) for column in (left_column, right_column)
            )
            same = bool(np.allclose(left_column, right_column, rtol=1e-9))
        else:
            same = left_column.to_pylist() == right_column.to_pylist()
        if not same:
            raise AssertionError(f"the values of '{name}' differ: {text.cql}")


def _in_order(table: pa.Table, text: JoinText) -> pa.Table:
    table = table.select(["window_end", *text.columns])
    end = table["window_end"]
    ticks = end if pa.types.is_integer(end.type) else pc.cast(end.cast(pa.timestamp("us", "UTC")), pa.int64())
    table = table.set_column(0, "window_end", ticks)
    return table.sort_by([("window_end", "ascending"), (text.columns[0], "ascending")])
