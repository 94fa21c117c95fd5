"""The frame of an operator: weave, by bucket, step, rows. Batch and stream differ in one call.

    tuples ─ mapInArrow(weave) ─ groupBy(bucket) ┬ applyInArrow(step)         batch  ┬ mapInArrow(rows) ─ answers
                                                 └ transformWithState(step)   stream ┘
                                                     head and segments in Spark's state store

Nothing else is on the way of the data: sources, sinks, checkpoints and their guarantees are Spark's. Tasks carry the
plan as bytes and no frame, so the same code runs in classic and in Connect sessions.
"""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructField, StructType

from windloom.answers.blocks import Block, Timer
from windloom.answers.finish import answer_rows, output_kinds
from windloom.checkpoint.frames import table_blob
from windloom.checkpoint.state_codec import encode
from windloom.errors import WindloomError
from windloom.expressions.arithmetic import DeclinedError
from windloom.model.types import DataType, arrow_type
from windloom.operator.buckets import HEAD, BucketRound, OperatorPlan, by_delay, step_bucket
from windloom.operator.parts import bucket_keys, merged_parts, weave_parts
from windloom.operator.whole import Beside, BucketFacts, answer_bucket
from windloom.plan.plan import Plan, Shape
from windloom.plan.scans import WovenScan
from windloom.spark.frames import ddl_of, ddl_of_columns, finish, presented_frame, union_all
from windloom.spark.projection import projected, with_positions
from windloom.state.state import State
from windloom.weave.files import FileChunk, units_of, whole_tuples

#: Under this name, the progress of a streaming query has the counts of each micro-batch.
METRICS = "windloom"
#: The name of the state variable that holds the blobs of a bucket.
STATE = "segments"
#: How many tuples a task weaves at once.
BLOCK_TUPLES = 1 << 20
#: Rows in the batches of Arrow that leave the operator.
BATCH_ROWS = 1 << 17

#: Under this key, the metadata of a column have the delay of its watermark.
_DELAY = "spark.watermarkDelayMs"

_PARTS = "bucket int, part binary"
_BLOCKS = (
    "shape int, queries string, bounds binary, rows binary,"
    " events bigint, untimed bigint, late_partly bigint, late_dropped bigint, watermark bigint"
)
_BLOCK_NAMES = [column.split()[0] for column in _BLOCKS.split(", ")]
#: The same in a batch run.
_WHOLE_BLOCKS = "shape int, queries string, bounds binary, rows binary"
#: In place of a shape's number: the row counts what the round has brought, or holds what a bucket has folded of joins.
COUNTS, FOLDED = -1, -2

#: The property in which a task finds the streaming query that it belongs to.
_QUERY_ID = "sql.streaming.queryId"

_Batches = Iterator[pa.RecordBatch]


def packed(plan: Plan) -> OperatorPlan:
    """Return the plan as tasks carry it."""
    return OperatorPlan(plan, cloudpickle.dumps(plan))  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class TupleSource:
    """Where a scan finds its tuples: in a frame of them, or in a frame of names of files, which workers read."""

    frame: DataFrame
    are_names: bool = False


def answers_frame(
    planned: OperatorPlan,
    sources: Mapping[int, TupleSource],
    buckets: int,
    select: Callable[[DataFrame, OperatorPlan], DataFrame],
) -> DataFrame:
    """Return the answers of a plan over these sources, by number of the scan; `select` reads them from blocks.

    The frame is streaming if the sources are.
    """
    if not any(source.frame.isStreaming for source in sources.values()):
        return select(whole_blocks(planned, sources, buckets, Beside()), planned)
    parts = _all_parts(planned, sources, buckets, is_stream=True)
    blocks = parts.groupBy("bucket").transformWithState(BucketProcessor(planned.blob), _BLOCKS, "append", "none")
    counts = [F.sum(name).alias(name) for name in ("events", "untimed", "late_partly", "late_dropped")]
    return select(blocks.observe(METRICS, *counts, F.max("watermark").alias("watermark")), planned)


def whole_blocks(
    planned: OperatorPlan,
    sources: Mapping[int, TupleSource],
    buckets: int,
    beside: Beside,
    *,
    divided: frozenset[int] = frozenset(),
) -> DataFrame:
    """Return the answers of a batch run as rows of blocks, and the facts of every bucket.

    Of joins that are `divided`, by place in the plan, there is what each bucket has folded instead of answers.
    """
    parts = _all_parts(planned, sources, buckets, is_stream=False)
    # A task per bucket: parts are small, and Spark would give all of them to one task.
    by_bucket = parts.repartition(buckets, "bucket").groupBy("bucket")
    return by_bucket.applyInArrow(_answering_task(planned.blob, beside, divided), _WHOLE_BLOCKS)


