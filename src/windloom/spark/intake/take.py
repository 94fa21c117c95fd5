"""Takes in the tuples of a round on the driver: one Spark job per scan, then the cells of all sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.plan.scans import NativeScan, Scan, WovenScan
from windloom.rounds.behind import ON_TIME, Before
from windloom.rounds.evaluate import DeclinedError
from windloom.rounds.keyed import KeyedChoice, NotKeyedError
from windloom.rounds.scanned import Scanned, Ticks, timed_tuples
from windloom.rounds.taken import Taken, take_partials, take_together, take_tuples, with_keyed_merged
from windloom.spark.intake.collect import Fetched, collected
from windloom.spark.intake.files import Unit, file_portions, file_tuples, whole_tuples
from windloom.spark.intake.kept_files import RoundFiles, TupleKeeper, kept_beside
from windloom.spark.intake.partials import partials_frame
from windloom.spark.intake.projection import projected
from windloom.spark.intake.ticks import Clock, clock, timed_partials, without_time
from windloom.spark.relations.enrich import RoundFrames

#: Tuples are logged only up to this size; beyond it, the cells are logged.
KEPT_BYTES = 256 << 20
#: The size of portions of files that are woven one after the other: about a million tuples. The other memory that
#: weaving needs is then small enough to be reused, which saves more time than merging the cells of portions costs.
LARGE_PORTION_BYTES = 80 << 20
#: The size of portions if several are woven at the same time.
SMALL_PORTION_BYTES = 16 << 20
#: The same if many sets are rolled up from signatures: each portion has cells of all of them.
SIGNED_PORTION_BYTES = 32 << 20


class TooLargeError(Exception):
    """There are more bytes of cells than the driver takes in at once."""

    def __init__(self, stream: str, size: int, limit: int) -> None:
        super().__init__(
            f"what is taken in of stream '{stream}' is larger than the driver holds:"
            f" more than {size / 2**20:,.0f} MiB of cells, of {limit / 2**20:,.0f} MiB"
        )


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What a round took in. Ticks are of the streams that had tuples; `untimed` counts tuples without a time.

    `events` counts the tuples of each stream, if every tuple was seen.

    `tuples` are the tuples from which the cells of a woven scan were made, if all of them were held at once.
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
    kept_files: RoundFiles | None = None,
    is_whole: bool = False,
) -> TakenIn:
    """Runs the jobs of all scans whose slices are of time.

    `before` says, by stream, which tuples are late. `timed` are streams whose ticks must be known, with tuples that no
    query wants included: if no scan sees all tuples, Spark observes their ticks while it scans. Tuples without a usable
    time are refused, or left out and counted. Cells of more than `limit` bytes are too large. `keeper` takes the tuples
    of scans that keep them. `files` returns the files of a stream if they may be read without Spark; `kept_files` are
    the files of the round, from which tuples to keep may be read while Spark makes partials of them. With `is_whole`,
    no round follows, and folds may read tuples of files in order of a join key instead of cells.
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
        made = None
        if paths is not None:
            read = partial(_from_files, plan, scan, stream, paths, own, found, size, limit)
            try:
                made = read(is_keyed=is_whole)
            except NotKeyedError:
                found.start_again()
                made = read(is_keyed=False)
        if made is None:
            with kept_beside(plan, scan, frames, keeper, kept_files) as (left, taker):
                made = _within(stream, _scanned(plan, left, stream, frame, own, found, taker), size, limit)
        parts += made
        size += 0 if limit is None else sum(map(_size, made))
        del made  # so that the memory of cells is freed while they are merged
        if is_base and tells:
            ticks[base] = found.ticks + ticks.get(base, Ticks())
            _refuse_untimed(stream, ticks[base], skip_untimed)
        watched = None if found.clock is None or not found.fetched.at_once else found.clock.observed()
        if watched is not None:
            # A scan of the stream itself counts tuples without a time; a scan of an enriched stream does not see all.
            ticks[base] = ticks.get(base, Ticks()) + replace(watched, untimed=0 if is_base else watched.untimed)
            unseen.remove(base)
        if found.table is not None and not any(scan.number == number for part in parts for number, _ in part.keyed):
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
    """The parts; raises TooLargeError if their cells, with the `size` bytes that there are already, exceed `limit`."""
    made = []
    for part in parts:
        made.append(part)
        if limit is not None:
            size += _size(part)
            if size > limit:
                raise TooLargeError(stream.name, size, limit)
    return made


def _size(part: Taken) -> int:
    return sum(cells.nbytes for cells in part.cells.values()) + sum(keyed.nbytes for keyed in part.keyed.values())


