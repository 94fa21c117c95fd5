"""Streams in micro-batches without a JVM: the real round loop, checkpoint and sink, fed with rows.

What Spark does with tuples is done in plain Python (`RowJobs`); all else is what runs in production. A `MicroBatches`
is one life of a stream. Another one over the same folder is its next life, whether the first has ended or was
interrupted at a fault point (`crash_at`, `crash_after`).
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from support.catalogs import STREAMS, TYPES
from support.native import taken_of_plan, tuples_table
from support.positions import take_rows
from support.relations import RowVersions, Versions
from support.row_answers import row_blocks, row_summaries
from windloom.answers.blocks import Block
from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.json_codec import read_adapted
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.recovery import recover
from windloom.checkpoint.storage import LocalStorage, watched
from windloom.checkpoint.tuple_folder import TupleFolder, named_files
from windloom.engine.budget import Scheduling
from windloom.engine.driver import DriverPlacement
from windloom.engine.loop import Listeners, RoundLoop
from windloom.engine.progress import RoundProgress
from windloom.engine.relation_versions import Relations
from windloom.engine.replanning import Adapting
from windloom.engine.row_queries import RowQueries
from windloom.engine.snapshots import HistoryJobs, TupleHistory
from windloom.model import DataType, ExpressionKey, Query, Relation, Stream
from windloom.optimizer.adapt.basins import Basin, basins_of
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.replan import Adapter, AdaptOptions
from windloom.optimizer.adapt.worker import ImmediateWorker
from windloom.optimizer.cost.constants import shipped_constants
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.costs import Choices
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.sinks.delivery import SinkWait
from windloom.sinks.parquet import ParquetSink
from windloom.sinks.registry import SinkOpener
from windloom.sinks.sink import Sink, SinkPlace
from windloom.sinks.tables import AnswerTables
from windloom.spark.count_windows import TakenRows
from windloom.spark.kept_tuples import TupleKeeper
from windloom.spark.scan import RoundScans
from windloom.state.cells import Cells
from windloom.state.state import State
from windloom.state.tuple_store import ReportedWindows, TupleStores
from windloom.statistics.estimates import Estimates, Memory
from windloom.weave.round_input import Watermarks

Row = dict[str, Any]
Frames = Mapping[str, Sequence[Row]]
Types = Mapping[ExpressionKey, DataType]


class CrashError(BaseException):
    """Nothing catches it, as nothing catches kill -9."""


class ManualClock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class RowJobs:
    """What Spark does for a round; `runs` counts how often tuples were asked for."""

    def __init__(self, folder: TupleFolder | None = None) -> None:
        self.runs = 0
        self._folder = folder

    def take_in(
        self, plan: Plan, frames: Frames, batch: object, state: State, keeper: TupleKeeper | None = None
    ) -> RoundScans:
        self.runs += 1
        taken = taken_of_plan(plan, frames, state)
        tuples = {
            scan.number: tuples_table(plan, scan, frames.get(scan.stream, ()))
            for scan in plan.scans
            if isinstance(scan, WovenScan) and scan.counted_by is None
        }
        for number, table in tuples.items() if keeper is not None else ():
            keeper.take(plan.scans[number], table)
        frames = {name: rows for name, rows in frames.items() if plan.base_of(name) == name}
        events = {name: len(rows) for name, rows in frames.items()}
        return RoundScans(taken, _ticks(max, frames), _ticks(min, frames), {}, tuples, events)

    def take_rows(self, plan: Plan, frames: Frames, state: State, frontiers: Mapping[str, int]) -> TakenRows:
        return TakenRows(*take_rows(plan, frames, state, frontiers))

    def row_summaries(
        self, plan: Plan, asked: Sequence[ReportedWindows], frames: Frames, kept: TupleStores
    ) -> dict[str, Cells]:
        return row_summaries(plan, asked, kept, self._folder)

    def row_blocks(
        self, plan: Plan, asked: Sequence[ReportedWindows], frames: Frames, kept: TupleStores
    ) -> Iterator[Block]:
        return row_blocks(plan, asked, kept, self._folder)


class RecordedQueries:
    """Plans of plan records; a query's text is the query itself, so that any process can read it."""

    def __init__(
        self, streams: Mapping[str, Stream], types: Types, intake: str, joins: str = "auto", tuples: int = 0
    ) -> None:
        self._streams, self._types = streams, types
        self._options = PlanOptions(intake=intake, joins=joins, tuples=tuples)

    def plan_of(self, record: PlanRecord) -> Plan:
        return _plan(
            tuple(self._streams.values()),
            tuple(record.queries.items()),
            tuple(self._types.items()),
            self._options,
            record.given,
        )

    def basins(self, record: PlanRecord) -> list[Basin]:
        queries = [pickle.loads(base64.b64decode(text)) for text in record.queries.values()]
        known = PlanningFacts(shipped_constants(), ongoing=record.ongoing)
        return basins_of(self._streams, queries, self._types, self._options, known)


