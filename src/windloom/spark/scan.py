"""Makes the cells of all sets from the tuples of a round, on the driver: from files, or by one Spark job per scan."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from windloom.expressions.arithmetic import DeclinedError
from windloom.model.stream import Stream
from windloom.plan.plan import Plan
from windloom.plan.scans import NativeScan, Scan, WovenScan
from windloom.spark.collect import FetchResult, collected
from windloom.spark.kept_tuples import RoundFiles, TupleKeeper, kept_beside
from windloom.spark.native import partials_frame, timed_partials
from windloom.spark.projection import Clock, clock, projected
from windloom.spark.relations import RoundFrames
from windloom.spark.untimed import without_time
from windloom.state.frontiers import ON_TIME, LateBounds
from windloom.state.state import State
from windloom.weave.files import file_portions, file_tuples, whole_tuples
from windloom.weave.round_input import ScanResult, take_partials, take_together, take_tuples, with_keyed_merged
from windloom.weave.sorted_tuples import KeyedChoice, NotKeyedError
from windloom.weave.weave import ScanCounts, Ticks, timed_tuples

#: Tuples are logged only up to this size; beyond it, the cells are logged.
KEPT_BYTES = 256 << 20
#: The size of chunks of files that are woven one after the other: about a million tuples. The other memory that
#: weaving needs is then small enough to be reused, which saves more time than merging the cells of chunks costs.
LARGE_PORTION_BYTES = 80 << 20
#: The size of chunks if several are woven at once.
SMALL_PORTION_BYTES = 16 << 20
#: And if many sets are rolled up from signatures: each chunk has cells of all of them.
SIGNED_PORTION_BYTES = 32 << 20


class TooLargeError(Exception):
    """The cells of a stream are larger than the driver can hold."""

    def __init__(self, stream: str, size: int, limit: int) -> None:
        super().__init__(
            f"what is taken in of stream '{stream}' is larger than the driver holds:"
            f" more than {size / 2**20:,.0f} MiB of cells, of {limit / 2**20:,.0f} MiB"
        )


@dataclass(frozen=True, slots=True)
class RoundScans:
    """The cells that a round brings. Ticks are of the streams that had tuples; `untimed` counts tuples without a time.

    `events` counts the tuples of each stream, if every tuple was seen.

    `tuples` are the tuples from which the cells of a woven scan were made, if all of them were held at once.
    """

    taken: ScanResult = field(default_factory=ScanResult)
    largest_ticks: Mapping[str, int] = field(default_factory=dict)
    smallest_ticks: Mapping[str, int] = field(default_factory=dict)
    untimed: Mapping[str, int] = field(default_factory=dict)
    tuples: Mapping[int, pa.Table] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoundReading:
    """How the scans of a round are read.

    `before` says, by stream, which tuples are late. `timed` are streams whose ticks must be known, with tuples that no
    query wants included: if no scan sees all tuples, Spark observes their ticks while it scans. Tuples without a usable
    time are refused, or left out and counted. Cells of more than `limit` bytes are too large. `files` returns the files
    of a stream if they may be read without Spark; `kept_files` are the files of the round, from which tuples to keep
    may be read while Spark makes partials of them. With `is_whole`, no round follows, and folds may read tuples of
    files in order of a join key instead of cells.
    """

    before: Mapping[str, LateBounds] = field(default_factory=dict)
    timed: Sequence[Stream] = ()
    skip_untimed: bool = False
    limit: int | None = None
    files: Callable[[str], Sequence[str] | None] = lambda stream: None
    kept_files: RoundFiles | None = None
    is_whole: bool = False


class ScanJobs:
    """Makes the cells of a round on the driver; subclasses say how its scans are read."""

    __slots__ = ()

    def reading(
        self, plan: Plan, frames: Mapping[str, DataFrame], batch: DataFrame | None, state: State, *, keeps: bool
    ) -> AbstractContextManager[RoundReading]:
        """Return how a round is read; it is read within the `with`. `keeps` says whether it keeps tuples."""
        return nullcontext(RoundReading())

    def take_in(
        self,
        plan: Plan,
        frames: Mapping[str, DataFrame],
        batch: DataFrame | None,
        state: State,
        keeper: TupleKeeper | None = None,
    ) -> RoundScans:
        """Return the cells that all scans whose slices are of time make in a round.

        `batch` is the micro-batch that all frames are parts of, if there is one. `keeper` takes the tuples of scans
        that keep them. A scan is read from files by the driver, in order of a join key if that pays; without that order
        if some tuples cannot be put in it; by Spark if there are no files, or files that only Spark reads.
        """
        with self.reading(plan, frames, batch, state, keeps=keeper is not None) as reading:
            ticks, parts, size = _StreamTicks(plan, frames, reading), list[ScanResult](), 0
            tuples: dict[int, pa.Table] = {}
            for scan in plan.scans:
                if _is_counted(scan):
                    continue
                stream = plan.stream(scan.stream)
                # A clock, which sees tuples that no query wants, needs Spark.
                is_unseen = plan.base_of(scan.stream) in ticks.unseen and _tells(scan)
                clock = Clock(stream) if is_unseen else None
                local = scan if isinstance(scan, WovenScan) and scan.local is not None and clock is None else None
                paths = None if local is None else reading.files(scan.stream)
                is_keyed = local is not None and reading.is_whole and bool(local.keyed)
                while True:
                    results, taken, cell_bytes = list[ScanResult](), ScanResult(), size
                    if paths is not None:
                        source = _file_chunks(scan, stream, paths, is_keyed=is_keyed)
                    else:
                        source = _spark_chunks(plan, scan, frames, clock, keeper, reading)
                    try:
                        with source as chunks:
                            before = reading.before.get(scan.stream, ON_TIME)
                            for taken in chunks.each(chunks.task(plan, before), chunks.chunks):
                                results.append(taken)
                                cell_bytes += 0 if reading.limit is None else taken.nbytes
                                if reading.limit is not None and cell_bytes > reading.limit:
                                    raise TooLargeError(stream.name, cell_bytes, reading.limit)
                        results = with_keyed_merged(results)
                        break
                    except NotKeyedError:
                        is_keyed = False
                    except DeclinedError:
                        if paths is None:
                            raise
                        paths = None
                ticks.add(scan, results, clock if chunks.fetched.at_once else None)
                if chunks.only:
                    tuples[scan.number] = timed_tuples(chunks.only[0])[0]
                parts += results
                size += 0 if reading.limit is None else sum(part.nbytes for part in results)
                del results, taken  # so that the memory of cells is freed while they are merged
            by_stream = ticks.of_all()
            taken = take_together(parts) if parts else ScanResult()
            return RoundScans(
                taken,
                {name: tick.last for name, tick in by_stream.items() if tick.last is not None},
                {name: tick.first for name, tick in by_stream.items() if tick.first is not None},
                {name: tick.untimed for name, tick in by_stream.items() if tick.untimed},
                tuples,
                counted_events(plan, taken.scanned, by_stream),
            )


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The tuples (or partials) of a scan in chunks, each a table or a function that reads one.

    `each` is `map`, or that of a pool: its threads read and weave a chunk each. A chunk is woven by `threads` threads;
    None: one per core. `only` has the chunk from Spark, if it is the only one and not too large to be logged.
    """

    scan: Scan
    chunks: Iterable[pa.Table | Callable[[], pa.Table]]
    each: Callable[..., Iterable[ScanResult]] = map
    threads: int | None = None
    choice: KeyedChoice | None = None
    fetched: FetchResult = field(default_factory=FetchResult)
    only: list[pa.Table] = field(default_factory=list)

    def task(self, plan: Plan, before: LateBounds) -> Callable[[Any], ScanResult]:
        """Return the function that makes the cells of a chunk."""
        if isinstance(self.scan, NativeScan):
            return partial(_take_partials, plan, self.scan, before)
        return partial(take_tuples, plan, self.scan, before=before, threads=self.threads, choice=self.choice)


