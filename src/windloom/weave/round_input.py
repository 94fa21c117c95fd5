"""The result of one scan: cells for every set it feeds, its late tuples, and what it counted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from windloom.kernels.tuples.sorted_tuples import SortedTuples
from windloom.kernels.tuples.tuples import Tuples
from windloom.model.stream import Stream, Version
from windloom.model.time import TICK_MIN
from windloom.plan.plan import FeedPlace, Plan
from windloom.plan.scans import NativeScan, WovenScan
from windloom.state.cells import Cells, group_of_cells, merge_released, read_partials
from windloom.state.frontiers import ON_TIME, LateBounds, LateTuples, advanced, all_closed, count_behind, join_behind
from windloom.state.positions import Positions
from windloom.state.state import State
from windloom.state.tuple_store import NewTupleFiles
from windloom.weave.roll_up import feed_sets
from windloom.weave.sorted_tuples import KeyedChoice, merge_keyed, plan_weaving
from windloom.weave.weave import (
    FEW_TUPLES,
    ScanCounts,
    Ticks,
    read_tuples,
    scanned_partials,
    scanned_tuples,
    timed_tuples,
    weave,
)


@dataclass(frozen=True, slots=True)
class ScanResult:
    """`cells` by number of the set, `behind` by number of the scan; a scan without an entry had no such tuples.

    `scanned` has the counts of each scan, by its number: statistics, which change no answer. `keyed` are tuples in
    order of a join key, which folds of a batch run read instead of cells. `ticks` are those that each scan's tuples
    span.
    """

    cells: Mapping[int, Cells] = field(default_factory=dict)
    behind: Mapping[int, LateTuples] = field(default_factory=dict)
    scanned: Mapping[int, ScanCounts] = field(default_factory=dict)
    keyed: Mapping[FeedPlace, SortedTuples] = field(default_factory=dict)
    ticks: Mapping[int, Ticks] = field(default_factory=dict, compare=False)

    @property
    def nbytes(self) -> int:
        cells = sum(cells.nbytes for cells in self.cells.values())
        return cells + sum(keyed.nbytes for keyed in self.keyed.values())


def take_partials(
    plan: Plan, scan: NativeScan, table: pa.Table, before: LateBounds = ON_TIME, ticks: Ticks | None = None
) -> ScanResult:
    """Make cells of the partials of a native scan, all with a slice; `ticks` are those that they span."""
    read = read_partials(scan, table)
    words = [key.to_numpy(zero_copy_only=False) for key in read.keys[: scan.signature.words]]
    of_groups = np.diff(np.append(0, np.cumsum(read.tuples))[read.group_bounds])
    behind: dict[int, LateTuples] = {}
    late = np.flatnonzero(read.starts < before.closed)
    if len(late) and scan.tells:
        group_of = group_of_cells(read)[late]
        behind[scan.number] = count_behind(read.starts[late], [word[group_of] for word in words], read.tuples[late])
    return ScanResult(
        feed_sets(plan, scan, read),
        behind,
        {scan.number: scanned_partials(plan, scan, words, of_groups)},
        ticks={} if ticks is None else {scan.number: ticks},
    )


def take_tuples(
    plan: Plan,
    scan: WovenScan,
    chunk: pa.Table | Callable[[], pa.Table],
    before: LateBounds = ON_TIME,
    threads: int | None = None,
    choice: KeyedChoice | None = None,
) -> ScanResult:
    """Make cells of tuples of a woven scan, by `threads` threads; None: one per core.

    Tuples without a tick are left out. If `chunk` is a function, the thread that makes the cells also reads the tuples.
    With a `choice`, tuples may be put in order for folds. Raises NotKeyedError if the tuples of another chunk were, and
    these cannot be.
    """
    table, ticks = timed_tuples(chunk() if callable(chunk) else chunk)
    tuples = read_tuples(plan, scan, table)
    behind = _behind(scan, tuples, before)
    threads = None if len(tuples) < FEW_TUPLES else threads
    planned = plan_weaving(plan, scan, tuples, choice, threads)
    cells = weave(planned.plan, planned.scan, tuples, before.frontier, threads, beside=planned.makers)
    return ScanResult(
        cells,
        {} if behind is None else {scan.number: behind},
        {scan.number: scanned_tuples(plan, scan, tuples)},
        planned.keyed,
        {scan.number: ticks},
    )


def with_keyed_merged(parts: list[ScanResult]) -> list[ScanResult]:
    """Return the chunks of one scan, of which the first has the tuples of all that were put in order.

    Raises NotKeyedError if they cannot be put in order together.
    """
    if len(parts) < 2 or not any(part.keyed for part in parts):
        return parts
    merged = merge_keyed([part.keyed for part in parts])
    return [replace(part, keyed={} if number else merged) for number, part in enumerate(parts)]


def take_together(parts: list[ScanResult]) -> ScanResult:
    """Merge the results of several chunks of tuples. The list is emptied, so that cells are not held twice.

    Tuples of different scans may have been put in order.
    """
    if len(parts) == 1:
        return parts.pop()
    cells: dict[int, list[Cells]] = {}
    behind: dict[int, list[LateTuples]] = {}
    scanned: dict[int, ScanCounts] = {}
    keyed: dict[FeedPlace, SortedTuples] = {}
    ticks: dict[int, Ticks] = {}
    while parts:
        part = parts.pop(0)
        keyed |= part.keyed
        for number in part.cells:
            cells.setdefault(number, []).append(part.cells[number])
        for number, late in part.behind.items():
            behind.setdefault(number, []).append(late)
        for number, seen in part.scanned.items():
            scanned[number] = scanned.get(number, ScanCounts()) + seen
        for number, span in part.ticks.items():
            ticks[number] = ticks.get(number, Ticks()) + span
    del part
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        # The set with the most cells comes first, so that no thread is left with it at the end.
        ordered = sorted(cells, key=lambda number: -sum(map(len, cells[number])))
        merged = dict(zip(ordered, pool.map(merge_released, (cells[number] for number in ordered)), strict=True))
    return ScanResult(
        {number: merged[number] for number in cells},
        {number: join_behind(found) for number, found in behind.items()},
        scanned,
        keyed,
        ticks,
    )


def _behind(scan: WovenScan, tuples: Tuples, before: LateBounds) -> LateTuples | None:
    if scan.counted_by is not None or not len(tuples):
        return None  # reported by the scan of the stream whose slices are of time
    late = np.flatnonzero(tuples.tick.integers < before.closed)
    if not len(late):
        return None
    if scan.kept is not None:
        # Row queries may have windows that begin and end anywhere; late tuples are few.
        starts = tuples.tick.integers[late]
    else:
        starts = tuples.slices.starts[tuples.slices.of_tuple[late]]
        for tick in before.since:
            # It stays in its slice, and so in the same windows.
            starts = np.where(tuples.tick.integers[late] >= tick, np.maximum(starts, tick), starts)
    words = [tuples.word(number)[late] for number in range(scan.signature.words)]
    return count_behind(starts, words, np.ones(len(late), np.int64))


# The input of the step: the log of a round keeps it, and a repeated round reads it from there.


@dataclass(frozen=True, slots=True)
class RoundInput:
    """What a round brings. With the same state and plan, the same input gives the same answers.

    `taken` are the cells of its tuples, and which of them came behind the frontier of their stream. By stream,
    `frontiers` are where the round leaves them; `seen` is the largest event tick so far, including tuples that no query
    wants (without it no query can be added later); `first` is the smallest event tick of this round. Landmark queries
    need both. `rows` are the positions of tuples after the round, by which the cells of sets that count tuples are cut;
    None if they are as before. `idle` names the streams that the clock counted as idle: they do not hold back queries
    that read other streams too. `events` counts the tuples that each stream brought, where that is known. `postponed`
    gives, by query, the tick after which closed windows are left to later rounds. `round` is the number of the round.
    `kept` are files of tuples that the round adds to those that are kept, by stream, and `summaries` the partials of
    rows that enter in it, by name of the query that aggregates them. `versions` are those of relations that are new in
    this round; what joins read of them is among the cells that were taken.
    """

    taken: ScanResult = field(default_factory=ScanResult)
    frontiers: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, int] = field(default_factory=dict)
    rows: Positions | None = None
    idle: frozenset[str] = frozenset()
    events: Mapping[str, int] = field(default_factory=dict)
    postponed: Mapping[str, int] = field(default_factory=dict)
    round: int = field(default=0, compare=False)
    kept: Mapping[str, NewTupleFiles] = field(default_factory=dict)
    summaries: Mapping[str, Cells] = field(default_factory=dict)
    versions: Mapping[str, Version] = field(default_factory=dict)

    def taking(self, taken: ScanResult, events: Mapping[str, int] | None = None) -> RoundInput:
        """Return the input with the cells of a round, and how many tuples came."""
        return replace(self, taken=taken, events=self.events if events is None else events)


# The frontier of each stream after a round: its largest event time so far, less its delay.


class Watermarks:
    """Decides frontiers, and which streams are idle. Both are logged with the round; a replay does not read the clock.

    A stream is idle if it has brought nothing for `idle_after` seconds; it then does not hold back queries that also
    read other streams. Its own frontier stays where it is, because nothing shows that its time has advanced.
    """

    def __init__(self, streams: Mapping[str, Stream], clock: Callable[[], float], idle_after: float | None) -> None:
        self._streams, self._clock, self._idle_after = streams, clock, idle_after
        self._heard = dict.fromkeys(streams, clock())

    def after(self, state: State, largest: Mapping[str, int], smallest: Mapping[str, int]) -> RoundInput:
        """Return the input of a round that has brought ticks from `smallest` to `largest`, still without cells.

        Streams that no query reads also have a frontier, at which a query that is added later begins.
        """
        now = self._clock()
        self._heard.update(dict.fromkeys(largest, now))
        seen = advanced(state.seen, largest)
        reached = {name: max(tick - self._streams[name].delay_ticks, TICK_MIN) for name, tick in seen.items()}
        idle: frozenset[str] = frozenset()
        if self._idle_after is not None:
            idle = frozenset(name for name, heard in self._heard.items() if now - heard >= self._idle_after)
        return RoundInput(frontiers=advanced(state.frontiers, reached), seen=seen, first=dict(smallest), idle=idle)

    def ended(self, state: State, largest: Mapping[str, int], smallest: Mapping[str, int]) -> RoundInput:
        """Return the input of the last round, after which no tuple comes: every window is closed."""
        return RoundInput(
            frontiers=all_closed(self._streams.values()), seen=advanced(state.seen, largest), first=dict(smallest)
        )