@lru_cache(maxsize=64)
def _plan(
    streams: tuple[Stream, ...],
    texts: tuple[tuple[str, str], ...],
    types: tuple[tuple[ExpressionKey, DataType], ...],
    options: PlanOptions,
    given: Choices | None,
) -> Plan:
    queries = [pickle.loads(base64.b64decode(text)) for _, text in texts]
    by_name = {stream.name: stream for stream in streams}
    return make_plan(by_name, queries, dict(types), options, PlanningFacts(), given=given)


class UsualSettings:
    """Stands for a session that has no settings of its own and runs nothing: rows are finished without it."""

    @property
    def conf(self) -> Mapping[str, str]:
        return {}


class _Split:
    """Rows come by stream already."""

    def split(self, batch: Frames) -> Frames:
        return batch


class MicroBatches:
    """One life of a stream in a folder; a context manager, at whose end the checkpoint is free again."""

    def __init__(
        self,
        folder: Path,
        streams: Mapping[str, Stream] = STREAMS,
        *,
        snapshot_rounds: int = 3,
        history_ticks: int = 0,
        idle_after: float | None = None,
        clock: ManualClock | None = None,
        sinks: Mapping[str, Sink] | None = None,
        openers: Mapping[str, SinkOpener] | None = None,
        sink_patience: float = 60.0,
        intake: str = "auto",
        joins: str = "auto",
        types: Types = TYPES,
        adapt: AdaptOptions | None = None,
        objective: Objective | None = None,
        scheduling: Scheduling | None = None,
        round_clock: ManualClock | None = None,
        tuples: int = 0,
        jobs: Callable[[TupleFolder], Any] = RowJobs,
        history: Callable[[TupleFolder, Mapping[str, Stream]], HistoryJobs] | None = None,
        relations: Mapping[str, Relation] | None = None,
        versions: Versions | None = None,
    ) -> None:
        """`jobs` are what is done with tuples: in plain Python, or by Spark for frames of Spark.

        `history` makes cells of tuples that are kept, for queries that are added.
        """
        storage = LocalStorage(folder / "checkpoint")
        self.tuples = TupleFolder(storage, str(storage.root), streams)
        self.checkpoint, self.jobs = Checkpoint.open(storage, streams), jobs(self.tuples)
        self.done = list[RoundProgress]()
        self._history_ticks = history_ticks
        watermarks = Watermarks(streams, clock or ManualClock(), idle_after)
        kept: Sink = ParquetSink(LocalStorage(folder / "answers"), str(folder / "answers"), self.checkpoint.id)
        tables = AnswerTables(UsualSettings())
        every = {"parquet": kept, **(sinks or {})}
        self._sinks = every
        self.waits: list[SinkWait | None] = []
        try:
            for name, opener in (openers or {}).items():
                every[name] = opener(SinkPlace(None, str(storage.root), self.checkpoint.id))
            self.versions, self.relations = versions or Versions([{}]), RowVersions()
            held = Relations(self.versions.sources(), self.relations)
            rows = RowQueries(self.jobs, self.tuples)
            placed = DriverPlacement(self.jobs, self.checkpoint, watermarks, rows, held)
            queries = self._queries = RecordedQueries({**streams, **(relations or {})}, types, intake, joins, tuples)
            adapting = None
            memory = Memory()
            if adapt is not None:
                commits = self.checkpoint.recent_progress(memory.rounds)
                for observed in self.checkpoint.recent_observed(memory.rounds):
                    memory.add(observed)
                adapter = Adapter(
                    memory, Estimates(), adapt, objective or Objective(), ImmediateWorker(), *read_adapted(commits)
                )
                adapting = Adapting(adapter, queries.basins, self._switch)
            recovered = recover(self.checkpoint, queries.plan_of, snapshot_rounds)
            self.tuples.keep_only(named_files(self.checkpoint, recovered))
            self.loop = RoundLoop(
                queries.plan_of,
                self.checkpoint,
                recovered,
                placed,
                every,
                tables,
                snapshot_rounds=snapshot_rounds,
                sink_patience=sink_patience,
                memory=memory,
                history=None if history is None else TupleHistory(history(self.tuples, streams), self.tuples),
                adapting=adapting,
                listeners=Listeners(done=self.done.append, waiting=self.waits.append),
                scheduling=scheduling,
                clock=round_clock or perf_counter,
            )
        except BaseException:
            self.checkpoint.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sink in self._sinks.values():
            sink.close()
        self.checkpoint.close()

    @property
    def state(self) -> State:
        return self.loop.state

    def change(self, queries: Mapping[str, Query]) -> None:
        """From the next round that has not begun yet on, these queries run; nothing changes if they do already."""
        texts = {name: base64.b64encode(pickle.dumps(query)).decode() for name, query in queries.items()}
        newest = self.checkpoint.newest_plan()
        if newest is None or dict(newest.queries) != texts:
            version = 0 if newest is None else newest.version + 1
            options = {"history_ticks": str(self._history_ticks)}
            self.checkpoint.record_plan(PlanRecord(version, self.checkpoint.first_free_round, texts, options))

    def switch(self, choose: Callable[[Plan], Choices]) -> None:
        """From the next round that has not begun yet on, the same queries run with other choices."""
        newest = self.checkpoint.newest_plan()
        assert newest is not None
        self._switch(choose(self._queries.plan_of(newest)))

    def _switch(self, choices: Choices) -> None:
        newest = self.checkpoint.newest_plan()
        assert newest is not None
        record = replace(newest, version=newest.version + 1, choices=choices)
        self.checkpoint.record_plan(replace(record, from_round=self.checkpoint.first_free_round))

    def round(self, frames: Frames) -> RoundProgress:
        """A micro-batch of rows by stream."""
        self.versions.round = self.loop.next_round
        self.loop.run_batch(frames, self.checkpoint.last_batch + 1, _Split())
        return self.done[-1]

    def finish(self) -> RoundProgress:
        self.versions.round = self.loop.next_round
        self.loop.finish()
        return self.done[-1]

    def catch_up(self, *, everything: bool = False) -> bool:
        """A round that only answers; False if nothing was postponed."""
        return self.loop.catch_up(everything=everything)


