"""What is taken in of a scan: the cells of its sets, and which tuples came behind the frontier of their stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.model.time import TICK_MIN
from windloom.plan.physical import Plan
from windloom.plan.scans import NativeScan, WovenScan
from windloom.rounds.cells import Cells, merge_all, read_partials
from windloom.rounds.feeds import feed_sets
from windloom.rounds.weaving import read_tuples, weave
from windloom.weave.tuples import SIGNATURE_BITS, Tuples

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Behind:
    """Tuples behind a frontier, counted by finest slice (where it begins) and signature.

    All tuples of an entry are in the same windows of the same queries: late tuples are counted exactly.
    """

    starts: Ints
    words: tuple[Ints, ...]
    tuples: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def holds(self, bit: int | None) -> Mask:
        """Entries whose tuples satisfy a predicate; None: every one."""
        if bit is None:
            return np.ones(len(self), np.bool_)
        return np.asarray((self.words[bit // SIGNATURE_BITS] >> (bit % SIGNATURE_BITS)) & 1, np.bool_)

    def to_table(self) -> pa.Table:
        columns = [self.starts, self.tuples, *self.words]
        return pa.Table.from_arrays([pa.array(one) for one in columns], names=[str(i) for i in range(len(columns))])

    @classmethod
    def from_table(cls, table: pa.Table) -> Behind:
        starts, tuples, *words = (np.array(column.to_numpy(), np.int64) for column in table.columns)
        return cls(starts, tuple(words), tuples)


@dataclass(frozen=True, slots=True)
class Taken:
    """`cells` by number of the set, `behind` by number of the scan; a scan that is not there had no such tuples."""

    cells: Mapping[int, Cells] = field(default_factory=dict)
    behind: Mapping[int, Behind] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Before:
    """What decides which tuples of a stream are late: the frontier before the round.

    `since` are ticks from which on tuples are counted for some windows of rows: slices are told apart there as well.
    """

    closed: int = TICK_MIN
    since: tuple[int, ...] = ()


#: Nothing is closed yet, and so no tuple is late.
ON_TIME = Before()


def take_partials(plan: Plan, scan: NativeScan, table: pa.Table, before: Before = ON_TIME) -> Taken:
    """Of a native scan's partials, all with a slice."""
    read = read_partials(scan, table)
    late = np.flatnonzero(read.starts < before.closed)
    if not len(late):
        return Taken(feed_sets(plan, scan, read))
    group_of = np.repeat(np.arange(read.groups), np.diff(read.group_bounds))[late]
    words = [key.to_numpy(zero_copy_only=False)[group_of] for key in read.keys[: scan.signature.words]]
    behind = _counted(read.starts[late], words, read.tuples[late])
    return Taken(feed_sets(plan, scan, read), {scan.number: behind})


def take_tuples(plan: Plan, scan: WovenScan, table: pa.Table, before: Before = ON_TIME) -> Taken:
    """Of a woven scan's tuples, all with a tick."""
    tuples = read_tuples(plan, scan, table)
    behind = _behind(scan, tuples, before)
    return Taken(weave(plan, scan, tuples), {} if behind is None else {scan.number: behind})


def take_together(parts: Sequence[Taken]) -> Taken:
    """What several portions of tuples gave."""
    if len(parts) == 1:
        return parts[0]
    cells: dict[int, list[Cells]] = {}
    behind: dict[int, list[Behind]] = {}
    for part in parts:
        for number, one in part.cells.items():
            cells.setdefault(number, []).append(one)
        for number, late in part.behind.items():
            behind.setdefault(number, []).append(late)
    return Taken(
        {number: merge_all(found) for number, found in cells.items()},
        {number: join_behind(found) for number, found in behind.items()},
    )


def _behind(scan: WovenScan, tuples: Tuples, before: Before) -> Behind | None:
    if scan.counted_by is not None or not len(tuples):
        return None  # told by the scan of the stream whose slices are of time
    late = np.flatnonzero(tuples.tick.integers < before.closed)
    if not len(late):
        return None
    starts = tuples.slices.starts[tuples.slices.of_tuple[late]]
    for tick in before.since:
        # Still in its slice, and so in the same windows.
        starts = np.where(tuples.tick.integers[late] >= tick, np.maximum(starts, tick), starts)
    words = [tuples.word(number)[late] for number in range(scan.signature.words)]
    return _counted(starts, words, np.ones(len(late), np.int64))


def _counted(starts: Ints, words: Sequence[Ints], tuples: Ints) -> Behind:
    """Entries of equal slice and signature are one."""
    columns = [np.asarray(one, np.int64) for one in (starts, *words)]
    order = np.lexsort(columns)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = np.any([np.diff(one[order]) != 0 for one in columns], axis=0)
    first = np.flatnonzero(is_new)
    total = np.add.reduceat(tuples[order], first)
    distinct = [one[order][first] for one in columns]
    return Behind(distinct[0], tuple(distinct[1:]), total)


def join_behind(parts: Iterable[Behind]) -> Behind:
    """Tuples that several parts counted."""
    found = list(parts)
    words = [np.concatenate(each) for each in zip(*(one.words for one in found), strict=True)]
    starts, tuples = (np.concatenate(each) for each in zip(*((one.starts, one.tuples) for one in found), strict=True))
    return _counted(starts, words, tuples)
