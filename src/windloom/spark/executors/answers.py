"""The answers of a batch run on executors: each shard runs the same step, and Spark holds its answers.

Answers of all shapes are in one frame: `shape`, `query` (its number in the plan), the window, and columns in slots
by type. The rows of a query are selected from that frame. Nothing passes through the driver, except for joins whose
answers are divided among shards: the driver merges what each shard has folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from windloom.answers.blocks import Block
from windloom.answers.emission.changes import paces_of
from windloom.answers.joins.lowering import blocks_of
from windloom.checkpoint.shards.run import ShardRound, step_shard
from windloom.checkpoint.shards.split import join_cells
from windloom.checkpoint.state_codec import encode, restored_folds
from windloom.model.aggregate import OF_NOTHING
from windloom.model.clauses import AS_OF, CHANGE, REPORT, Emits
from windloom.model.query import Query
from windloom.model.types import DataType, arrow_type
from windloom.plan.plan import Plan, Planned, Shape
from windloom.plan.sharding import sharding_of
from windloom.rounds.step import StepCounts, step
from windloom.spark.executors.shard_job import spread
from windloom.spark.frames import arrow_frame, finish, quoted, slot_names
from windloom.spark.native import instant_sql
from windloom.spark.rows.job import TupleViews, batch_views, rows_sql
from windloom.spark.untimed import Untimed
from windloom.state.cells import Cells
from windloom.state.state import State
from windloom.state.tuple_store import ReportedWindows, RowSpan

# EMIT CHANGES, EMIT EMPTY and EMIT EARLY by Spark itself, over answers of a batch run that Spark holds.
#
# Edges of windows are ticks here; `until` is the end of the last window that is reported.


def filled(rows: DataFrame, planned: Planned, shape: Shape, until: int) -> DataFrame:
    """The rows of a query as the step made them, with a row for every window of a group from its first one on."""
    window, keys = planned.query.window, [quoted(name) for name, _ in shape.groups]
    slide = window.slide_ticks
    first = rows.groupBy(*keys).agg(F.min("window_end").alias("__first"))
    last = F.expr(f"__first + ({until}L - __first) DIV {slide}L * {slide}L")
    ends = first.select(*keys, F.explode(F.sequence("__first", last, F.lit(slide).cast("long"))).alias("__end"))
    same = [F.col(f"__e.{key}").eqNullSafe(F.col(f"__r.{key}")) for key in keys]
    by = reduce(and_, same, F.col("__e.__end") == F.col("__r.window_end"))
    joined = ends.alias("__e").join(rows.alias("__r"), by, "left")
    columns = [
        F.expr(f"__e.__end - {window.range_ticks}L").alias("window_start"),
        F.col("__e.__end").alias("window_end"),
    ]
    columns += [F.col(f"__e.{key}") for key in keys]
    for place, (name, kind) in enumerate(shape.columns):
        nothing = OF_NOTHING.get(planned.query.aggregates[planned.columns[place]].function)
        value = F.col(f"__r.{quoted(name)}")
        if nothing is not None:
            value = F.coalesce(value, (F.array() if nothing == [] else F.lit(nothing)).cast(kind.name))
        columns.append(value.alias(name))
    return joined.select(*columns)


def all_final(rows: DataFrame) -> DataFrame:
    """The finished rows of a query that may report early rows, marked as final, because all windows are closed."""
    return rows.withColumns({REPORT: F.lit("final"), AS_OF: F.lit(None).cast(rows.schema["window_end"].dataType)})


def changed(rows: DataFrame, query: Query, until: int) -> DataFrame:
    """The changes from window to window of the finished rows of a query."""
    window, names = query.window, rows.columns[2:]
    keys = [quoted(grouping.name) for grouping in query.group_by]
    values = [quoted(name) for name in names[len(keys) :]]
    ordered = Window.partitionBy(*keys).orderBy("window_end")
    slide, value = window.slide_ticks, F.struct(*values)
    compared = rows.select(
        "*",
        (F.lag("window_end").over(ordered) + slide).eqNullSafe(F.col("window_end")).alias("__follows"),
        F.lag(value).over(ordered).eqNullSafe(value).alias("__same"),
        F.lead("window_end").over(ordered).eqNullSafe(F.col("window_end") + slide).alias("__goes_on"),
    )
    kind = F.when(F.col("__follows"), "update").otherwise("insert").alias(CHANGE)
    told = compared.where("NOT (__follows AND __same)").select(*rows.columns, kind)
    gone = compared.where(f"NOT __goes_on AND window_end + {slide}L <= {until}L")
    moved = 0 if window.extent_ticks is None else slide
    columns: list[Column] = [F.expr(f"window_start + {moved}L"), F.expr(f"window_end + {slide}L"), *map(F.col, keys)]
    columns += [F.lit(None) for _ in values]
    return told.union(gone.select(*columns, F.lit("delete")))


#: In place of a shape's number: the row counts the tuples and partials that a shard took in, or the groups and cells
#: that it held.
_TAKEN, _HELD = -1, -2
#: In place of a shape's number: the row holds what a shard has folded of joins whose answers are divided among shards.
_FOLDED = -3


@dataclass(frozen=True, slots=True)
class WideAnswers:
    """`slots[i]` names the frame's columns that hold shape i's columns; `queries` numbers the plan's queries.

    The frame is made from `persisted` frames, which have already been computed.
    """

    frame: DataFrame
    persisted: tuple[DataFrame, ...]
    slots: tuple[tuple[str, ...], ...]
    queries: tuple[str, ...]
    totals: AnswerTotals
    left: State  # the state of the streams after the run

    def unpersist(self) -> None:
        """Frees the memory and disk that hold the answers."""
        for data_frame in self.persisted:
            data_frame.unpersist()

    def shape_frame(self, plan: Plan, shape: int) -> DataFrame:
        """All rows of a shape: `query` (its number), `window_start`, `window_end`, then the shape's own columns."""
        return self._with_instants(self._ticks(plan, shape), plan.shapes[shape])

    def reported(self, plan: Plan, planned: Planned, *, with_query: bool = False) -> DataFrame:
        """The finished rows that a query reports; `with_query`: the first column is its name."""
        number, shape = self.queries.index(planned.name), plan.shapes[planned.shape]
        rows = self._ticks(plan, planned.shape).where(f"query = {number}").drop("query")
        until = paces_of([planned], self.left)[planned.name].until
        if shape.emits is Emits.EMPTY:
            rows = filled(rows, planned, shape, until)
        if shape.emits is Emits.CHANGES:  # rows are compared by ticks; their expressions have no edges of windows
            rows = self._with_instants(changed(finish(rows, shape), planned.query, until), shape)
        else:
            rows = finish(self._with_instants(rows, shape), shape)
        if shape.emits is Emits.EARLY:
            rows = all_final(rows)
        return rows.select(F.lit(planned.name).alias("query"), "*") if with_query else rows

    def _ticks(self, plan: Plan, shape: int) -> DataFrame:
        """All rows of a shape, with edges of windows as ticks."""
        described = plan.shapes[shape]
        names = [name for name, _ in described.groups + described.columns]
        renamed = [F.col(slot).alias(name) for slot, name in zip(self.slots[shape], names, strict=True)]
        return self.frame.where(F.col("shape") == shape).select("query", "window_start", "window_end", *renamed)

    def _with_instants(self, rows: DataFrame, shape: Shape) -> DataFrame:
        edges = ("window_start", "window_end")
        return rows.withColumns({edge: F.expr(instant_sql(edge, shape.time)) for edge in edges})


