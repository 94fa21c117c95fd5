"""Takes in the tuples of a round on the driver: one Spark job per scan, then the cells of all sets."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.plan.scans import NativeScan, Scan, WovenScan
from windloom.rounds.behind import ON_TIME, Before
from windloom.rounds.evaluate import DeclinedError
from windloom.rounds.scanned import Scanned
from windloom.rounds.taken import Taken, take_partials, take_together, take_tuples
from windloom.spark.intake.collect import Fetched, collected
from windloom.spark.intake.files import file_tuples
from windloom.spark.intake.native import slice_starts, tick_sql
from windloom.spark.intake.partials import partials_frame
from windloom.spark.intake.projection import projected
from windloom.spark.relations.enrich import RoundFrames

#: Tuples are kept for the log only up to this size; beyond it, the cells are logged.
KEPT_BYTES = 256 << 20
#: Portions of files that are woven one after the other: about a million tuples. What weaving needs besides the cells
#: is then small enough for its memory to be used again, which costs less than cells that are merged.
LARGE_PORTION_BYTES = 80 << 20
#: The size of portions of which several are woven at the same time.
SMALL_PORTION_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Ticks:
    """The smallest and the largest event tick of some tuples, and how many have none.

    `tuples` counts all of them, where that was asked for.
    """

    first: int | None = None
    last: int | None = None
    untimed: int = 0
    tuples: int | None = None

    def __add__(self, other: Ticks) -> Ticks:
        firsts = [tick for tick in (self.first, other.first) if tick is not None]
        lasts = [tick for tick in (self.last, other.last) if tick is not None]
        counted = [count for count in (self.tuples, other.tuples) if count is not None]
        untimed = self.untimed + other.untimed
        return Ticks(min(firsts, default=None), max(lasts, default=None), untimed, sum(counted) if counted else None)


class TupleKeeper(Protocol):
    """Takes tuples that are kept."""

    def take(self, scan: WovenScan, table: pa.Table) -> None:
        """The tuples of a scan, all with a tick, as they were projected."""
        ...


class TooLargeError(Exception):
    """There are more cells than the driver takes in at once."""

    def __init__(self, stream: str, size: int, limit: int) -> None:
        super().__init__(
            f"what is taken in of stream '{stream}' is larger than the driver holds:"
            f" more than {size / 2**20:,.0f} MiB of cells, of {limit / 2**20:,.0f} MiB"
        )


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What a round took in. Ticks are of the streams that had tuples; `untimed` counts those without a time.

    `events` counts the tuples of each stream, where every tuple was seen.

    `tuples` are what the cells of a woven scan were made from, where all of it was held at once.
    """

    taken: Taken = field(default_factory=Taken)
    largest_ticks: Mapping[str, int] = field(default_factory=dict)
    smallest_ticks: Mapping[str, int] = field(default_factory=dict)
    untimed: Mapping[str, int] = field(default_factory=dict)
    tuples: Mapping[int, pa.Table] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=dict)


def take_in(
    plan: Plan,
    frames: Mapping[str, DataFrame],
    before: Mapping[str, Before],
    *,
    timed: Iterable[Stream] = (),
    skip_untimed: bool = False,
    limit: int | None = None,
    keeper: TupleKeeper | None = None,
    files: Callable[[str], Sequence[str] | None] = lambda stream: None,
) -> TakenIn:
    """Runs the jobs of all scans whose slices are of time.

    `before` says, by stream, which tuples are late. `timed` are streams whose ticks must be known, of tuples that no
    query wants included: where no scan sees all tuples, Spark observes their ticks while it scans. Tuples without a
    usable time are refused, or left out and counted. Cells of more than `limit` bytes are too large. `keeper` takes the
    tuples of scans that keep them. `files` gives those that a stream consists of, where they may be read without Spark.
    """
    timed = list(timed)
    known = {stream.name: stream for stream in (*plan.streams, *timed)}
    seeing = {scan.stream for scan in plan.scans if scan.signature.sees_all and not _is_counted(scan)}
    unseen = {stream.name for stream in timed} - seeing | bases_unread(plan)
    parts: list[Taken] = []
    size = 0
    ticks: dict[str, Ticks] = {}
    tuples: dict[int, pa.Table] = {}
    for scan in plan.scans:
        stream, base = plan.stream(scan.stream), plan.base_of(scan.stream)
        if _is_counted(scan):
            continue
        is_base, tells = base == scan.stream, _tells(scan)
        found = _Found(timed=stream in timed and tells)
        if base in unseen and tells:
            found.clock = Clock(stream)
        frame = _watched(frames, scan.stream, found.clock)
        own = before.get(scan.stream, ON_TIME)
        paths = files(scan.stream) if _may_be_local(scan, found) else None
        made = None if paths is None else _from_files(plan, scan, stream, paths, own, found, size, limit)
        if made is None:
            made = _within(stream, _scanned(plan, scan, stream, frame, own, found, keeper), size, limit)
        parts += made
        size += sum(map(_size, made))
        del made  # cells are given back while they are merged
        if is_base and tells:
            ticks[base] = found.ticks + ticks.get(base, Ticks())
            _refuse_untimed(stream, ticks[base], skip_untimed)
        watched = None if found.clock is None or not found.fetched.at_once else found.clock.observed()
        if watched is not None:
            # A scan of the stream itself counts tuples without a time; one of what was joined does not see all.
            ticks[base] = ticks.get(base, Ticks()) + replace(watched, untimed=0 if is_base else watched.untimed)
            unseen.remove(base)
        if found.table is not None:
            tuples[scan.number] = found.table
    for name in unseen:
        told = clock(known[name], frames[name])
        ticks[name] = ticks.get(name, Ticks()) + replace(told, untimed=0 if name in ticks else told.untimed)
    for name, tick in ticks.items():
        _refuse_untimed(known[name], tick, skip_untimed)
    taken = take_together(parts) if parts else Taken()
    return TakenIn(
        taken,
        {name: tick.last for name, tick in ticks.items() if tick.last is not None},
        {name: tick.first for name, tick in ticks.items() if tick.first is not None},
        {name: tick.untimed for name, tick in ticks.items() if tick.untimed},
        tuples,
        counted_events(plan, taken.scanned, ticks),
    )