def answers_in(folder: Path) -> dict[int, dict[str, list[Row]]]:
    """What the sink shows, by round and query, times as ticks; rounds and queries without a row are left out."""
    found: dict[int, dict[str, list[Row]]] = {}
    for path in sorted((folder / "answers").glob("*/round-*.parquet")):
        table = pq.read_table(path, partitioning=None)
        for edge in {"window_start", "window_end", "valid_until"}.intersection(table.column_names):
            place = table.column_names.index(edge)
            table = table.set_column(place, edge, table[edge].cast(pa.int64()))
        for row in table.to_pylist():
            found.setdefault(int(path.stem.split("-")[1]), {}).setdefault(row.pop("query"), []).append(row)
    return found


@contextmanager
def crash_at(point: str, nth: int = 1) -> Iterator[None]:
    """The `nth` time a fault point is passed, the process is gone."""
    left = nth

    def count(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and left == 0:
            raise CrashError

    with watched(count):
        yield


@contextmanager
def crash_after(passes: int) -> Iterator[None]:
    """After so many fault points, whichever they are, the process is gone."""
    left = passes

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise CrashError

    with watched(count):
        yield


def _ticks(which: Any, frames: Frames) -> dict[str, int]:
    return {name: which(row["tick"] for row in rows) for name, rows in frames.items() if rows}
