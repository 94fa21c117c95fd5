"""A round on executors, in two jobs: cells with the largest event time of every stream, then the step by shards.

A frontier depends on all tuples of a stream, so it is known only after the first job, whose cells stay on the
executors. In the second job, cells are brought together by shard, and every shard is one call of `run_shard`. Each
shard is also sent an empty row, because a shard without tuples has windows to close too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windloom.checkpoint.shards.notes import ShardNote
from windloom.checkpoint.shards.run import ShardPlaces, ShardRound, run_shard
from windloom.checkpoint.shards.split import join_cells
from windloom.checkpoint.storage import fault
from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.plan import Plan
from windloom.rounds.lateness import before_round
from windloom.spark.executors.shards import ShardReport, keep_tuples, refuse_untimed, shard_cells, told, with_clocks
from windloom.spark.kept_tuples import TupleKeeper
from windloom.state.state import State

_Task = Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a round takes in, which stays on the executors, and what its tasks reported to the driver."""

    frame: DataFrame
    told: ShardReport


@dataclass(frozen=True, slots=True)
class SparkShardJobs:
    """The two jobs, as the placement on executors asks for them. `timed` are streams whose ticks must be known."""

    spark: SparkSession
    timed: Mapping[str, Stream]
    skip_untimed: bool = False

    @contextmanager
    def gathered(
        self,
        plan: Plan,
        frames: Mapping[str, DataFrame],
        batch: DataFrame | None,
        state: State,
        shards: int,
        keeper: TupleKeeper | None = None,
    ) -> Iterator[Gathered]:
        """Runs the first job; its cells can be read until the end of the `with`. `keeper` takes tuples to keep."""
        frame, readings = shard_cells(plan, frames, before_round(plan, state), shards)
        streams = [self.timed[name] for name in frames if name in self.timed]
        with ExitStack() as scope:
            scope.callback(frame.persist().unpersist)
            with ExitStack() as reading:
                if batch is not None and readings + len(streams) + len(plan.stores) > 2:
                    # Every part reads the micro-batch; without this, each would fetch it from the source again.
                    batch.persist()
                    reading.callback(batch.unpersist)
                seen = with_clocks(told(plan, frame), plan, frames, streams)
                if not self.skip_untimed:
                    refuse_untimed(plan, seen)
                if keeper is not None:
                    keep_tuples(plan, frames, keeper)
            yield Gathered(frame, seen)

    def run_shards(
        self, round: ShardRound, places: ShardPlaces, taken: Gathered | None, shards: int
    ) -> list[ShardNote]:
        return run_shards(self.spark, round, places, None if taken is None else taken.frame, shards)


def run_shards(
    spark: SparkSession, round: ShardRound, places: ShardPlaces, cells: DataFrame | None, shards: int
) -> list[ShardNote]:
    """Runs the second job; every shard takes effect once, however often its task runs. Notes are by shard number."""
    if cells is not None:
        spark = cells.sparkSession  # a micro-batch has a session of its own
    frame = spark.range(shards).selectExpr("CAST(id AS INT) AS shard", "CAST(NULL AS BINARY) AS cells")
    if cells is not None:
        frame = frame.unionAll(cells.where(F.col("shard") >= 0).select("shard", "cells"))
    rows = spread(frame, shards).groupBy("shard").applyInArrow(_task(round, places), "shard int, note string").collect()
    notes = sorted((ShardNote.from_json(json.loads(row["note"])) for row in rows), key=lambda note: note.shard)
    if [note.shard for note in notes] != list(range(shards)):
        raise WindloomError(
            f"round {round.number} did not run in each of its {shards} shards",
            f"notes came back from {[note.shard for note in notes]}",
            "start again with the same checkpoint: the round runs again",
        )
    return notes


def spread(frame: DataFrame, shards: int) -> DataFrame:
    """A task for each shard: Spark would combine shards by the bytes of their cells, but their states weigh more."""
    if hasattr(frame, "repartitionById"):  # Spark 4.1; without it, shards whose hashes collide share a task
        return frame.repartitionById(shards, "shard")
    return frame.repartition(shards, "shard")


def _task(round: ShardRound, places: ShardPlaces) -> _Task:
    """The function that is sent to the executors: it carries values only, never a frame."""

    def answer(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shard = key[0].as_py()
        cells = join_cells(
            (blob.as_py() for batch in batches for blob in batch.column("cells") if blob.is_valid), round.plan
        )
        task = TaskContext.get()
        is_first = task is not None and task.attemptNumber() == 0
        note = run_shard(round, places, shard, cells, is_first_attempt=is_first)
        if shard == 0 and is_first:
            fault("after shard", round.number + 1)
        columns = [pa.array([shard], pa.int32()), pa.array([json.dumps(note.to_json())])]
        yield pa.RecordBatch.from_arrays(columns, names=["shard", "note"])

    # Spark chooses the iterator form of the function by its type hints, which it does not understand as strings.
    answer.__annotations__ = {
        "key": tuple[pa.Scalar, ...],
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return answer
