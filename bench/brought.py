"""DataFrames that people have written, given to one loom as they are, against running each of them by Spark."""

from __future__ import annotations

import statistics
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.bids import EVENTS, UnlikeQuery, stored_bids, unlike_queries
from bench.measure import Outcome, seconds
from bench.sessions import session
from windloom import Loom


def brought_100(repeats: int, *, queries: int = 100, events: int = EVENTS) -> Outcome:
    """Reading the plans and registering them counts, and so do all rows as Arrow; Spark throws its rows away.

    Spark answers each DataFrame once, after one of them has warmed it up. Some answers are compared with Spark's.
    """
    spark = session()
    with stored_bids(events) as folder:
        bids = spark.read.parquet(str(folder))
        jobs = {query.name: written(bids, query) for query in unlike_queries(queries, mixed=False)}
        loom = one_loom(jobs)
        results = loom.run()
        for name in list(jobs)[:: max(1, queries // 10)]:
            assert results[name].schema == jobs[name].schema, name
            assert (verified := loom.verify(name, results)), verified
        del results
        ours = [(seconds(partial(one_loom, jobs)), seconds(partial(answers, one_loom(jobs)))) for _ in range(repeats)]
        _thrown_away(next(iter(jobs.values())))
        took = {name: seconds(partial(_thrown_away, job)) for name, job in jobs.items()}
    reading, running = (statistics.median(column) for column in zip(*ours, strict=True))
    theirs = sum(took.values())
    note = f"{running:.2f} s, and {reading:.2f} s to read the plans, against {theirs:.0f} s"
    name = f"{queries} DataFrames in one loom / one by one"
    return Outcome(name, (reading + running) / theirs, "ratio", 0.05, "<=", note, {"took": took})


def written(bids: DataFrame, query: UnlikeQuery) -> DataFrame:
    """The query as someone writes it with functions."""
    if query.predicate is not None:
        bids = bids.where(query.predicate)
    grouped = bids.groupBy(F.window("ts", f"{query.length} seconds", f"{query.slide} seconds"), *query.groups)
    if query.having is None:
        return grouped.agg(*map(F.expr, query.aggregates))
    answered = grouped.agg(*map(F.expr, query.aggregates), F.count("*").alias("bids"))
    return answered.where("bids > 5").drop("bids")


def one_loom(jobs: dict[str, DataFrame]) -> Loom:
    loom = Loom(session())
    for name, job in jobs.items():
        loom.query(name, job)
    return loom


def answers(loom: Loom) -> int:
    """Run the loom and take all answers as Arrow, one after the other."""
    results = loom.run()
    return sum(results.arrow(name).num_rows for name in results)


def _thrown_away(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


BROUGHT_WORKLOADS = {"brought_100": brought_100}
