"""Cells and rows from tuples that are kept, for questions and for queries that are added later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windloom.durable.tuples import TICK, column_name
from windloom.model.stream import Stream
from windloom.model.time import TICK_MAX
from windloom.model.types import BIGINT
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.intake import choose_scans
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.scans import WovenScan
from windloom.rounds.block import Block
from windloom.rounds.cells import Cells
from windloom.rounds.rows.kept import Kept, TupleFile
from windloom.rounds.rows.questions import columns_of
from windloom.rounds.rows.spans import AskedRows
from windloom.rounds.rows.summaries import summary_blocks
from windloom.rounds.state import State
from windloom.rounds.taken import take_tuples
from windloom.spark.intake.take import ScanJobs
from windloom.spark.rows.job import row_blocks, row_summaries
from windloom.spark.rows.stored import StoredTuples


@dataclass(frozen=True, slots=True)
class SparkHistory:
    """Makes cells and rows from kept tuples, if no cells were kept."""

    stored: StoredTuples

    def cells(self, plan: Plan, kept: Kept, since: Mapping[str, int]) -> dict[int, Cells]:
        """Return the cells of all sets of a plan, by number; `since` says which ticks count, by stream."""
        cells_by_set: dict[int, Cells] = {}
        for name, tick in since.items():
            stream = self.stored.streams[name]
            stream_plan = _alone(plan, stream)
            files = kept[name].between(tick, TICK_MAX)
            (scan,) = stream_plan.scans
            if isinstance(scan, WovenScan) and _is_plain(scan, stream):
                woven = take_tuples(stream_plan, scan, self._read(scan, stream, files, tick)).cells
            else:
                woven = self._by_spark(stream_plan, stream, files, tick)
            numbers = [partial_set.number for partial_set in plan.sets if partial_set.stream == name]
            cells_by_set |= {numbers[index]: cells for index, cells in woven.items()}
        return cells_by_set

    def _by_spark(self, plan: Plan, stream: Stream, files: Sequence[TupleFile], since: int) -> Mapping[int, Cells]:
        """Return the cells, made by Spark, for expressions that only Spark can evaluate."""
        spark = self.stored.sessions.of(is_few=False)
        columns = sorted({stream.time, *(column for partial_set in plan.sets for column in columns_of(partial_set))})
        columns = [name for name in columns if name in stream.columns]
        frame = self.stored.frame(spark, stream, columns, files).where(f"{TICK} >= {since}L")
        timed = replace(stream, columns={**stream.columns, TICK: BIGINT}, time=TICK, time_unit="us")
        return ScanJobs().take_in(replace(plan, streams=(timed,)), {stream.name: frame}, None, State()).taken.cells

    def _read(self, scan: WovenScan, stream: Stream, files: Sequence[TupleFile], since: int) -> pa.Table:
        """Return projected tuples, read on the driver, for scans that project columns and nothing else."""
        names = [column_name(stream, _column(column.sql, stream)) for column in scan.columns]
        tables = [self.stored.folder.read(file, list(dict.fromkeys([TICK, *names]))) for file in files]
        columns = ["tick", *(f"x{i}" for i in range(len(names)))]
        if not tables:
            kinds = [pa.int64(), *(pa.null() for _ in names)]
            return pa.Table.from_arrays([pa.array([], kind) for kind in kinds], names=columns)
        table = pa.concat_tables(tables, promote_options="default")
        if int(np.min(table.column(TICK).to_numpy())) < since:
            table = table.filter(pc.greater_equal(table.column(TICK), since))
        return pa.Table.from_arrays([table.column(TICK), *(table.column(name) for name in names)], names=columns)

    def blocks(self, plan: Plan, asked: AskedRows, kept: Kept) -> Iterator[Block]:
        """Yield the rows of a question."""
        views = self.stored.views(kept, [asked])
        if not asked.planned.is_summarised:
            yield from row_blocks(plan, [asked], views)
            return
        for cells in row_summaries(plan, [asked], views).values():
            yield from summary_blocks(plan, asked.planned, cells, asked.span)


def _alone(plan: Plan, stream: Stream) -> Plan:
    """Return a plan of the sets of one stream."""
    sets: list[PartialSet] = [partial_set for partial_set in plan.sets if partial_set.stream == stream.name]
    sets = [replace(partial_set, number=number) for number, partial_set in enumerate(sets)]
    # Tuples that are read on the driver need no job, so weaving them is cheaper if no expression is computed.
    scans = choose_scans([stream], sets, "woven", load_constants())
    scan = scans[0]
    if not (isinstance(scan, WovenScan) and _is_plain(scan, stream)):
        scans = choose_scans([stream], sets, "auto", load_constants())
    plan = replace(plan, joins=(), rows=(), stores=(), enriched=(), relations=())
    return replace(plan, streams=(stream,), sets=tuple(sets), scans=scans)


def _is_plain(scan: WovenScan, stream: Stream) -> bool:
    """Return whether a scan reads all tuples, and only columns as they are."""
    if scan.signature.predicates or scan.signature.where is not None:
        return False
    return all(_column(column.sql, stream) in stream.columns for column in scan.columns)


def _column(sql: str, stream: Stream) -> str:
    return sql[1:-1].replace("``", "`") if sql.startswith("`") else sql
