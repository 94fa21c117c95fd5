"""A round on executors, in two jobs: partials with the largest event time of every stream, then the step by shards.

A frontier is of all tuples of a stream together, so it is known only after the first job; its partials stay with the
executors. In the second they are shuffled by the hash of their group, and every shard is one call of `run_shard`. Each
shard is also sent a row that holds nothing: one without tuples has windows to close all the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.rounds.faults import fault
from windloom.rounds.shards.notes import ShardNote
from windloom.rounds.shards.run import ShardRound, run_shard
from windloom.spark.partials import Partials, partials_of, timed, told_ticks, without_time

_MARKER = -1

_Task = Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a round takes in, left on the executors; as `Taken`, but for the partials."""

    partials: Partials
    largest_ticks: Mapping[str, int]
    smallest_ticks: Mapping[str, int]
    untimed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SparkShardJobs:
    """The two jobs, as the placement on executors asks for them."""

    spark: SparkSession
    streams: Mapping[str, Stream]
    skip_untimed: bool

    def gathered(
        self, plan: Plan, frames: Mapping[str, DataFrame], batch: DataFrame | None
    ) -> AbstractContextManager[Gathered]:
        streams = [self.streams[name] for name in frames]
        return gathered(plan, streams, frames, batch, skip_untimed=self.skip_untimed)

    def run_shards(self, round: ShardRound, taken: Gathered | None, shards: int) -> list[ShardNote]:
        return run_shards(self.spark, round, None if taken is None else taken.partials, shards)


@contextmanager
def gathered(
    plan: Plan,
    streams: Iterable[Stream],
    frames: Mapping[str, DataFrame],
    batch: DataFrame | None,
    *,
    skip_untimed: bool,
) -> Iterator[Gathered]:
    """Run the first job; the partials can be read until the end of the `with`."""
    partials = partials_of(plan, frames, streams)
    with ExitStack() as scope:
        scope.callback(partials.frame.persist().unpersist)
        with ExitStack() as reading:
            if batch is not None and len(partials.slots) > 1:
                # Every part reads the micro-batch; without this each of them would fetch it from the source again.
                batch.persist()
                reading.callback(batch.unpersist)
            largest, smallest, untimed = _summary(plan, partials)
        for name, tuples in untimed.items():
            if tuples and not skip_untimed:
                raise without_time(plan.stream(name), tuples)
        yield Gathered(partials, largest, smallest, untimed if skip_untimed else {})


def _summary(plan: Plan, partials: Partials) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """The largest and smallest tick of every stream, and its tuples without one; also fills the persisted frame."""
    wanted = [F.lit(0).alias("nothing")]
    wanted += [F.expr(sql).alias(name) for name, sql in partials.clock_sql().items()]
    for scan in plan.scans:
        slots = partials.slots[scan.number]
        untimed = f"part = {scan.number} AND {slots[0]} IS NULL"
        tuples = slots[1 + len(scan.key_types)]
        wanted.append(F.expr(f"sum(if({untimed}, {tuples}, 0))").alias(f"untimed {scan.number}"))
    row = partials.frame.agg(*wanted).collect()[0].asDict()
    largest, smallest = told_ticks(partials, row)
    found: dict[str, int] = {}
    for scan in plan.scans:
        found[scan.stream] = max(found.get(scan.stream, 0), row[f"untimed {scan.number}"] or 0)
    return largest, smallest, found


def run_shards(spark: SparkSession, round: ShardRound, partials: Partials | None, shards: int) -> list[ShardNote]:
    """Run the second job: every shard once, as far as anybody can tell. Notes come by number of the shard."""
    if partials is not None:
        spark = partials.frame.sparkSession  # of a micro-batch, a session of its own
    markers = spark.range(shards).selectExpr("CAST(id AS INT) AS shard", f"{_MARKER} AS part")
    frame = markers
    slots: tuple[tuple[str, ...], ...] = ()
    if partials is not None:
        slots = partials.scan_slots
        shard = f"pmod({partials.group_hash(round.plan)}, {shards})"
        own = partials.frame.where(f"part < {partials.scans}").withColumn("shard", F.expr(shard))
        frame = own.unionByName(markers, allowMissingColumns=True)
    rows = _spread(frame, shards).groupBy("shard").applyInArrow(_task(round, slots), "shard int, note string").collect()
    notes = sorted((ShardNote.from_json(json.loads(row["note"])) for row in rows), key=lambda note: note.shard)
    if [note.shard for note in notes] != list(range(shards)):
        raise WindloomError(
            f"round {round.number} did not run in each of its {shards} shards",
            f"notes came back from {[note.shard for note in notes]}",
            "start again with the same checkpoint: the round runs again",
        )
    return notes


def _spread(frame: DataFrame, shards: int) -> DataFrame:
    """A task for each shard: Spark would lay shards together by the bytes of their partials, but states weigh more."""
    if hasattr(frame, "repartitionById"):  # Spark 4.1; without it, shards whose hashes collide share a task
        return frame.repartitionById(shards, "shard")
    return frame.repartition(shards, "shard")


def _task(round: ShardRound, slots: tuple[tuple[str, ...], ...]) -> _Task:
    """The function that travels to the executors: it carries values only, never a frame."""

    def answer(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shard = key[0].as_py()
        table = pa.Table.from_batches(list(batches))
        partials = {}
        for scan in round.plan.scans if slots else ():
            own = table.filter(pc.equal(table["part"], scan.number)).select(list(slots[scan.number]))
            if own.num_rows:
                partials[scan.number] = timed(scan, own)[0]
        note = run_shard(round, shard, partials)
        task = TaskContext.get()
        if shard == 0 and task is not None and task.attemptNumber() == 0:
            fault("after shard", round.number + 1)
        columns = [pa.array([shard], pa.int32()), pa.array([json.dumps(note.to_json())])]
        yield pa.RecordBatch.from_arrays(columns, names=["shard", "note"])

    # Type hints choose Spark's iterator form of the function; as strings they would not be understood.
    answer.__annotations__ = {
        "key": tuple[pa.Scalar, ...],
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return answer
