"""Workloads of joins: windows of orders and clicks of the same users, 2M tuples each over a day, r/s = 10.

Answers count once all of them are there as Arrow. `--events` gives the tuples of both streams together.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.join_data import (
    SLIDE,
    JoinText,
    Written,
    check_same,
    grid_of_joins,
    join_loom,
    plain_queries,
    spark_views,
    stored_streams,
    stream_join,
)
from bench.measure import Outcome, paired, seconds
from bench.sessions import session
from windloom import Loom
from windloom.optimizer.joins.plan import possible_folds

EVENTS, STREAM_EVENTS, GRID_EVENTS = 4_000_000, 2_000_000, 400_000
#: Of the workloads that have one number of keys.
KEYS = 10_000
NOW = {"availableNow": True}


def answered(loom: Loom, **options: str) -> int:
    """Run the loom, and take all answers as Arrow; tells how many rows they have, and keeps none."""
    results = loom.run(**options)  # type: ignore[arg-type]
    return sum(results.arrow(name).num_rows for name in results)


def against_sql(keys: int, by_side: bool, bar: float, repeats: int, events: int) -> Outcome:
    """One join by Spark's SQL and by a loom, which must have the same rows."""
    text, spark = JoinText(), session()
    sql = text.spark_sql_by_side() if by_side else text.spark_sql()
    with stored_streams(events // 2, events // 2, keys) as stored:
        spark_views(spark, stored)
        loom = join_loom(spark, stored, {text.name: text.cql})
        check_same(loom.run().arrow(text.name), spark.sql(sql).toArrow(), text)  # compiles, too
        answered(loom)
        found = paired(lambda: spark.sql(sql).toArrow(), lambda: answered(loom), repeats, warm=0)
    note = f"{found['our_seconds']:.2f} s against {found['base_seconds']:.2f} s; {_shown(loom)}"
    what = "aggregate by side, then join" if by_side else "window(), join, aggregate"
    return Outcome(f"{keys:,} keys: Spark {what} / ours", float(str(found["ratio"])), "ratio", bar, ">=", note, found)


def _shown(loom: Loom) -> str:
    """The plan of the first join, as EXPLAIN names it."""
    text = loom.explain()
    lines = [line.split() for line in text.splitlines()]
    return ", ".join(f"{line[0]} {line[1].rstrip(':')}" for line in lines if line[:1] in (["plan"], ["fold"]))


def _raw(keys: int) -> Callable[..., Outcome]:
    def workload(repeats: int, *, events: int = EVENTS) -> Outcome:
        return against_sql(keys, False, 10, max(1, repeats // 3), events)  # theirs takes a minute

    return workload


def _by_side(keys: int) -> Callable[..., Outcome]:
    def workload(repeats: int, *, events: int = EVENTS) -> Outcome:
        return against_sql(keys, True, 3, max(1, repeats // 2), events)

    return workload


def hundred(repeats: int, *, events: int = EVENTS) -> Outcome:
    """A hundred joins of one pair of streams, which differ in both ranges, groups and aggregates."""
    every, spark = grid_of_joins(100), session()
    with stored_streams(events // 2, events // 2, KEYS) as stored:
        many = join_loom(spark, stored, {join.name: join.cql for join in every})
        single = join_loom(spark, stored, {"spent": JoinText().cql})
        rows = [answered(loom) for loom in (many, single)]
        found = paired(lambda: answered(many), lambda: answered(single), repeats, warm=1)
    note = f"{found['base_seconds']:.2f} s and {rows[0]:,} rows against {found['our_seconds']:.2f} s and {rows[1]:,}"
    return Outcome("100 joins / one", float(str(found["ratio"])), "ratio", 2, "<=", note, found)


def beside_plain(repeats: int, *, events: int = EVENTS) -> Outcome:
    """Twenty joins in one loom with eighty plain queries, against these alone."""
    plain, joins, spark = plain_queries(80), {join.name: join.cql for join in grid_of_joins(20)}, session()
    with stored_streams(events // 2, events // 2, KEYS) as stored:
        both, alone = join_loom(spark, stored, {**plain, **joins}), join_loom(spark, stored, plain)
        rows = [answered(loom) for loom in (both, alone)]
        found = paired(lambda: answered(both), lambda: answered(alone), repeats, warm=1)
    note = f"{found['base_seconds']:.2f} s and {rows[0]:,} rows against {found['our_seconds']:.2f} s and {rows[1]:,}"
    return Outcome("20 joins + 80 plain / 80 plain", float(str(found["ratio"])), "ratio", 1.5, "<=", note, found)


def against_duckdb(repeats: int, *, events: int = EVENTS, queries: int = 20) -> Outcome:
    """DuckDB answers one query after the other; both must have the same rows."""
    every, spark = grid_of_joins(queries), session()
    with (
        stored_streams(events // 2, events // 2, KEYS) as stored,
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _open_database, (stored,)) as duck,
    ):
        loom = join_loom(spark, stored, {join.name: join.cql for join in every})
        results = loom.run()
        for text in every:
            check_same(results.arrow(text.name), duck.submit(_duckdb_arrow, text).result(), text)
        del results
        theirs = seconds(lambda: duck.submit(_duckdb_rows, every).result())
        answered(loom)
        ours = statistics.median(seconds(lambda: answered(loom)) for _ in range(repeats))
    note = f"{ours:.2f} s against {theirs:.1f} s, one by one, one run"
    return Outcome(f"DuckDB / ours, {queries} joins", theirs / ours, "ratio", 3, ">=", note)


_database: duckdb.DuckDBPyConnection  # of the other process


def _open_database(stored: Written) -> None:
    global _database
    _database = duckdb.connect()
    _database.execute("SET threads = 2")
    for name in ("orders", "clicks"):
        files = f"{getattr(stored, name)}/*.parquet"
        _database.execute(f"CREATE VIEW {name} AS SELECT *, epoch_us(ts) AS t FROM read_parquet('{files}')")


def _duckdb_arrow(text: JoinText) -> pa.Table:
    return _database.sql(text.duckdb_sql()).to_arrow_table()


def _duckdb_rows(texts: Iterable[JoinText]) -> int:
    return sum(_duckdb_arrow(text).num_rows for text in texts)


def against_streams(repeats: int, *, events: int = STREAM_EVENTS, rounds: int = 4) -> Outcome:
    """Spark's stream-stream join of windows with an aggregation over it, and the same join as a loom's stream."""
    text, spark = JoinText(), session()
    with stored_streams(events // 2, events // 2, KEYS, files=rounds) as stored:
        _our_stream(spark, stored, text)  # compiles
        ours = [_our_stream(spark, stored, text) for _ in range(max(1, repeats // 3))]
        theirs, table = _spark_stream(spark, stored, text)
    mine = ours[0][1]
    common = pa.compute.is_in(mine["window_end"], table["window_end"])
    check_same(mine.filter(common), table, text)
    took = statistics.median(took_ours for took_ours, _ in ours)
    note = f"{took:.1f} s against {theirs:.1f} s in {rounds} rounds; {mine.num_rows:,} rows against {table.num_rows:,}"
    return Outcome("Spark's stream-stream join / our stream", theirs / took, "ratio", 10, ">=", note)


def _followed(spark: SparkSession, place: Path) -> DataFrame:
    schema = spark.read.parquet(str(place)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))


def _our_stream(spark: SparkSession, stored: Written, text: JoinText) -> tuple[float, pa.Table]:
    loom = Loom(spark)
    for name, place, rate in zip(("orders", "clicks"), (stored.orders, stored.clicks), stored.per_second, strict=True):
        loom.stream(name, _followed(spark, place), time="ts", rate=rate)
    loom.query(text.name, text.cql)
    with tempfile.TemporaryDirectory() as checkpoint:
        handles = []

        def run() -> None:
            handles.append(loom.start("memory", checkpoint=checkpoint, trigger=NOW))
            handles[0].await_termination()

        took = seconds(run)
        return took, handles[0].arrow(text.name)


def _spark_stream(spark: SparkSession, stored: Written, text: JoinText) -> tuple[float, pa.Table]:
    answers = stream_join(_followed(spark, stored.orders), _followed(spark, stored.clicks), text)
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = answers.writeStream.format("memory").queryName("theirs").option("checkpointLocation", checkpoint)

        def run() -> None:
            writer.trigger(availableNow=True).start().awaitTermination()

        took = seconds(run)
        columns = ["w.end AS window_end", *text.columns]
        return took, spark.table("theirs").selectExpr(*columns).toArrow()


@dataclass(frozen=True)
class Forced:
    """A point of the grid: seconds of the chosen plan and of the forced ones, and what was chosen."""

    chosen: str
    auto: float
    forced: dict[str, float]

    @property
    def best(self) -> float:
        return min(self.forced.values())


def against_forced(repeats: int, *, events: int = GRID_EVENTS) -> Outcome:
    """The chosen plan against the best of all forced ones, over the grid of source D's figure 5."""
    found = {name: _all_plans(setting, max(2, repeats // 2)) for name, setting in grid(events).items()}
    figure = sum(point.auto for point in found.values()) / sum(point.best for point in found.values())
    worst = max(found, key=lambda name: found[name].auto / found[name].best)
    ratio = found[worst].auto / found[worst].best
    note = f"{len(found)} points; the worst is {worst} with {ratio:.2f} ({found[worst].chosen})"
    points = {name: asdict(point) for name, point in found.items()}
    return Outcome("auto / best forced plan, grid of fig. 5", figure, "ratio", 1.15, "<=", note, {"points": points})


def _all_plans(point: Point, repeats: int) -> Forced:
    spark = session()
    with stored_streams(*point.counts, point.keys, regions=point.regions) as stored:
        loom = join_loom(spark, stored, {point.text.name: point.text.cql})
        plan = loom.plan()
        folds = [fold for fold in possible_folds(plan.joins[0], plan.sets) if fold != "recalculate"]
        took = _fastest(loom, [*product(("LAP", "EAP10", "EAP01", "EAP11"), folds)], repeats)
        return Forced(_shown(loom), took.pop("auto auto"), took)


def _fastest(loom: Loom, forced: list[tuple[str, str]], repeats: int) -> dict[str, float]:
    """The least seconds of each plan; plans take turns, so that whatever else the machine does falls on all."""
    plans = [("auto", "auto"), *forced]
    runs = {" ".join(plan): partial(answered, loom, joins=plan[0], fold=plan[1]) for plan in plans}
    for run in runs.values():
        run()
    turns = [{plan: seconds(run) for plan, run in runs.items()} for _ in range(repeats)]
    return {plan: min(turn[plan] for turn in turns) for plan in runs}


@dataclass(frozen=True)
class Point:
    """One setting of the grid; windows are in slides."""

    counts: tuple[int, int]
    keys: int = 1000
    regions: int = 150
    windows: tuple[int, int] = (10, 4)

    @property
    def text(self) -> JoinText:
        return JoinText(lengths=(self.windows[0] * SLIDE, self.windows[1] * SLIDE))


def grid(events: int) -> dict[str, Point]:
    """What figure 5 varies: a window (a), the groups of a side (b), a rate (c), the selectivity (d)."""
    half = events // 2
    both = Point((half, half))
    found = {f"a: w1 = {n} slides": replace(both, windows=(n, 4)) for n in (1, 4, 40)}
    found |= {f"b: g1 = {groups:,}": replace(both, regions=groups) for groups in (1, 81, 6561)}
    found |= {"c: rates 1 : 10": Point((half // 10, half)), "c: rates 10 : 1": Point((half, half // 10))}
    found |= {f"d: {keys:,} keys": replace(both, keys=keys) for keys in (10, 10_000, 100_000)}
    return found


JOIN_WORKLOADS: dict[str, Callable[..., Outcome]] = {
    "joins_spark_1k": _raw(1_000),
    "joins_spark_10k": _raw(10_000),
    "joins_spark_100k": _raw(100_000),
    "joins_sql_1k": _by_side(1_000),
    "joins_sql_10k": _by_side(10_000),
    "joins_sql_100k": _by_side(100_000),
    "joins_hundred": hundred,
    "joins_beside": beside_plain,
    "joins_stream": against_streams,
    "joins_forced": against_forced,
    "joins_duckdb": against_duckdb,
}