@dataclass(frozen=True, slots=True)
class AnswerTotals:
    """What all shards took in, and how many rows they answered."""

    counts: StepCounts
    rows: int


def hold_answers(round: ShardRound, cells: DataFrame, shards: int) -> WideAnswers:
    """Return the rows that the driver would give, however many shards there are; `cells` are rows of `shard_cells`.

    One job makes and counts the rows.
    """
    plan, divided = round.plan, sharding_of(round.plan).divided
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
            ("folds", pa.binary()),
        ]
    )
    ddl = "shape int, query int, window_start bigint, window_end bigint"
    ddl += "".join(f", {slot} {kinds[slot].name}" for slot in order) + ", folds binary"

    def answer(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own = join_cells((blob.as_py() for batch in batches for blob in batch.column("cells")), plan)
        _, answers, counts, _ = step_shard(round, round.left, own)
        yield _count_rows(counts, arrow)
        folds = answers.folds(divided)
        if folds:
            yield _rows([(_FOLDED, -1, 0, 0)], arrow, encode(State(folds)))
        for block in answers.blocks(without=divided):
            yield from _wide(block, slots[block.shape], numbers, arrow).to_batches(max_chunksize=1 << 17)

    # Spark chooses the iterator form of the function by its type hints, which it does not understand as strings.
    answer.__annotations__ = {
        "key": tuple[pa.Scalar, ...],
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    own = cells.where(F.col("shard") >= 0).select("shard", "cells")
    frame = spread(own, shards).groupBy("shard").applyInArrow(answer, ddl).persist()
    try:
        totals, answers = _totals(frame), frame.where("shape >= 0")
        for block in _merged(round, frame) if divided else ():
            rows = _wide(block, slots[block.shape], numbers, arrow)
            answers = answers.unionAll(arrow_frame(cells.sparkSession, rows, ddl))
            totals = replace(totals, rows=totals.rows + rows.num_rows)
        left = State(frontiers=round.input.frontiers, seen=round.input.seen)
        return WideAnswers(answers, (frame,), slots, queries, totals, left)
    except BaseException:
        frame.unpersist()
        raise


def _merged(round: ShardRound, frame: DataFrame) -> list[Block]:
    """The answers of joins that shards have folded in parts."""
    folds: dict[int, list[Cells]] = {}
    for row in frame.where(F.col("shape") == _FOLDED).select("folds").collect():
        for number, cells in restored_folds(bytes(row["folds"]), round.plan).items():
            folds.setdefault(number, []).append(cells)
    _, facts, _ = step(round.left, round.input, round.plan)
    return blocks_of(round.plan, folds, facts.landmarks)


def _totals(frame: DataFrame) -> AnswerTotals:
    # In answers, window_start and window_end are ticks: a sum of a few thousand of them already overflows.
    counted = frame.groupBy(F.expr("least(shape, 0) AS kind"), F.expr("if(shape < 0, query, -1) AS part")).agg(
        F.expr("sum(if(shape < 0, window_start, 0))").alias("first"),
        F.expr("sum(if(shape < 0, window_end, 0))").alias("second"),
        F.count("*").alias("rows"),
    )
    found = counted.collect()
    taken, held = ([row for row in found if row["kind"] == kind] for kind in (_TAKEN, _HELD))
    counts = StepCounts(
        {row["part"]: row["first"] for row in taken},
        {row["part"]: row["second"] for row in taken},
        groups={row["part"]: row["first"] for row in held},
        held={row["part"]: row["second"] for row in held},
    )
    return AnswerTotals(counts, sum(row["rows"] for row in found if row["kind"] == 0))


def _count_rows(counts: StepCounts, schema: pa.Schema) -> pa.RecordBatch:
    """What a shard counted, as rows of no shape: a set and two figures in place of query and window."""
    rows = [(_TAKEN, number, tuples, counts.partials[number]) for number, tuples in counts.tuples.items()]
    rows += [(_HELD, number, groups, counts.held[number]) for number, groups in counts.groups.items()]
    return _rows(rows, schema)


def _rows(rows: Sequence[tuple[int, int, int, int]], schema: pa.Schema, folds: bytes | None = None) -> pa.RecordBatch:
    """Rows of no shape."""
    values = zip(*rows, strict=True) if rows else [()] * 4
    arrays = [pa.array(value, field.type) for value, field in zip(values, schema, strict=False)]
    arrays += [pa.nulls(len(rows), field.type) for field in list(schema)[4:-1]]
    return pa.RecordBatch.from_arrays([*arrays, pa.array([folds] * len(rows), pa.binary())], schema=schema)


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


# Row queries of a batch run on executors: Spark makes their rows and holds them with all other answers.


def with_rows(wide: WideAnswers, plan: Plan, frames: Mapping[str, DataFrame], untimed: Untimed) -> WideAnswers:
    """Return all answers, including those of row queries, which one more job makes and counts."""
    if not plan.rows:
        return wide
    asked = [ReportedWindows(planned, RowSpan()) for planned in plan.rows]
    views = batch_views(plan, frames, asked, untimed)
    rows = views.analysed(" UNION ALL ".join(_wide_sql(wide, asked_rows, views) for asked_rows in asked)).persist()
    totals = replace(wide.totals, rows=wide.totals.rows + rows.count())
    return replace(wide, frame=wide.frame.unionAll(rows), persisted=(*wide.persisted, rows), totals=totals)


def _wide_sql(wide: WideAnswers, asked: ReportedWindows, views: TupleViews) -> str:
    """Return the rows of one query, with the columns of the frame of all answers."""
    planned = asked.planned
    sql_by_name = {slot: f"c{index}" for index, slot in enumerate(wide.slots[planned.shape])}
    sql_by_name |= {"shape": str(planned.shape), "query": str(wide.queries.index(planned.name))}
    sql_by_name |= {edge: edge for edge in ("window_start", "window_end")}
    selected = (f"CAST({sql_by_name.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind in wide.frame.dtypes)
    return f"(SELECT {', '.join(selected)} FROM ({rows_sql(asked, views, None)}))"
