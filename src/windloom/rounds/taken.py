"""The result of one scan: cells for every set it feeds, its late tuples, and what it counted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from windloom.plan.physical import FeedPlace, Plan
from windloom.plan.scans import NativeScan, WovenScan
from windloom.rounds.behind import ON_TIME, Before, Behind, count_behind, join_behind
from windloom.rounds.cells import Cells, group_of_cells, merge_released, read_partials
from windloom.rounds.keyed import KeyedChoice, merge_keyed, plan_weaving
from windloom.rounds.scanned import Scanned, Ticks, scanned_partials, scanned_tuples, timed_tuples
from windloom.rounds.signed import feed_sets
from windloom.rounds.weaving import FEW_TUPLES, read_tuples, weave
from windloom.weave.keyed import Keyed
from windloom.weave.tuples import Tuples


@dataclass(frozen=True, slots=True)
class Taken:
    """`cells` by number of the set, `behind` by number of the scan; a scan without an entry had no such tuples.

    `scanned` has the counts of each scan, by its number: statistics, which change no answer. `keyed` are tuples in
    order of a join key, which folds of a batch run read instead of cells. `ticks` are those that each scan's tuples
    span.
    """

    cells: Mapping[int, Cells] = field(default_factory=dict)
    behind: Mapping[int, Behind] = field(default_factory=dict)
    scanned: Mapping[int, Scanned] = field(default_factory=dict)
    keyed: Mapping[FeedPlace, Keyed] = field(default_factory=dict)
    ticks: Mapping[int, Ticks] = field(default_factory=dict, compare=False)

    @property
    def nbytes(self) -> int:
        cells = sum(cells.nbytes for cells in self.cells.values())
        return cells + sum(keyed.nbytes for keyed in self.keyed.values())


def take_partials(
    plan: Plan, scan: NativeScan, table: pa.Table, before: Before = ON_TIME, ticks: Ticks | None = None
) -> Taken:
    """Make cells of the partials of a native scan, all with a slice; `ticks` are those that they span."""
    read = read_partials(scan, table)
    words = [key.to_numpy(zero_copy_only=False) for key in read.keys[: scan.signature.words]]
    of_groups = np.diff(np.append(0, np.cumsum(read.tuples))[read.group_bounds])
    behind: dict[int, Behind] = {}
    late = np.flatnonzero(read.starts < before.closed)
    if len(late) and scan.tells:
        group_of = group_of_cells(read)[late]
        behind[scan.number] = count_behind(read.starts[late], [word[group_of] for word in words], read.tuples[late])
    return Taken(
        feed_sets(plan, scan, read),
        behind,
        {scan.number: scanned_partials(plan, scan, words, of_groups)},
        ticks={} if ticks is None else {scan.number: ticks},
    )


def take_tuples(
    plan: Plan,
    scan: WovenScan,
    chunk: pa.Table | Callable[[], pa.Table],
    before: Before = ON_TIME,
    threads: int | None = None,
    choice: KeyedChoice | None = None,
) -> Taken:
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
    return Taken(
        cells,
        {} if behind is None else {scan.number: behind},
        {scan.number: scanned_tuples(plan, scan, tuples)},
        planned.keyed,
        {scan.number: ticks},
    )


def with_keyed_merged(parts: list[Taken]) -> list[Taken]:
    """Return the chunks of one scan, of which the first has the tuples of all that were put in order.

    Raises NotKeyedError if they cannot be put in order together.
    """
    if len(parts) < 2 or not any(part.keyed for part in parts):
        return parts
    merged = merge_keyed([part.keyed for part in parts])
    return [replace(part, keyed={} if number else merged) for number, part in enumerate(parts)]


def take_together(parts: list[Taken]) -> Taken:
    """Merge the results of several chunks of tuples. The list is emptied, so that cells are not held twice.

    Tuples of different scans may have been put in order.
    """
    if len(parts) == 1:
        return parts.pop()
    cells: dict[int, list[Cells]] = {}
    behind: dict[int, list[Behind]] = {}
    scanned: dict[int, Scanned] = {}
    keyed: dict[FeedPlace, Keyed] = {}
    ticks: dict[int, Ticks] = {}
    while parts:
        part = parts.pop(0)
        keyed |= part.keyed
        for number in part.cells:
            cells.setdefault(number, []).append(part.cells[number])
        for number, late in part.behind.items():
            behind.setdefault(number, []).append(late)
        for number, seen in part.scanned.items():
            scanned[number] = scanned.get(number, Scanned()) + seen
        for number, span in part.ticks.items():
            ticks[number] = ticks.get(number, Ticks()) + span
    del part
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        # The set with the most cells comes first, so that no thread is left with it at the end.
        ordered = sorted(cells, key=lambda number: -sum(map(len, cells[number])))
        merged = dict(zip(ordered, pool.map(merge_released, (cells[number] for number in ordered)), strict=True))
    return Taken(
        {number: merged[number] for number in cells},
        {number: join_behind(found) for number, found in behind.items()},
        scanned,
        keyed,
        ticks,
    )


def _behind(scan: WovenScan, tuples: Tuples, before: Before) -> Behind | None:
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
