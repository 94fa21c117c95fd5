"""Workloads of shared scans: queries that differ in predicate, and in grouping."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pyspark.sql import DataFrame, SparkSession

from bench.measure import Outcome, paired, seconds
from bench.sessions import session
from bench.workloads import PER_SECOND, SELECT, stored_trades
from windloom import Loom

#: Range and slide in seconds.
TEN_WINDOWS = [(60 * (i + 1), 10 * (i % 3 + 1)) for i in range(10)]
MANY_WINDOWS = [(120 * (i + 1), 60 * (i % 5 + 1)) for i in range(75)]
#: Thirty conditions on three columns, some of which imply or exclude others.
PREDICATES = [
    *(f"price > {70 + 6 * i}" for i in range(10)),
    *(f"volume BETWEEN {80 * i} AND {80 * i + 160}" for i in range(10)),
    *(f"price < {90 + 2 * i} AND volume > {30 * i}" for i in range(10)),
]
#: Every symbol belongs to one sector, every sector to one region: 1,000, 100 and 10 of them.
GROUPINGS = [("region",), ("sector",), ("symbol",), ("region", "sector", "symbol")]


def loom_of(
    spark: SparkSession,
    trades: DataFrame,
    predicates: Sequence[str],
    groupings: Sequence[tuple[str, ...]],
    windows: Sequence[tuple[int, int]],
) -> Loom:
    """A query for each predicate, grouping and window."""
    loom = Loom(spark)
    loom.stream("trades", trades, time="ts", rate=PER_SECOND)
    for i, predicate in enumerate(predicates):
        where = f"WHERE {predicate}" if predicate else ""
        for j, grouping in enumerate(groupings):
            columns = ", ".join(grouping)
            for k, (length, slide) in enumerate(windows):
                window = f"[RANGE {length} seconds SLIDE {slide} seconds]"
                select = f"SELECT {columns + ', ' if columns else ''}{SELECT} FROM trades {window} {where}"
                loom.query(f"q{i}_{j}_{k}", select + (f" GROUP BY {columns}" if columns else ""))
    return loom


def predicates(repeats: int) -> Outcome:
    spark = session()
    with stored_trades(spark, 1) as trades:
        plain = loom_of(spark, trades, [""], [()], TEN_WINDOWS)
        filtered = loom_of(spark, trades, PREDICATES, [()], TEN_WINDOWS)
        found = paired(filtered.run, plain.run, repeats)
        stats = filtered.run().stats
    plan = filtered.plan()
    note = f"{len(plan.scans)} scan(s) for {len(plan.sets)} sets; {stats.partials:,} partials, {stats.results:,} rows"
    details = {**found, "partials": stats.partials, "results": stats.results, "scans": len(plan.scans)}
    name = "30 predicates × 10 windows / 10 windows"
    return Outcome(name, float(str(found["ratio"])), "ratio", 2.5, "<=", note, details)


def groupings(repeats: int) -> Outcome:
    spark = session()
    with stored_trades(spark, 1000) as stored:
        number = "CAST(substring(symbol, 2) AS INT)"
        trades = stored.selectExpr("*", f"{number} % 100 AS sector", f"{number} % 10 AS region")
        together = loom_of(spark, trades, [""], GROUPINGS, MANY_WINDOWS)
        each = [loom_of(spark, trades, [""], [grouping], MANY_WINDOWS) for grouping in GROUPINGS]
        for loom in (together, *each):
            loom.run()  # also measures the groups, which later plans rest on
        pairs = [(seconds(together.run), sum(seconds(single_loom.run) for single_loom in each)) for _ in range(repeats)]
        stats = together.run().stats
    plan = together.plan()
    figure = median(ours / theirs for ours, theirs in pairs)
    note = f"{len(plan.scans)} scan(s) for 4 sets; {stats.partials:,} partials, {stats.results:,} rows"
    details = {"pairs": pairs, "partials": stats.partials, "results": stats.results, "scans": len(plan.scans)}
    return Outcome("300 queries, 4 groupings / one loom for each", figure, "ratio", 0.6, "<=", note, details)


SCAN_WORKLOADS = {"predicates": predicates, "groupings": groupings}
