"""Measures the time Spark takes to make partials: per job and shuffle, tuple, partial, and the columns of both."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from windloom.optimizer.cost.seconds import compared_classes
from windloom_tools.calibration.fit import Fit, fit
from windloom_tools.calibration.kernels import Tell

if TYPE_CHECKING:
    from windloom.plan.plan import Plan
    from windloom.spark.api import DataFrame, SparkSession

PER_SECOND = 1_000
_ONE = "count(*) AS n"
_FIVE = "sum(price) AS s, max(price) AS h, min(price) AS l, sum(volume) AS v, count(*) AS n"


@dataclass(frozen=True, slots=True)
class Job:
    """A plan of tumbling windows of these lengths, over this many symbols, or without groups."""

    keys: int
    seconds: tuple[int, ...]
    select: str = _ONE
    share: float = 1.0  # the share of the events


JOBS = (
    Job(1, (10,)),
    Job(1, (10,), _FIVE),
    Job(1, (7, 11, 13)),
    Job(1, (7, 11, 13), _FIVE),
    Job(1, (1000,), share=0.02),
    Job(100, (10,), _FIVE, share=0.5),
    Job(100, (1,), share=0.2),
    Job(100, (1,), _FIVE, share=0.2),
    Job(5_000, (1,), share=0.05),
    Job(5_000, (1,), _FIVE, share=0.05),
    Job(5_000, (60,), _FIVE, share=0.5),
)


def measure_spark(spark: SparkSession, quick: bool, tell: Tell, job: float) -> Fit:
    """`job` is the seconds of a job that only projects; the extra time of an aggregating job is its shuffle."""
    from windloom.plan.scans import NativeScan
    from windloom.spark.native import partials_frame
    from windloom.spark.sources.read import synthetic_trades

    events = 1_000_000 if quick else 5_000_000
    passes = 2 if quick else 4
    terms: list[dict[str, float]] = []
    warming = 2  # Spark generates code, and Java compiles it
    with tempfile.TemporaryDirectory(prefix="windloom-calibrate-") as folder:
        frames = {}
        for spark_job in JOBS:
            name = f"{spark_job.keys}-{spark_job.share}"
            if name not in frames:
                path = str(Path(folder) / name)
                made = synthetic_trades(spark, int(events * spark_job.share), PER_SECOND, spark_job.keys)
                made.coalesce(4).write.parquet(path)
                frames[name] = spark.read.parquet(path)
        cases = []
        for spark_job in JOBS:
            frame = frames[f"{spark_job.keys}-{spark_job.share}"]
            cases.append((spark_job, plan_of_job(spark, spark_job, frame), frame))
        least = [np.inf] * len(cases)
        for number in range(warming + passes):
            for i, (spark_job, plan, frame) in enumerate(cases):
                stage = "warming up" if number < warming else f"pass {number - warming + 1} of {passes}"
                tell(f"Spark job {i + 1} of {len(cases)}, {stage}")
                # A new frame each time, because Spark keeps what a frame has shuffled.
                (scan,) = plan.scans
                assert isinstance(scan, NativeScan)
                partials, took = _timed(spark, partials_frame(scan, plan.stream("trades"), frame))
                if number >= warming:
                    least[i] = min(least[i], took)
                if number == 0:
                    terms.append(terms_of(plan, events * spark_job.share, partials))
    return fit(terms, [max(seconds - job, 1e-3) for seconds in least])


def _timed(spark: SparkSession, frame: DataFrame) -> tuple[int, float]:
    """The partials, and the seconds they would take if Spark had all cores: its processor time divided by its cores."""
    from windloom.spark.session import java_cpu_seconds

    begun, cpu, here = time.perf_counter(), java_cpu_seconds(spark), time.thread_time()
    partials = frame.toArrow().num_rows
    used = java_cpu_seconds(spark)
    if cpu is None or used is None:
        return partials, time.perf_counter() - begun
    cores = spark.sparkContext.defaultParallelism
    return partials, max((used - cpu) / cores, 1e-3) + time.thread_time() - here


def plan_of_job(spark: SparkSession, job: Job, frame: DataFrame) -> Plan:
    from windloom.engine import Loom

    loom = Loom(spark)
    loom.stream("trades", frame, time="ts", rate=PER_SECOND)
    head, tail = ("symbol, ", " GROUP BY symbol") if job.keys > 1 else ("", "")
    for seconds in job.seconds:
        text = f"SELECT {head}{job.select} FROM trades [TUMBLE {seconds} seconds]{tail}"
        loom.query(f"every {seconds}", text)
    return loom.plan(strategy="shared", technique="recalculate", intake="native")


def terms_of(plan: Plan, tuples: float, partials: int) -> dict[str, float]:
    """The terms of a plan with one set."""
    partial_set = plan.sets[0]
    fields = sum(len(planned.fields) for planned in partial_set.components)
    return {
        "shuffle": 1.0,
        "tuple": tuples,
        "tuple_field": tuples * fields,
        "tuple_key": tuples * len(partial_set.group_by),
        "tuple_class": tuples * compared_classes(partial_set.slice_id),
        "partial": float(partials),
        "partial_field": float(partials * (fields + len(partial_set.group_by))),
    }


#: Columns that are projected, as SQL over synthetic trades.
PROJECTIONS = (
    ("unix_micros(ts)",),
    ("unix_micros(ts)", "price"),
    ("unix_micros(ts)", "price", "volume", "symbol"),
    ("unix_micros(ts)", "price", "volume", "symbol", "price * 2", "volume + 1", "if(price > 100, 1L, 0L)"),
)


def measure_projection(spark: SparkSession, quick: bool, tell: Tell) -> Fit:
    """Measures scanning, projecting and fetching tuples from the JVM: per job, tuple and column."""
    from windloom.spark.sources.read import synthetic_trades

    events = 500_000 if quick else 2_000_000
    terms = [{"job": 1.0, "woven_tuple": events, "woven_column": events * len(columns)} for columns in PROJECTIONS]
    terms.append({"job": 1.0, "woven_tuple": 0.0, "woven_column": 0.0})
    least = [np.inf] * len(terms)
    with tempfile.TemporaryDirectory(prefix="windloom-calibrate-") as folder:
        path = str(Path(folder) / "trades")
        synthetic_trades(spark, events, PER_SECOND, 100).coalesce(4).write.parquet(path)
        frame = spark.read.parquet(path)
        for number in range(2 + (2 if quick else 4)):
            for i in range(len(terms)):
                tell(f"projection {i + 1} of {len(terms)}")
                named = [f"{sql} AS x{j}" for j, sql in enumerate(PROJECTIONS[min(i, len(PROJECTIONS) - 1)])]
                chosen = frame.selectExpr(*named)
                _, took = _timed(spark, chosen if i < len(PROJECTIONS) else chosen.limit(1))
                if number > 1:
                    least[i] = min(least[i], took)
    return fit(terms, least)
