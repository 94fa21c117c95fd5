"""The tuples of strands, from the files in which a stream keeps them: for row queries, questions and later queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from windloom.answers.blocks import Block
from windloom.answers.rows.interval_joins import NearTuples, fits, near_tuples
from windloom.answers.rows.row_queries import columns_of, summary_blocks
from windloom.checkpoint.tuple_files import ROUND, TICK, column_name
from windloom.checkpoint.tuple_folder import TupleFolder
from windloom.model.expression import Expression
from windloom.model.rows import RowInput
from windloom.model.stream import Stream
from windloom.model.time import TICK_MAX
from windloom.model.types import BIGINT, arrow_type
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.intake.choose import choose_scans
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.rows import NearJoin, near_join
from windloom.plan.scans import WovenScan
from windloom.spark.frames import arrow_frame
from windloom.spark.rows.job import FEW_TUPLES, JobSessions, TupleViews, row_blocks, row_summaries
from windloom.spark.scan import ScanJobs
from windloom.spark.sources.hadoop import is_remote
from windloom.spark.sources.read import local_path
from windloom.state.cells import Cells
from windloom.state.state import State
from windloom.state.tuple_store import ReportedWindows, TupleFile, TupleStores, needed_from, needed_until
from windloom.weave.round_input import take_tuples

#: Up to this many tuples of both sides are joined on the driver and not by Spark.
NEAR_TUPLES = 8_000_000


@dataclass(frozen=True, slots=True)
class StoredTuples:
    """The tuples of streams in files of a folder, for jobs of a session."""

    folder: TupleFolder
    streams: Mapping[str, Stream]
    sessions: JobSessions

    def views(self, kept: TupleStores, asked: Sequence[ReportedWindows]) -> TupleViews:
        """Return views of the tuples that are asked for: few are read on the driver, many by tasks of Spark."""
        is_few = read_tuples(kept, asked) <= FEW_TUPLES
        spark = self.sessions.of(is_few=is_few)
        wanted: dict[str, set[str]] = {}
        files: dict[str, dict[str, TupleFile]] = {}
        for strand, strand_files in _read(kept, asked):
            wanted.setdefault(strand.stream, set()).update(strand.columns)
            files.setdefault(strand.stream, {}).update({file.name: file for file in strand_files})

        def tuples(strand: RowInput, begin: int, end: int) -> tuple[object, Callable[[], DataFrame]]:
            stream, columns = self.streams[strand.stream], sorted(wanted[strand.stream])
            if is_few:
                own = list(files[strand.stream].values())
                return stream.name, lambda: self.frame(spark, stream, columns, own, on_driver=True)
            named = _files(kept, strand, begin, end)
            key = (stream.name, tuple(file.name for file in named))
            return key, lambda: self.frame(spark, stream, columns, named)

        return TupleViews(spark, tuples, has_rounds=True)

    def frame(
        self,
        spark: SparkSession,
        stream: Stream,
        columns: Sequence[str],
        files: Sequence[TupleFile],
        *,
        on_driver: bool = False,
    ) -> DataFrame:
        """Return columns of tuples, `__tick` and `__round`, read now (`on_driver`) or by the tasks of a job."""
        fields = [f"{column_name(stream, name)} {stream.columns[name].name}" for name in columns]
        ddl = ", ".join([*fields, f"{TICK} bigint", f"{ROUND} bigint"])
        if files and on_driver:
            frame = arrow_frame(spark, self.table(stream, columns, files), ddl).coalesce(1)
        elif files:
            paths = [f"{self.folder.place}/{file.name}" for file in files]
            if not is_remote(self.folder.place):
                paths = [local_path(Path(path)) for path in paths]
            # Damage is an error, never a wrong row. The schema is given, so that no job must look for it in the files.
            frame = spark.read.schema(ddl).option("parquet.page.verify-checksum.enabled", "true").parquet(*paths)
        else:
            frame = spark.createDataFrame([], ddl)
        named = (f"{column_name(stream, name)} AS {Expression.of_column(name).sql}" for name in columns)
        return frame.selectExpr(*named, TICK, ROUND)

    def table(self, stream: Stream, columns: Sequence[str], files: Sequence[TupleFile]) -> pa.Table:
        """Return columns of the tuples in some files, with their names in the files, then `__tick` and `__round`."""
        names = [*(column_name(stream, name) for name in columns), TICK, ROUND]
        kinds = [*(arrow_type(stream.columns[name]) for name in columns), pa.int64(), pa.int64()]
        if not files:
            return pa.schema(list(zip(names, kinds, strict=True))).empty_table()
        tables = [self.folder.read(file, names) for file in files]
        table = pa.concat_tables(tables, promote_options="default")
        return _with_columns(table, dict(zip(names, kinds, strict=True))).select(names).combine_chunks()

    def near(self, kept: TupleStores, asked_rows: ReportedWindows) -> tuple[NearJoin, tuple[NearTuples, ...]] | None:
        """Return an interval join that the driver makes, with its tuples; None for others, or for very many tuples."""
        join = near_join(asked_rows.planned, self.streams)
        if join is None or read_tuples(kept, [asked_rows]) > NEAR_TUPLES:
            return None
        sides = []
        for strand, files in _read(kept, [asked_rows]):
            stream = self.streams[strand.stream]
            names = {name: column_name(stream, name) for name in strand.columns}
            kinds = [(column, arrow_type(stream.columns[name])) for name, column in names.items()]
            schema = pa.schema([*kinds, (TICK, pa.int64()), (ROUND, pa.int64())])
            sides.append(near_tuples(self.table(stream, list(names), files).cast(schema), names, TICK, ROUND))
        return (join, tuple(sides)) if fits(sides, join) else None


def _with_columns(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Return tuples with NULL in columns that none of their files has: these came later, or were kept later."""
    for name, kind in kinds.items():
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, kind))
    return table


