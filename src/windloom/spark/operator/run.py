"""A batch run as one job of the operator: the answers of all queries, and what its tasks have counted."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windloom.answers.blocks import Block
from windloom.checkpoint.state_codec import restored_folds
from windloom.operator.whole import Beside, BucketFacts
from windloom.plan.division import division_of
from windloom.plan.plan import Plan
from windloom.spark.collect import collected
from windloom.spark.operator.frames import COUNTS, FOLDED, TupleSource, blocks_of, packed, scan_of, whole_blocks
from windloom.spark.operator.sources import tuple_source
from windloom.spark.projection import clock
from windloom.spark.scan import bases_unread
from windloom.spark.session import cores_of
from windloom.state.cells import Cells
from windloom.state.windows.landmark import timed_streams
from windloom.weave.weave import Ticks

_MORE_BUCKETS = "divide the groups into more buckets: loom.run(buckets=…)"


@dataclass(frozen=True, slots=True)
class OperatorAnswers:
    """The answers of a batch run. `folds` are, by place in the plan, parts of joins that are merged on the driver."""

    facts: BucketFacts = field(default_factory=BucketFacts)
    folds: Mapping[int, list[Cells]] = field(default_factory=dict)
    blocks: Callable[[], Iterable[Block]] = tuple


def answer_all(
    plan: Plan, frames: Mapping[str, DataFrame], buckets: int, beside: Beside, scope: ExitStack | None
) -> OperatorAnswers:
    """Return all answers; `plan` has whole scans, and at least one.

    With a `scope`, Spark holds them until its end, and the driver takes a portion at a time; without, it has them all.
    """
    planned, sources = packed(plan), dict[int, TupleSource]()
    for number in range(len(plan.scans)):
        scan = scan_of(plan, number)
        sources[number] = tuple_source(scan, plan.stream(scan.stream), frames[scan.stream], "auto")
    frame = whole_blocks(planned, sources, buckets, beside, divided=division_of(plan).divided)
    if scope is None:
        tables = list(_fetched(frame))
        return _read(plan, tables, lambda: blocks_of(_batches(tables)))
    scope.callback(frame.persist().unpersist)
    counted = _fetched(frame.where("shape < 0"))  # runs all tasks
    return _read(plan, counted, lambda: blocks_of(_batches(_fetched(frame.where("shape >= 0")))))


def unseen_ticks(plan: Plan, frames: Mapping[str, DataFrame]) -> dict[str, Ticks]:
    """Return the ticks of streams whose tuples are not all seen by a scan, found by a job for each."""
    seen = {scan.stream for scan in plan.scans}
    names = {stream.name for stream in timed_streams(plan)} - seen | bases_unread(plan)
    return {name: clock(plan.stream(name), frames[name]) for name in names}


def usual_buckets(spark: SparkSession) -> int:
    """Return the number of buckets if none is given: twice the cores, as far as the session knows them."""
    return 2 * (cores_of(spark) or 4)


def _read(plan: Plan, tables: Iterable[pa.Table], blocks: Callable[[], Iterable[Block]]) -> OperatorAnswers:
    facts, folds = list[BucketFacts](), dict[int, list[Cells]]()
    for batch in _batches(tables):
        for shape, rows in zip(batch.column("shape").to_pylist(), batch.column("rows"), strict=True):
            if shape == COUNTS:
                # Written by the tasks of this run.
                facts.append(pickle.loads(rows.as_buffer()))
            elif shape == FOLDED:
                for number, cells in restored_folds(rows.as_py(), plan).items():
                    folds.setdefault(number, []).append(cells)
    return OperatorAnswers(BucketFacts.together(facts), folds, blocks)


def _fetched(frame: DataFrame) -> Iterator[pa.Table]:
    return collected(frame, "what a bucket answers", smaller=_MORE_BUCKETS)


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.to_batches()
