"""The Spark jobs of rounds whose step runs on the driver, in streams and batch runs: scans, rows and relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from windloom.answers.blocks import Block
from windloom.answers.rows.interval_joins import near_blocks
from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.plan import Plan, PlannedRelation
from windloom.rounds.lateness import before_round
from windloom.spark.count_windows import TakenRows, take_all_rows, take_rows
from windloom.spark.frames import has_usual_meaning
from windloom.spark.kept_tuples import LocalKeeping, RoundFiles
from windloom.spark.placement import driver_bytes
from windloom.spark.relations import RoundFrames, SeenFrame, TakenVersion, known_bytes, take_version
from windloom.spark.rows.job import batch_views, row_blocks, row_summaries
from windloom.spark.rows.stored import StoredTuples
from windloom.spark.scan import RoundReading, ScanJobs, TooLargeError
from windloom.spark.sources.files import LocalFiles, micro_batch_paths
from windloom.spark.untimed import Untimed
from windloom.state.cells import Cells
from windloom.state.state import State
from windloom.state.tuple_store import ReportedWindows, TupleStores
from windloom.state.windows.landmark import timed_streams


@dataclass(frozen=True, slots=True)
class SparkDriverJobs(ScanJobs):
    """The Spark jobs of a stream's rounds on the driver."""

    spark: SparkSession
    streams: Mapping[str, Stream]
    skip_untimed: bool
    keeping: LocalKeeping = field(default_factory=LocalKeeping)
    depths: dict[str, int | None] = field(default_factory=dict)  # see `micro_batch_paths`

    @contextmanager
    def reading(
        self, plan: Plan, frames: Mapping[str, DataFrame], batch: DataFrame | None, state: State, *, keeps: bool
    ) -> Iterator[RoundReading]:
        # Streams that no query reads have a clock too, because a later query must know which tuples it has missed.
        streams = [self.streams[name] for name in frames]
        with ExitStack() as scope:
            read = {plan.base_of(scan.stream) for scan in plan.scans}
            if batch is not None and len(plan.scans) + sum(stream.name not in read for stream in streams) > 1:
                # Every scan, and every job for ticks that no scan sees, would fetch the micro-batch from its source.
                batch.persist()
                scope.callback(batch.unpersist)
            # The files of the round, if it is known which stream they belong to.
            files: RoundFiles | None = None
            if keeps and batch is not None and len(streams) == 1 and has_usual_meaning(self.spark):
                paths = micro_batch_paths(self.spark, self.depths)
                files = None if paths is None else RoundFiles(self.keeping, streams[0].name, paths)
            before = before_round(plan, state)
            try:
                yield RoundReading(before, streams, self.skip_untimed, driver_bytes(), kept_files=files)
            except TooLargeError as error:
                raise WindloomError(
                    "a round brings more than the driver can hold",
                    str(error),
                    "make rounds smaller (maxFilesPerTrigger, maxBytesPerTrigger) and start again with the same"
                    " checkpoint: nothing is lost; or let the Spark operator answer: loom.answers().writeStream",
                ) from None

    def take_rows(
        self, plan: Plan, frames: Mapping[str, DataFrame], state: State, frontiers: Mapping[str, int]
    ) -> TakenRows:
        return take_rows(self.spark, plan, frames, state, frontiers)


@dataclass(frozen=True, slots=True)
class SparkRowJobs:
    """Rows of a stream, from the tuples that it keeps."""

    stored: StoredTuples

    def row_summaries(
        self, plan: Plan, asked: Sequence[ReportedWindows], frames: Mapping[str, DataFrame], kept: TupleStores
    ) -> dict[str, Cells]:
        return row_summaries(plan, asked, self.stored.views(kept, asked))

    def row_blocks(
        self, plan: Plan, asked: Sequence[ReportedWindows], frames: Mapping[str, DataFrame], kept: TupleStores
    ) -> Iterator[Block]:
        """Yield the rows, made from the stores, which include the tuples of the round."""
        others = []
        for asked_rows in asked:
            near = self.stored.near(kept, asked_rows)
            if near is None:
                others.append(asked_rows)
            else:
                yield from near_blocks(plan, asked_rows, *near)
        yield from row_blocks(plan, others, self.stored.views(kept, others))


@dataclass(frozen=True, slots=True)
class SparkBatchJobs(ScanJobs):
    """The Spark jobs of a batch run: all tuples are there, none is late. Cells beyond `limit` bytes are too large.

    `files` are, by name of the stream, the files that the driver may read without Spark.
    """

    limit: int | None
    untimed: Untimed
    files: Mapping[str, LocalFiles] = field(default_factory=dict)

    def reading(
        self, plan: Plan, frames: Mapping[str, DataFrame], batch: DataFrame | None, state: State, *, keeps: bool
    ) -> AbstractContextManager[RoundReading]:
        timed = list(timed_streams(plan))
        return nullcontext(RoundReading({}, timed, self.untimed.skips, self.limit, self._paths, is_whole=True))

    def _paths(self, stream: str) -> list[str] | None:
        files = self.files.get(stream)
        return files.paths() if files is not None and has_usual_meaning(files.frame.sparkSession) else None

    def take_rows(
        self, plan: Plan, frames: Mapping[str, DataFrame], state: State, frontiers: Mapping[str, int]
    ) -> TakenRows:
        return take_all_rows(plan, frames, self.untimed)

    def row_summaries(
        self, plan: Plan, asked: Sequence[ReportedWindows], frames: Mapping[str, DataFrame], kept: TupleStores
    ) -> dict[str, Cells]:
        return row_summaries(plan, asked, batch_views(plan, frames, asked, self.untimed))

    def row_blocks(
        self, plan: Plan, asked: Sequence[ReportedWindows], frames: Mapping[str, DataFrame], kept: TupleStores
    ) -> Iterator[Block]:
        yield from row_blocks(plan, asked, batch_views(plan, frames, asked, self.untimed))


@dataclass(frozen=True, slots=True)
class SparkRelationJobs:
    """Jobs over relations; versions of more bytes than the driver holds are refused.

    `_persisted` are versions that several scans of the current round read: all scans must see the same rows.
    """

    _persisted: list[DataFrame] = field(default_factory=list)

    def seen(self, frame: DataFrame) -> SeenFrame:
        return SeenFrame.of(frame)

    def size(self, frame: DataFrame, seen: SeenFrame) -> tuple[int | None, int | None]:
        """Return rows and bytes of a version; a job counts rows only if later rounds are sure to recognise it."""
        return (None if seen.files is None else frame.count()), known_bytes(frame)

    def take(self, plan: Plan, planned: PlannedRelation, frame: DataFrame) -> TakenVersion:
        return take_version(plan, planned, frame, driver_bytes())

    def enriched(self, plan: Plan, frames: Mapping[str, DataFrame], versions: Mapping[str, DataFrame]) -> RoundFrames:
        enriched = {stream.name: stream for stream in plan.enriched}
        readers = Counter(
            name for scan in plan.scans if scan.stream in enriched for name in enriched[scan.stream].relations
        )
        read_often = {name: frame for name, frame in versions.items() if readers[name] > 1}
        self._persisted.extend(frame.persist() for frame in read_often.values())
        return RoundFrames(plan, frames, versions)

    def release(self) -> None:
        while self._persisted:
            self._persisted.pop().unpersist()