def read_tuples(kept: TupleStores, asked: Sequence[ReportedWindows]) -> int:
    """Return the number of tuples in the files that a job reads, counted once for every strand."""
    return sum(file.rows for _, files in _read(kept, asked) for file in files)


def _read(kept: TupleStores, asked: Sequence[ReportedWindows]) -> list[tuple[RowInput, tuple[TupleFile, ...]]]:
    """Return every strand, with the files that it needs."""
    files_by_strand = []
    for asked_rows in asked:
        rows, end = asked_rows.planned.rows, needed_until(asked_rows.span)
        for strand in rows.strands:
            begin = needed_from(rows, strand.window, asked_rows.span)
            files_by_strand.append((strand, _files(kept, strand, begin, end)))
    return files_by_strand


def _files(kept: TupleStores, strand: RowInput, begin: int, end: int) -> tuple[TupleFile, ...]:
    return kept[strand.stream].between(begin, end) if strand.stream in kept else ()


@dataclass(frozen=True, slots=True)
class SparkHistory:
    """Makes cells and rows from kept tuples, if no cells were kept: for questions, and queries that are added later."""

    stored: StoredTuples

    def cells(self, plan: Plan, kept: TupleStores, since: Mapping[str, int]) -> dict[int, Cells]:
        """Return the cells of all sets of a plan, by number; `since` says which ticks count, by stream."""
        cells_by_set: dict[int, Cells] = {}
        for name, tick in since.items():
            stream = self.stored.streams[name]
            stream_plan = _alone(plan, stream)
            files = kept[name].between(tick, TICK_MAX)
            (scan,) = stream_plan.scans
            if isinstance(scan, WovenScan) and _is_plain(scan, stream):
                woven = take_tuples(stream_plan, scan, self._read(scan, stream, files, tick)).cells
            else:  # expressions that only Spark can evaluate
                sets = stream_plan.sets
                columns = {stream.time, *(column for partial_set in sets for column in columns_of(partial_set))}
                spark, names = self.stored.sessions.of(is_few=False), sorted(columns & stream.columns.keys())
                frame = self.stored.frame(spark, stream, names, files).where(f"{TICK} >= {tick}L")
                timed = replace(stream, columns={**stream.columns, TICK: BIGINT}, time=TICK, time_unit="us")
                scanned = ScanJobs().take_in(replace(stream_plan, streams=(timed,)), {name: frame}, None, State())
                woven = scanned.taken.cells
            numbers = [partial_set.number for partial_set in plan.sets if partial_set.stream == name]
            cells_by_set |= {numbers[index]: cells for index, cells in woven.items()}
        return cells_by_set

    def _read(self, scan: WovenScan, stream: Stream, files: Sequence[TupleFile], since: int) -> pa.Table:
        """Return projected tuples, read on the driver, for scans that project columns and nothing else."""
        kinds = {}
        for column in scan.columns:
            name = _column(column.sql, stream)
            kinds[column_name(stream, name)] = arrow_type(stream.columns[name])
        names = [column_name(stream, _column(column.sql, stream)) for column in scan.columns]
        tables = [self.stored.folder.read(file, list(dict.fromkeys([TICK, *names]))) for file in files]
        columns = ["tick", *(f"x{i}" for i in range(len(names)))]
        if not tables:
            nothing = [pa.int64(), *(pa.null() for _ in names)]
            return pa.Table.from_arrays([pa.array([], kind) for kind in nothing], names=columns)
        table = _with_columns(pa.concat_tables(tables, promote_options="default"), kinds)
        if int(np.min(table.column(TICK).to_numpy())) < since:
            table = table.filter(pc.greater_equal(table.column(TICK), since))
        return pa.Table.from_arrays([table.column(TICK), *(table.column(name) for name in names)], names=columns)

    def blocks(self, plan: Plan, asked: ReportedWindows, kept: TupleStores) -> Iterator[Block]:
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
