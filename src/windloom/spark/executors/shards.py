"""Takes in tuples on executors: tasks make cells and divide them into shards, before or after a shuffle.

If cells are far fewer than tuples, tuples are woven where they are read, and only cells are shuffled. If a
grouping has about one cell per tuple, its tuples are shuffled by their group first, so that each cell is made once.
Either way, a task yields one row per shard, with its cells of all sets, and one row that reports what the task saw.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.checkpoint.frames import table_blob, table_of
from windloom.checkpoint.shards.split import split_cells
from windloom.model.stream import Stream
from windloom.optimizer.intake.woven import Keeping, keeping_of, woven_scan
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import NativeScan, Scan, WovenScan
from windloom.plan.sharding import sharding_of
from windloom.spark.count_windows import counted_tuples
from windloom.spark.frames import union_all
from windloom.spark.kept_tuples import TupleKeeper, keep_by_spark, keeping_scan
from windloom.spark.native import partials_frame, timed_partials
from windloom.spark.operator.frames import tables_of
from windloom.spark.projection import clock, projected, with_positions
from windloom.spark.scan import bases_unread, counted_events
from windloom.spark.untimed import without_time
from windloom.state.frontiers import ON_TIME, LateBounds, LateTuples, join_behind
from windloom.state.positions import Counting, PositionCounts, Positions, counting_of
from windloom.weave.round_input import ScanResult, take_partials, take_together, take_tuples
from windloom.weave.weave import ScanCounts, Ticks, timed_tuples

#: In place of a shard's number: the row reports what a task saw.
TOLD = -1
#: In place of a shard's number: the row holds how many tuples of each key a task has counted.
_COUNTED = -2

#: From this many cells per tuple on, tuples are shuffled by their group before they are woven.
MANY_CELLS = 0.5

_SCHEMA = pa.schema([("scan", pa.int32()), ("shard", pa.int32()), ("cells", pa.binary())])
_DDL = "scan int, shard int, cells binary"

_Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What all tasks of a round saw."""

    largest_ticks: Mapping[str, int] = field(default_factory=dict)
    smallest_ticks: Mapping[str, int] = field(default_factory=dict)
    untimed: Mapping[str, int] = field(default_factory=dict)
    behind: Mapping[int, LateTuples] = field(default_factory=dict)
    scanned: Mapping[int, ScanCounts] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=dict)
    positions: Positions | None = None  # after the round, if tuples are counted


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass over the tuples of a stream, and whether it reports what its scan saw."""

    scan: Scan
    tells: bool
    shuffled_by: tuple[str, ...] = ()  # SQL over the projected columns


def shard_cells(
    plan: Plan, frames: Mapping[str, DataFrame], before: Mapping[str, LateBounds], shards: int
) -> tuple[DataFrame, int]:
    """A lazy frame of rows `scan`, `shard`, `cells` of all scans, and how often it reads the tuples."""
    found = []
    for scan in plan.scans:
        stream, frame = plan.stream(scan.stream), frames[scan.stream]
        if isinstance(scan, WovenScan) and scan.counted_by is not None:
            # All tuples are counted, whether they satisfy WHERE or not: a window of rows is taken before WHERE.
            frame = with_positions(frame, stream, scan.counted_by)
        for one_pass in _passes(plan, scan):
            taken = _taken_frame(one_pass, stream, frame, shards)
            found.append(taken.mapInArrow(_task(plan, one_pass, before.get(stream.name, ON_TIME), shards), _DDL))
    if not found:  # there are only row queries, which are answered from tuples
        spark = next(iter(frames.values())).sparkSession
        return spark.createDataFrame([], _DDL), 0
    return union_all(found), len(found)


def told(plan: Plan, frame: DataFrame) -> ShardReport:
    """What the tasks saw; found by one job, which also fills the frame if it is persisted."""
    ticks: dict[str, Ticks] = {}
    untimed: dict[int, int] = {}  # by scan: each scan of a stream has seen the same ones
    behind: dict[int, list[LateTuples]] = {}
    scanned: dict[int, ScanCounts] = {}
    counts: dict[Counting, PositionCounts] = {}
    for row in frame.where(F.col("shard") < 0).collect():
        scan = plan.scans[row["scan"]]
        if row["shard"] == _COUNTED:
            assert isinstance(scan, WovenScan)
            counting = counting_of(scan)
            counts[counting] = counts.get(counting, PositionCounts()).plus(table_of(memoryview(row["cells"])))
            continue
        about, seen, late = _read_told(row["cells"])
        if plan.base_of(scan.stream) == scan.stream:  # an enriched stream has no clock of its own
            ticks[scan.stream] = ticks.get(scan.stream, Ticks()) + about
            untimed[scan.number] = untimed.get(scan.number, 0) + about.untimed
        scanned[scan.number] = scanned.get(scan.number, ScanCounts()) + seen
        if late is not None:
            behind.setdefault(scan.number, []).append(late)
    return ShardReport(
        {name: tick.last for name, tick in ticks.items() if tick.last is not None},
        {name: tick.first for name, tick in ticks.items() if tick.first is not None},
        {plan.scans[number].stream: tuples for number, tuples in untimed.items() if tuples},
        {number: join_behind(found) for number, found in behind.items()},
        scanned,
        counted_events(plan, scanned, {}),
        Positions({}, counts) if counts else None,
    )


def refuse_untimed(plan: Plan, seen: ShardReport) -> None:
    for name, tuples in seen.untimed.items():
        raise without_time(plan.stream(name), tuples)


def with_clocks(
    seen: ShardReport, plan: Plan, frames: Mapping[str, DataFrame], streams: Iterable[Stream]
) -> ShardReport:
    """Adds the ticks of streams whose tuples are not all seen by a scan."""
    largest, smallest, events = dict(seen.largest_ticks), dict(seen.smallest_ticks), dict(seen.events)
    seeing = {scan.stream for scan in plan.scans if scan.signature.sees_all}
    unread, untimed = bases_unread(plan), dict(seen.untimed)
    known = {stream.name: stream for stream in (*plan.streams, *streams)}
    for name in {stream.name for stream in streams} - seeing | unread:
        ticks = clock(known[name], frames[name])
        if ticks.first is not None and ticks.last is not None:
            smallest[name], largest[name] = ticks.first, ticks.last
        events[name] = ticks.tuples or 0
        if name in unread and ticks.untimed:
            untimed[name] = ticks.untimed
    return replace(seen, largest_ticks=largest, smallest_ticks=smallest, untimed=untimed, events=events)


def keep_tuples(plan: Plan, frames: Mapping[str, DataFrame], keeper: TupleKeeper) -> None:
    """Brings the tuples that are kept to `keeper`, one portion at a time: one process writes few and large files.

    Only the columns that are kept come, and only tuples that some row query wants.
    """
    for scan in plan.scans:
        own = keeping_scan(plan, scan)
        if own is not None:
            keep_by_spark(own, plan.stream(scan.stream), frames[scan.stream], keeper)


def _keeping(plan: Plan, scan: Scan) -> Keeping | None:
    """What is kept of the tuples of a scan; None if it is not the scan of its stream that keeps them."""
    store = plan.store(scan.stream)
    if store is None or not isinstance(scan, WovenScan) or scan.kept is None:
        return None
    return keeping_of(store, plan.rows, plan.stream(scan.stream))


def _passes(plan: Plan, scan: Scan) -> list[_Pass]:
    """The passes of a scan: one woven where tuples are read, and one for each grouping that is shuffled first."""
    if isinstance(scan, NativeScan) or scan.counted_by is not None:
        return [_Pass(scan, tells=not isinstance(scan, NativeScan) or scan.tells)]
    groupings: dict[tuple[str, ...], list[PartialSet]] = {}
    for fed in scan.feeds:
        partial_set = plan.sets[fed.number]
        key = (
            tuple(expression.sql for expression in partial_set.group_by)
            if _cells_per_tuple(partial_set) > MANY_CELLS
            else ()
        )
        groupings.setdefault(key, []).append(partial_set)
    if set(groupings) <= {()}:
        return [_Pass(scan, tells=True)]
    every = {*(fed.number for fed in scan.feeds), *(number for number, _ in scan.watched)}
    found: list[_Pass] = []
    for key, sets in sorted(groupings.items()):
        # The first pass reports on the whole stream: it reads what any set of the scan wants, at all edges.
        others = () if found else sorted(every - {partial_set.number for partial_set in sets})
        keeping = None if found else _keeping(plan, scan)
        own = woven_scan(scan.number, sets, [plan.sets[number] for number in others], keeping=keeping)
        columns = {column.sql: f"x{i}" for i, column in enumerate(own.columns)}
        found.append(_Pass(own, tells=not found, shuffled_by=tuple(columns[sql] for sql in key)))
    return found


def _cells_per_tuple(partial_set: PartialSet) -> float:
    """The number of cells per tuple, estimated from statistics; a set without grouping columns has few cells."""
    if not partial_set.group_by:
        return 0.0
    statistics = partial_set.statistics
    return 1.0 / max(1.0, float(statistics.tuples_per_cell(np.array([partial_set.edges.edges_per_second]))[0]))


def _taken_frame(own: _Pass, stream: Stream, frame: DataFrame, shards: int) -> DataFrame:
    if isinstance(own.scan, NativeScan):
        return partials_frame(own.scan, stream, frame)
    found = projected(own.scan, stream, frame)
    return found.repartition(shards, *own.shuffled_by) if own.shuffled_by else found


def _task(plan: Plan, own: _Pass, before: LateBounds, shards: int) -> _Task:
    """The function that is sent to the executors: it carries values only, never a frame."""
    sharding = sharding_of(plan)

    def take(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ticks, parts, counts = Ticks(), [], PositionCounts()
        for table in tables_of(batches):
            if isinstance(own.scan, NativeScan):
                table, span = timed_partials(own.scan, table)
                parts.append(take_partials(plan, own.scan, table, before))
            else:
                table, span = timed_tuples(table)
                counts = counts if own.scan.counted_by is None else counts.plus(counted_tuples(plan, own.scan, table))
                parts.append(take_tuples(plan, own.scan, table, before))
            ticks += span
        taken = take_together(parts) if parts else ScanResult()
        number = own.scan.number
        if own.tells:
            seen = taken.scanned.get(number, ScanCounts())
            yield _row(number, TOLD, _write_told(ticks, seen, taken.behind.get(number)))
        if counts.table is not None:
            yield _row(number, _COUNTED, table_blob(counts.table).to_pybytes())
        for shard, cells in split_cells(taken.cells, shards, sharding):
            yield _row(number, shard, cells)

    return take


def _row(scan: int, shard: int, cells: bytes) -> pa.RecordBatch:
    columns: Sequence[list[object]] = ([scan], [shard], [cells])
    arrays = [pa.array(values, column.type) for values, column in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _write_told(ticks: Ticks, seen: ScanCounts, behind: LateTuples | None) -> bytes:
    about = {"first": ticks.first, "last": ticks.last, "untimed": ticks.untimed, "scanned": asdict(seen)}
    columns = [] if behind is None else [column.tolist() for column in (behind.starts, behind.tuples, *behind.words)]
    return json.dumps({**about, "behind": columns}).encode()


def _read_told(data: bytes) -> tuple[Ticks, ScanCounts, LateTuples | None]:
    about = json.loads(bytes(data))
    ticks, seen = Ticks(about["first"], about["last"], about["untimed"]), ScanCounts(**about["scanned"])
    if not about["behind"]:
        return ticks, seen, None
    columns = [pa.array(column, pa.int64()) for column in about["behind"]]
    return (
        ticks,
        seen,
        LateTuples.from_table(pa.Table.from_arrays(columns, names=[str(i) for i in range(len(columns))])),
    )