def _within(stream: Stream, parts: Iterable[Taken], size: int, limit: int | None) -> list[Taken]:
    """The parts, unless their cells become too large with those of `size` bytes that there are already."""
    made = []
    for part in parts:
        made.append(part)
        size += _size(part)
        if limit is not None and size > limit:
            raise TooLargeError(stream.name, size, limit)
    return made


def _size(part: Taken) -> int:
    return sum(cells.nbytes for cells in part.cells.values())


def _may_be_local(scan: Scan, found: _Found) -> bool:
    """A clock, which tells of tuples that no query wants, is Spark's."""
    return isinstance(scan, WovenScan) and scan.local is not None and found.clock is None


def _from_files(
    plan: Plan,
    scan: Scan,
    stream: Stream,
    paths: Sequence[str],
    before: Before,
    found: _Found,
    size: int,
    limit: int | None,
) -> list[Taken] | None:
    """What a scan takes in from files without Spark; None if only Spark can read them."""
    assert isinstance(scan, WovenScan)
    # Threads divide the sets of a portion. If there are fewer sets than threads, or if tuples are aggregated once for
    # all sets, they divide portions, smaller ones.
    is_once = scan.rolled_up is not None and scan.rolled_up.sets == len(scan.feeds)
    is_divided = len(scan.feeds) >= (os.cpu_count() or 1) and not is_once
    tables = file_tuples(scan, stream, paths, LARGE_PORTION_BYTES if is_divided else SMALL_PORTION_BYTES)
    weave_all = _woven if is_divided else _woven_at_once
    try:
        return _within(stream, weave_all(plan, scan, tables, before, found), size, limit)
    except DeclinedError:
        found.ticks, found.portions, found.table = Ticks(), 0, None
        return None


def _refuse_untimed(stream: Stream, ticks: Ticks, skip_untimed: bool) -> None:
    if ticks.untimed and not skip_untimed:
        raise without_time(stream, ticks.untimed)


def bases_unread(plan: Plan) -> set[str]:
    """Streams that are read only as joined with relations: no scan sees their tuples as they came."""
    read = {scan.stream for scan in plan.scans if not _is_counted(scan)}
    return {stream.base for stream in plan.enriched if stream.name in read and stream.base not in read}


def _watched(frames: Mapping[str, DataFrame], name: str, clock: Clock | None) -> DataFrame:
    """The frame of a scan, with a clock on the tuples as they came."""
    if clock is None:
        return frames[name]
    return frames.watched(name, clock.watching) if isinstance(frames, RoundFrames) else clock.watching(frames[name])


def counted_events(plan: Plan, scanned: Mapping[int, Scanned], ticks: Mapping[str, Ticks]) -> dict[str, int]:
    """The tuples of each stream: as a scan that sees all of them has counted them, or else Spark."""
    found = {name: tick.tuples for name, tick in ticks.items() if tick.tuples is not None}
    for scan in plan.scans:
        if scan.signature.sees_all and not _is_counted(scan) and scan.number in scanned:
            found[scan.stream] = scanned[scan.number].tuples
    return found


@dataclass(slots=True)
class _Found:
    """What is found besides cells: ticks, and the tuples if all are in one portion.

    If the stream is not `timed`, a native scan looks for no ticks: to aggregate them takes time.
    """

    timed: bool
    ticks: Ticks = field(default_factory=Ticks)
    clock: Clock | None = None
    fetched: Fetched = field(default_factory=Fetched)
    portions: int = 0
    table: pa.Table | None = None