def one_query(name: str) -> Callable[[DataFrame, OperatorPlan], DataFrame]:
    """Return the reader of the rows of one query: what its text selects, HAVING and expressions evaluated by Spark."""

    def select(blocks: DataFrame, planned: OperatorPlan) -> DataFrame:
        asked = planned.plan.query(name)
        query, shape = asked.query, planned.plan.shapes[asked.shape]
        if blocks.isStreaming:  # which has no order
            query = replace(query, presentation=replace(query.presentation, order=()))
        return presented_frame(finish(blocks.mapInArrow(_rows_task(name, shape), ddl_of(shape)), shape), query)

    return select


def with_schema(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows of a frame as those of a DataFrame with this schema: also what can be NULL, at any depth.

    A delay that its window has from withWatermark is left out, because no watermark is behind these rows.
    """
    fields = []
    for number, field in enumerate(schema.fields):
        metadata = {key: value for key, value in field.metadata.items() if key != _DELAY}
        fields.append(StructField(f"c{number}", field.dataType, field.nullable, metadata))
    numbered = frame.toDF(*(field.name for field in fields))  # a DataFrame may use a name twice
    return numbered.mapInArrow(_as_they_are, StructType(fields)).toDF(*schema.names)


def _as_they_are(batches: _Batches) -> _Batches:
    return batches


def every_query(plan: Plan) -> Callable[[DataFrame, OperatorPlan], DataFrame]:
    """Return the reader of the rows of all queries: `query`, the window, and every column that some query has.

    A column is NULL in the rows of queries that do not have it. Two queries may share a column if it has one type.
    """
    columns: dict[str, tuple[DataType, str]] = {}
    for planned in plan.queries:
        kinds = output_kinds(plan.shapes[planned.shape])
        assert kinds is not None, "an expression that only Spark evaluates is an obstacle"
        for name, kind in kinds.items():
            known, first = columns.setdefault(name, (kind, planned.name))
            if known != kind:
                raise WindloomError(
                    f"the answers of all queries cannot be one frame: '{name}' has two types",
                    f"it is {known} in query '{first}', and {kind} in query '{planned.name}'",
                    f"rename it in one of them, or ask for one query: loom.answers('{planned.name}')",
                )
    ddl = ddl_of_columns({"query": "string", **{name: kind.name for name, (kind, _) in columns.items()}})
    schema = pa.schema([("query", pa.string()), *((name, arrow_type(kind)) for name, (kind, _) in columns.items())])

    def select(blocks: DataFrame, planned: OperatorPlan) -> DataFrame:
        return blocks.mapInArrow(_all_rows_task(planned.blob, schema), ddl)

    return select


def _all_parts(
    planned: OperatorPlan, sources: Mapping[int, TupleSource], buckets: int, *, is_stream: bool
) -> DataFrame:
    scans = range(len(planned.plan.scans))
    return union_all([_parts(planned, number, sources[number], buckets, is_stream) for number in scans])


def _parts(planned: OperatorPlan, number: int, source: TupleSource, buckets: int, is_stream: bool) -> DataFrame:
    scan = scan_of(planned.plan, number)
    if source.are_names:
        return source.frame.mapInArrow(_reading_task(planned.blob, number, buckets, is_stream), _PARTS)
    stream, frame = planned.plan.stream(scan.stream), source.frame
    if scan.counted_by is not None:
        # All tuples are counted, whether they satisfy WHERE or not: a window of rows is taken before WHERE.
        frame = with_positions(frame, stream, scan.counted_by)
    frame = projected(scan, stream, frame)
    return frame.mapInArrow(_weaving_task(planned.blob, number, buckets, is_stream), _PARTS)


def names_of_chunks(spark: SparkSession, groups: Sequence[Sequence[FileChunk]]) -> DataFrame:
    """Return a frame of the names of row groups, with a task for each group of chunks."""
    texts = [json.dumps([[chunk.path, list(chunk.groups), chunk.rows] for chunk in chunks]) for chunks in groups]
    return spark.range(0, len(texts), 1, len(texts)).select(F.get(F.lit(texts), "id").alias("path"))


# Tasks. They are functions of bytes, so that what is sent to workers holds no frame.


@lru_cache(maxsize=8)
def loaded(blob: bytes) -> OperatorPlan:
    """Return the plan that a task carries; a worker that is used again has it already."""
    return OperatorPlan(pickle.loads(blob), blob)


#: How many tasks of an operator this worker process has run.
_tasks_run = 0


def _settle() -> None:
    """Spare the collector of garbage what lives as long as this worker: modules, kernels, plans.

    Spark collects after each task, which takes longer than many a task if it looks at all of that. What came later is
    spared from the second, the fourth, the eighth task on, and garbage among it is collected then.
    """
    global _tasks_run
    _tasks_run += 1
    if _tasks_run & (_tasks_run - 1) == 0:
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def scan_of(plan: Plan, number: int) -> WovenScan:
    scan = plan.scans[number]
    assert isinstance(scan, WovenScan), "the scans of an operator are woven"
    return scan


def _place(number: int) -> int:
    task = TaskContext.get()
    return (number << 32) + (0 if task is None else task.partitionId())


def _weaving_task(blob: bytes, number: int, buckets: int, is_stream: bool) -> Callable[[_Batches], _Batches]:
    """Return the task that weaves projected tuples."""

    def weave(batches: _Batches) -> _Batches:
        plan = loaded(blob).plan
        scan, tables = scan_of(plan, number), tables_of(batches)
        return _part_rows(weave_parts(plan, scan, tables, buckets, _place(number), is_stream=is_stream), buckets)

    return weave


def _reading_task(blob: bytes, number: int, buckets: int, is_stream: bool) -> Callable[[_Batches], _Batches]:
    """Return the task that reads files, or row groups of them, by name and weaves their tuples."""

    def weave(batches: _Batches) -> _Batches:
        plan = loaded(blob).plan
        scan = scan_of(plan, number)
        stream, local = plan.stream(scan.stream), scan.local
        assert local is not None, "only tuples that can be projected without Spark are read by name"
        names = [name for batch in batches for name in batch.column(0).to_pylist()]
        pa.set_cpu_count(1)  # as many tasks as there are cores read at the same time

        def tables() -> Iterator[pa.Table]:
            for name in names:
                try:
                    chunks = _chunks_of(name) or units_of(local, stream, [_local_path(name)])
                    if chunks:
                        yield whole_tuples(scan, stream, chunks)
                except DeclinedError as error:
                    raise WindloomError(
                        f"stream '{stream.name}': a file cannot be read without Spark",
                        str(error),
                        "let Spark read the stream: loom.answers(…, intake='spark')",
                    ) from None

        parts = weave_parts(plan, scan, tables(), buckets, _place(number), is_stream=is_stream)
        return _part_rows(parts, buckets)

    return weave


def _chunks_of(name: str) -> list[FileChunk]:
    if not name.startswith("["):
        return []
    return [FileChunk(path, tuple(groups), rows) for path, groups, rows in json.loads(name)]


def _local_path(name: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(name).path)


def tables_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the tuples of a task in portions that are woven at once."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= BLOCK_TUPLES:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def _part_rows(parts: Iterable[tuple[int, bytes]], buckets: int) -> _Batches:
    keys = bucket_keys(buckets)
    for bucket, blob in parts:
        columns = [pa.array([keys[bucket]], pa.int32()), pa.array([blob], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["bucket", "part"])
    _settle()


def _is_first(key: int) -> bool:
    """Return whether this is the key of the first bucket."""
    return key == bucket_keys(1)[0]


def _answering_task(blob: bytes, beside: Beside, divided: frozenset[int]) -> Callable[..., Any]:
    """Return the step of a bucket in a batch run, after which nothing is kept."""
    own = cloudpickle.dumps(beside)  # type: ignore[no-untyped-call]

    def answer(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = loaded(blob).plan
        part = merged_parts((part.as_py() for batch in batches for part in batch.column("part")), plan)
        answers, counts = answer_bucket(plan, part, pickle.loads(own))
        folds, timer = answers.folds(divided), Timer()
        if folds:
            yield _whole_row(FOLDED, rows=encode(State(folds)))
        for block in answers.blocks(without=divided, timed=timer):
            yield _whole_row(block.shape, json.dumps(block.queries), block.bounds.tobytes(), _ipc(block.table))
        facts = BucketFacts(counts, part.ticks, part.scanned, timer.seconds)
        yield _whole_row(COUNTS, rows=pickle.dumps(facts))
        _settle()

    # Spark chooses the iterator form of the function by its type hints, which it does not understand as strings.
    answer.__annotations__ = {
        "key": tuple[pa.Scalar, ...],
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return answer


def _whole_row(shape: int, queries: str = "", bounds: bytes = b"", rows: bytes = b"") -> pa.RecordBatch:
    columns: list[pa.Array] = [pa.array([shape], pa.int32()), pa.array([queries], pa.string())]
    columns += [pa.array([blob], pa.binary()) for blob in (bounds, rows)]
    return pa.RecordBatch.from_arrays(columns, _BLOCK_NAMES[:4])


class StateStore:
    """The blobs of one bucket in Spark's state store."""

    def __init__(self, state: Any, place: str) -> None:
        self._state, self.place = state, place

    def get(self, name: str) -> bytes | None:
        # Every name but that of the head is known to be there, and each call goes through a socket.
        if name == HEAD and not self._state.containsKey((name,)):
            return None
        return bytes(self._state.getValue((name,))[0])

    def put(self, name: str, blob: bytes) -> None:
        self._state.updateValue((name,), (blob,))

    def remove(self, name: str) -> None:
        self._state.removeKey((name,))


class BucketProcessor(StatefulProcessor):
    """The step of a bucket in a stream: one call per micro-batch, with what every task has sent."""

    def __init__(self, blob: bytes) -> None:
        self._blob = blob

    def init(self, handle: Any) -> None:
        self._state = handle.getMapState(STATE, "name string", "blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802
        planned = loaded(self._blob)
        part, is_first = merged_parts((bytes(row["part"]) for row in rows), planned.plan), _is_first(key[0])
        task = TaskContext.get()
        query = None if task is None else task.getLocalProperty(_QUERY_ID)
        store = StateStore(self._state, f"{query} {key[0]}" if query else "")
        made = step_bucket(planned, store, part, by_delay(planned.plan), is_first=is_first)
        for row in _block_rows(made, is_first=is_first):
            yield Row(**row)

    def close(self) -> None:
        _settle()


def _block_rows(made: BucketRound, *, is_first: bool) -> Iterator[dict[str, Any]]:
    """Yield the blocks of a bucket as rows and, from the first bucket, the counts of the round."""
    for block in made.blocks():
        yield {
            "shape": block.shape,
            "queries": json.dumps(block.queries),
            "bounds": block.bounds.tobytes(),
            "rows": _ipc(block.table),
            **dict.fromkeys(_BLOCK_NAMES[4:]),
        }
    if is_first:
        late = made.late_total
        yield {
            "shape": COUNTS,
            "queries": "",
            "bounds": b"",
            "rows": b"",
            "events": made.events,
            "untimed": made.untimed,
            "late_partly": late.partly,
            "late_dropped": late.dropped,
            "watermark": min(made.frontiers.values(), default=None),
        }


def _ipc(table: pa.Table) -> bytes:
    """Return rows as bytes, compressed: on their way to the next process, Spark copies them several times."""
    return bytes(table_blob(table))


def blocks_of(batches: _Batches) -> Iterator[Block]:
    """Yield the blocks of answers among the rows that buckets return."""
    for batch in batches:
        columns = (batch.column(name) for name in ("shape", "queries", "bounds", "rows"))
        for shape, queries, bounds, rows in zip(*columns, strict=True):
            if shape.as_py() < 0:
                continue
            table = pa.ipc.open_stream(rows.as_buffer()).read_all()
            names = tuple(json.loads(queries.as_py()))
            yield Block(shape.as_py(), names, np.frombuffer(bounds.as_py(), np.int64), table)


def _rows_task(name: str, shape: Shape) -> Callable[[_Batches], _Batches]:
    """Return the task that takes the rows of one query from blocks."""
    columns = [("window_start", shape.time), ("window_end", shape.time), *shape.groups, *shape.columns]
    schema = pa.schema([(column, arrow_type(kind)) for column, kind in columns])

    def rows(batches: _Batches) -> _Batches:
        for block in blocks_of(batches):
            for index, query in enumerate(block.queries):
                if query == name:
                    first, last = int(block.bounds[index]), int(block.bounds[index + 1])
                    yield from block.table.slice(first, last - first).cast(schema).to_batches(BATCH_ROWS)
        _settle()

    return rows


def _all_rows_task(blob: bytes, schema: pa.Schema) -> Callable[[_Batches], _Batches]:
    """Return the task that finishes the rows of all queries in blocks, with the columns of a common schema."""

    def rows(batches: _Batches) -> _Batches:
        shapes = loaded(blob).plan.shapes
        for block in blocks_of(batches):
            names = np.repeat(np.array(block.queries, object), np.diff(block.bounds))
            table = block.table.append_column("query", pa.array(names, pa.string()))
            try:
                finished = answer_rows(shapes[block.shape], table, ("query",))
            except DeclinedError as error:
                raise WindloomError(
                    f"an answer of query '{block.queries[0]}', or of another with these columns, cannot be evaluated",
                    str(error),
                    "ask for one query, whose expressions Spark evaluates: loom.answers('NAME')",
                ) from None
            count = finished.num_rows
            own = set(finished.column_names)
            columns = [
                finished[field.name].cast(field.type) if field.name in own else pa.nulls(count, field.type)
                for field in schema
            ]
            yield from pa.Table.from_arrays(columns, schema=schema).to_batches(BATCH_ROWS)
        _settle()

    return rows
