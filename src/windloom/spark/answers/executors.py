"""The answers of a batch run on executors: each shard runs the same step, and Spark holds what it answers.

Answers of all shapes leave in one frame: `shape`, `query` (its number in the plan), the window, and columns in slots
by type. A result of that frame is selected from it; nothing passes through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.aggregates.arrow import arrow_type
from windloom.durable.shards.run import ShardRound, step_shard
from windloom.durable.shards.split import join_cells
from windloom.model.types import DataType
from windloom.plan.physical import Plan, Shape
from windloom.rounds import Block
from windloom.rounds.step import StepCounts
from windloom.spark.answers.shard_job import spread
from windloom.spark.intake.native import instant_sql
from windloom.spark.intake.slots import slot_names

#: In the place of a shape's number: the row counts what a shard took in.
_COUNTS = -1


@dataclass(frozen=True, slots=True)
class WideAnswers:
    """`slots[i]` names the frame's columns that hold shape i's columns; `queries` numbers the plan's queries.

    The frame is persisted, and has been made.
    """

    frame: DataFrame
    slots: tuple[tuple[str, ...], ...]
    queries: tuple[str, ...]
    totals: Totals

    def shape_frame(self, plan: Plan, shape: int) -> DataFrame:
        """All rows of a shape: `query` (its number), `window_start`, `window_end`, then the shape's own columns."""
        one = plan.shapes[shape]
        names = [name for name, _ in one.groups + one.columns]
        renamed = [F.col(slot).alias(name) for slot, name in zip(self.slots[shape], names, strict=True)]
        window = [F.expr(instant_sql(edge, one.time)).alias(edge) for edge in ("window_start", "window_end")]
        return self.frame.where(F.col("shape") == shape).select("query", *window, *renamed)


@dataclass(frozen=True, slots=True)
class Totals:
    """What all shards took in, and how many rows they answered."""

    counts: StepCounts
    rows: int


def hold_answers(round: ShardRound, cells: DataFrame, shards: int) -> WideAnswers:
    """The same rows as on the driver, whatever the number of shards; `cells` are rows of `intake.shards.shard_cells`.

    One job, which makes and counts them.
    """
    plan = round.plan
    slots = tuple(slot_names(kind.name for kind in _kinds(shape)) for shape in plan.shapes)
    kinds = {
        slot: kind
        for shape, names in zip(plan.shapes, slots, strict=True)
        for slot, kind in zip(names, _kinds(shape), strict=True)
    }
    order = sorted(kinds)
    queries = tuple(planned.name for planned in plan.queries)
    numbers = {name: number for number, name in enumerate(queries)}
    arrow = pa.schema(
        [
            ("shape", pa.int32()),
            ("query", pa.int32()),
            ("window_start", pa.int64()),
            ("window_end", pa.int64()),
            *((slot, arrow_type(kinds[slot])) for slot in order),
        ]
    )
    ddl = "shape int, query int, window_start bigint, window_end bigint"
    ddl += "".join(f", {slot} {kinds[slot].name}" for slot in order)

    def answer(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own = join_cells((one.as_py() for batch in batches for one in batch.column("cells")), plan)
        _, answers, counts, _ = step_shard(round, round.left, own)
        yield _count_rows(counts, arrow)
        for block in answers.blocks():
            yield from _wide(block, slots[block.shape], numbers, arrow).to_batches(max_chunksize=1 << 17)

    # Type hints choose Spark's iterator form of the function; as strings they would not be understood.
    answer.__annotations__ = {
        "key": tuple[pa.Scalar, ...],
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    own = cells.where(F.col("shard") >= 0).select("shard", "cells")
    frame = spread(own, shards).groupBy("shard").applyInArrow(answer, ddl).persist()
    try:
        return WideAnswers(frame, slots, queries, _totals(frame))
    except BaseException:
        frame.unpersist()
        raise


def _totals(frame: DataFrame) -> Totals:
    # Of answers, window_start and window_end are ticks: a few thousand of them already overflow a sum.
    counted = frame.groupBy(F.expr(f"if(shape = {_COUNTS}, query, -1) AS part")).agg(
        F.expr(f"sum(if(shape = {_COUNTS}, window_start, 0))").alias("tuples"),
        F.expr(f"sum(if(shape = {_COUNTS}, window_end, 0))").alias("partials"),
        F.count("*").alias("rows"),
    )
    found = {row["part"]: row for row in counted.collect()}
    rows = found.pop(-1)["rows"] if -1 in found else 0
    tuples = {number: row["tuples"] for number, row in found.items()}
    return Totals(StepCounts(tuples, {number: row["partials"] for number, row in found.items()}), rows)


def _count_rows(counts: StepCounts, schema: pa.Schema) -> pa.RecordBatch:
    """What a shard took in, as rows of no shape: set, tuples and partials in the place of query and window."""
    sets = list(counts.tuples)
    values = [[_COUNTS] * len(sets), sets, list(counts.tuples.values()), [counts.partials[one] for one in sets]]
    arrays = [pa.array(value, field.type) for value, field in zip(values, schema, strict=False)]
    arrays += [pa.nulls(len(sets), field.type) for field in list(schema)[4:]]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _wide(block: Block, slots: tuple[str, ...], numbers: dict[str, int], schema: pa.Schema) -> pa.Table:
    rows = block.table.num_rows
    own = dict(zip(slots, block.table.columns[2:], strict=True))
    query = np.repeat(np.array([numbers[name] for name in block.queries], np.int32), np.diff(block.bounds))
    arrays = [
        pa.array(np.full(rows, block.shape, np.int32)),
        pa.array(query),
        block.table["window_start"].cast(pa.int64()),
        block.table["window_end"].cast(pa.int64()),
    ]
    arrays += [
        own[field.name].cast(field.type) if field.name in own else pa.nulls(rows, field.type)
        for field in list(schema)[4:]
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _kinds(shape: Shape) -> list[DataType]:
    return [kind for _, kind in shape.groups + shape.columns]