def _tells(scan: Scan) -> bool:
    """Is it the scan that tells how far its stream has come?"""
    return isinstance(scan, WovenScan) or scan.tells


def _is_counted(scan: Scan) -> bool:
    return isinstance(scan, WovenScan) and scan.counted_by is not None


def _scanned(
    plan: Plan,
    scan: Scan,
    stream: Stream,
    frame: DataFrame,
    before: Before,
    found: _Found,
    keeper: TupleKeeper | None,
) -> Iterator[Taken]:
    what = f"what is taken in of stream '{stream.name}'"
    if isinstance(scan, NativeScan):
        for table in collected(partials_frame(scan, stream, frame, timed=found.timed), what, found.fetched):
            table, ticks = timed_partials(scan, table)
            found.ticks += ticks
            yield take_partials(plan, scan, table, before)
        return
    tables = collected(projected(scan, stream, frame), what, found.fetched)
    yield from _woven(plan, scan, tables, before, found, keeper)


def _woven(
    plan: Plan,
    scan: WovenScan,
    tables: Iterable[pa.Table],
    before: Before,
    found: _Found,
    keeper: TupleKeeper | None = None,
) -> Iterator[Taken]:
    for table in tables:
        table, ticks = timed_tuples(table)
        found.ticks += ticks
        found.portions += 1
        found.table = table if found.portions == 1 and table.nbytes <= KEPT_BYTES else None
        if keeper is not None:
            keeper.take(scan, table)
        yield take_tuples(plan, scan, table, before)


def _woven_at_once(
    plan: Plan, scan: WovenScan, tables: Iterable[pa.Table], before: Before, found: _Found
) -> Iterator[Taken]:
    """The same, several portions at a time."""
    threads = os.cpu_count() or 1
    waiting: deque[Future[Taken]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for table in tables:
            table, ticks = timed_tuples(table)
            found.ticks += ticks
            waiting.append(pool.submit(take_tuples, plan, scan, table, before))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def timed_tuples(table: pa.Table) -> tuple[pa.Table, Ticks]:
    """The tuples that have a tick, and the ticks of all of them."""
    untimed = table.column(0).null_count
    if untimed:
        table = table.filter(pc.is_valid(table.column(0)))
    return table, _spanned(table.column(0), table.column(0), untimed)


def timed_partials(scan: NativeScan, table: pa.Table) -> tuple[pa.Table, Ticks]:
    """The partials whose slice is known, by its start and without their ticks, and the ticks of all of them."""
    table = table.set_column(0, "slice", slice_starts(scan.slice_id, table.column(0)))
    untimed = 0
    if table.column(0).null_count:
        known = pc.is_valid(table.column(0))
        untimed = pc.sum(table.filter(pc.invert(known)).column(1 + len(scan.key_types))).as_py()
        table = table.filter(known)
    if "seen" not in table.column_names:
        return table, Ticks(untimed=untimed)
    told = _spanned(table.column("first"), table.column("seen"), untimed)
    return table.drop_columns(["first", "seen"]), told


def _spanned(first: pa.ChunkedArray, last: pa.ChunkedArray, untimed: int) -> Ticks:
    return Ticks(pc.min(first).as_py(), pc.max(last).as_py(), untimed)


class Clock:
    """The ticks that a stream's tuples span, those included that no query wants, told by the action that scans them.

    An action that fetches portions tells nothing, nor does one whose result Spark finds to be empty before it has read
    all tuples: `clock` asks in a job of its own then.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream, self._observation = stream, Observation()

    def watching(self, frame: DataFrame) -> DataFrame:
        return frame.observe(self._observation, *(F.expr(text) for text in _span_sql(self._stream)))

    def observed(self) -> Ticks | None:
        try:
            told = self._observation.get
        except Py4JJavaError:  # pyspark cannot read the row without columns that stands for nothing observed
            return None
        return Ticks(told["first"], told["last"], told["untimed"], told["tuples"])


def clock(stream: Stream, frame: DataFrame) -> Ticks:
    """The same, found by a separate job."""
    row = frame.selectExpr(*_span_sql(stream)).collect()[0]
    return Ticks(row["first"], row["last"], row["untimed"], row["tuples"])


def _span_sql(stream: Stream) -> tuple[str, ...]:
    tick = tick_sql(stream)
    counts = f"count({tick}) AS tuples", f"count(*) - count({tick}) AS untimed"
    return f"min({tick}) AS first", f"max({tick}) AS last", *counts


def without_time(stream: Stream, tuples: int) -> WindloomError:
    return WindloomError(
        f"stream '{stream.name}' has tuples without a usable time",
        f"column '{stream.time}' ({stream.columns[stream.time]}) is NULL, unreadable or out of range"
        f" in {tuples:,} of its rows",
        f'filter them out before loom.stream(…), for example df.where("{stream.time} IS NOT NULL")',
    )