def _may_be_local(scan: Scan, found: _Found) -> bool:
    """Whether the driver may read the files itself; a clock, which sees tuples that no query wants, needs Spark."""
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
    *,
    is_keyed: bool,
) -> list[Taken] | None:
    """What a scan takes in from files without Spark; None if only Spark can read them.

    With `is_keyed`, tuples may be put in order for folds; raises NotKeyedError if that must be undone.
    """
    assert isinstance(scan, WovenScan)
    choice = KeyedChoice(scan) if is_keyed and scan.keyed else None
    # Threads divide the sets of a portion among them. If there are fewer sets than threads, or if tuples are aggregated
    # once for all sets, they divide the portions instead, which are smaller then.
    portion, at_once = LARGE_PORTION_BYTES, False
    if scan.rolled_up is not None and scan.rolled_up.sets == len(scan.feeds):
        portion, at_once = SIGNED_PORTION_BYTES, True
    elif len(scan.feeds) < (os.cpu_count() or 1):
        portion, at_once = SMALL_PORTION_BYTES, True
    if at_once:
        parts = _woven_at_once(plan, scan, stream, paths, portion, before, found, choice)
    else:
        parts = _woven(plan, scan, file_tuples(scan, stream, paths, portion), before, found, choice=choice)
    try:
        made = _within(stream, parts, size, limit)
    except DeclinedError:
        found.start_again()
        return None
    return with_keyed_merged(made)


def _refuse_untimed(stream: Stream, ticks: Ticks, skip_untimed: bool) -> None:
    if ticks.untimed and not skip_untimed:
        raise without_time(stream, ticks.untimed)


def bases_unread(plan: Plan) -> set[str]:
    """Streams that are read only through enriched streams: no scan sees their tuples as they came."""
    read = {scan.stream for scan in plan.scans if not _is_counted(scan)}
    return {stream.base for stream in plan.enriched if stream.name in read and stream.base not in read}


def _watched(frames: Mapping[str, DataFrame], name: str, clock: Clock | None) -> DataFrame:
    """The frame of a scan, with a clock on the tuples as they came."""
    if clock is None:
        return frames[name]
    return frames.watched(name, clock.watching) if isinstance(frames, RoundFrames) else clock.watching(frames[name])


def counted_events(plan: Plan, scanned: Mapping[int, Scanned], ticks: Mapping[str, Ticks]) -> dict[str, int]:
    """The number of tuples of each stream, counted by a scan that sees all of them, or else by Spark."""
    found = {name: tick.tuples for name, tick in ticks.items() if tick.tuples is not None}
    for scan in plan.scans:
        if scan.signature.sees_all and not _is_counted(scan) and scan.number in scanned:
            found[scan.stream] = scanned[scan.number].tuples
    return found


@dataclass(slots=True)
class _Found:
    """What is found besides cells: ticks, and the tuples if all are in one portion.

    If the stream is not `timed`, a native scan does not look for ticks, because aggregating them takes time.
    """

    timed: bool
    ticks: Ticks = field(default_factory=Ticks)
    clock: Clock | None = None
    fetched: Fetched = field(default_factory=Fetched)
    portions: int = 0
    table: pa.Table | None = None

    def start_again(self) -> None:
        """Forgets what was found in files, which are then taken in again."""
        self.ticks, self.portions, self.table = Ticks(), 0, None


def _tells(scan: Scan) -> bool:
    """Whether the scan reports how far its stream has come."""
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
    choice: KeyedChoice | None = None,
) -> Iterator[Taken]:
    for table in tables:
        table, ticks = timed_tuples(table)
        found.ticks += ticks
        found.portions += 1
        found.table = table if found.portions == 1 and table.nbytes <= KEPT_BYTES else None
        if keeper is not None:
            keeper.take(scan, table)
        yield take_tuples(plan, scan, table, before, choice=choice)


def _woven_at_once(
    plan: Plan,
    scan: WovenScan,
    stream: Stream,
    paths: Sequence[str],
    portion: int,
    before: Before,
    found: _Found,
    choice: KeyedChoice | None,
) -> Iterator[Taken]:
    """Weaves files, several portions at a time: one thread reads and weaves each, without waiting for the others."""
    threads = os.cpu_count() or 1
    portions = file_portions(scan, stream, paths, portion, threads)
    helpers = -(-threads // len(portions))

    def take(units: Sequence[Unit]) -> tuple[Taken, Ticks]:
        table, ticks = timed_tuples(whole_tuples(scan, stream, units))
        return take_tuples(plan, scan, table, before, helpers, choice), ticks

    with ThreadPoolExecutor(threads) as pool:
        try:
            for taken, ticks in pool.map(take, portions):
                found.ticks += ticks
                yield taken
        finally:
            pool.shutdown(cancel_futures=True)