def _take_partials(plan: Plan, scan: NativeScan, before: LateBounds, table: pa.Table) -> ScanResult:
    table, ticks = timed_partials(scan, table)
    return take_partials(plan, scan, table, before, ticks)


@contextmanager
def _file_chunks(scan: Scan, stream: Stream, paths: Sequence[str], *, is_keyed: bool) -> Iterator[_Chunks]:
    """Give the tuples of files, read without Spark; with `is_keyed`, they may be put in order for folds."""
    assert isinstance(scan, WovenScan)
    choice = KeyedChoice(scan) if is_keyed else None
    threads = os.cpu_count() or 1
    # Threads divide the sets of a chunk among them, while the next chunk is read. If there are fewer sets than threads,
    # or if tuples are aggregated once for all sets, they divide the chunks instead, which are smaller then.
    if scan.rolled_up is not None and scan.rolled_up.sets == len(scan.feeds):
        portion = SIGNED_PORTION_BYTES
    elif len(scan.feeds) < threads:
        portion = SMALL_PORTION_BYTES
    else:
        with closing(file_tuples(scan, stream, paths, LARGE_PORTION_BYTES)) as tables:
            yield _Chunks(scan, tables, choice=choice)
        return
    portions = file_portions(scan, stream, paths, portion, threads)
    chunks = [partial(whole_tuples, scan, stream, units) for units in portions]
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield _Chunks(scan, chunks, pool.map, -(-threads // len(portions)), choice)
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _spark_chunks(
    plan: Plan,
    scan: Scan,
    frames: Mapping[str, DataFrame],
    clock: Clock | None,
    keeper: TupleKeeper | None,
    reading: RoundReading,
) -> Iterator[_Chunks]:
    """Give the tuples of a frame, or its partials; tuples to be kept are read beside them, or passed on on the way."""
    stream = plan.stream(scan.stream)
    if clock is not None and isinstance(frames, RoundFrames):
        frame = frames.watched(scan.stream, clock.watching)  # the tuples as they came
    else:
        frame = frames[scan.stream] if clock is None else clock.watching(frames[scan.stream])
    what, fetched, only = f"what is taken in of stream '{stream.name}'", FetchResult(), list[pa.Table]()
    if isinstance(scan, NativeScan):
        # Ticks are not looked for without need, because aggregating them takes time.
        timed = partials_frame(scan, stream, frame, timed=stream in reading.timed and _tells(scan))
        yield _Chunks(scan, collected(timed, what, fetched), fetched=fetched)
        return
    with kept_beside(plan, scan, frames, keeper, reading.kept_files) as (left, own_keeper):
        assert isinstance(left, WovenScan)
        tables = collected(projected(left, stream, frame), what, fetched)
        yield _Chunks(left, _pass_on(tables, left, own_keeper, only), fetched=fetched, only=only)


def _pass_on(
    tables: Iterable[pa.Table], scan: WovenScan, keeper: TupleKeeper | None, only: list[pa.Table]
) -> Iterator[pa.Table]:
    for number, table in enumerate(tables):
        only[:] = [table] if number == 0 and table.nbytes <= KEPT_BYTES else []
        if keeper is not None:
            keeper.take(scan, timed_tuples(table)[0])
        yield table


class _StreamTicks:
    """The ticks that the tuples of each stream span: from scans that see all of them, observed by Spark, or by jobs.

    `unseen` are the bases of streams whose tuples nothing has seen completely yet.
    """

    def __init__(self, plan: Plan, frames: Mapping[str, DataFrame], reading: RoundReading) -> None:
        self._plan, self._frames, self._reading = plan, frames, reading
        self._streams = {stream.name: stream for stream in (*plan.streams, *reading.timed)}
        seeing = {scan.stream for scan in plan.scans if scan.signature.sees_all and not _is_counted(scan)}
        self.unseen = {stream.name for stream in reading.timed} - seeing | bases_unread(plan)
        self._ticks: dict[str, Ticks] = {}

    def add(self, scan: Scan, parts: Sequence[ScanResult], clock: Clock | None) -> None:
        """Add the ticks that a scan has read, and those that its clock has observed."""
        base = self._plan.base_of(scan.stream)
        is_base = base == scan.stream
        if is_base and _tells(scan):
            for part in parts:
                self._add(base, part.ticks.get(scan.number, Ticks()))
            self._ticks.setdefault(base, Ticks())
            self._refuse_untimed(base)
        observed = None if clock is None else clock.observed()
        if observed is not None:
            # A scan of the stream itself counts tuples without a time; a scan of an enriched stream does not see all.
            self._add(base, replace(observed, untimed=0 if is_base else observed.untimed))
            self.unseen.remove(base)

    def of_all(self) -> dict[str, Ticks]:
        """Return the ticks of all streams, after looking for those that nothing has seen yet."""
        for name in self.unseen:
            observed = clock(self._streams[name], self._frames[name])
            self._add(name, replace(observed, untimed=0 if name in self._ticks else observed.untimed))
        for name in self._ticks:
            self._refuse_untimed(name)
        return self._ticks

    def _add(self, name: str, ticks: Ticks) -> None:
        self._ticks[name] = self._ticks.get(name, Ticks()) + ticks

    def _refuse_untimed(self, name: str) -> None:
        if self._ticks[name].untimed and not self._reading.skip_untimed:
            raise without_time(self._streams[name], self._ticks[name].untimed)


def bases_unread(plan: Plan) -> set[str]:
    """Return streams that are read only through enriched streams: no scan sees their tuples as they came."""
    read = {scan.stream for scan in plan.scans if not _is_counted(scan)}
    return {stream.base for stream in plan.enriched if stream.name in read and stream.base not in read}


def counted_events(plan: Plan, scanned: Mapping[int, ScanCounts], ticks: Mapping[str, Ticks]) -> dict[str, int]:
    """Return the number of tuples of each stream, counted by a scan that sees all of them, or else by Spark."""
    events = {name: tick.tuples for name, tick in ticks.items() if tick.tuples is not None}
    for scan in plan.scans:
        if scan.signature.sees_all and not _is_counted(scan) and scan.number in scanned:
            events[scan.stream] = scanned[scan.number].tuples
    return events


def _tells(scan: Scan) -> bool:
    """Return whether the scan reports how far its stream has come."""
    return isinstance(scan, WovenScan) or scan.tells


def _is_counted(scan: Scan) -> bool:
    return isinstance(scan, WovenScan) and scan.counted_by is not None
