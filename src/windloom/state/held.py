"""The cells that a state holds, by set: one table of a small set, segments of a large one.

Whoever looks up a set gets all its cells as one table, which is put together for that. The step, snapshots and changes
of plans know segments: they touch those that a round changes, and leave the others as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from uuid import uuid4

import numpy as np

from windloom.model.arrays import Ints
from windloom.model.time import TICK_MIN
from windloom.model.windows import TimeWindow
from windloom.plan.plan import PartialSet, Plan
from windloom.state.cells import Cells
from windloom.state.segments import COMPACTED_BYTES, Closing, HeldCells, Segment, SetSegments, stretch_ticks

#: A set with more cells than this is divided into segments; below a quarter of it, it becomes one table again.
LARGE_CELLS = 1 << 16
#: A set's longest window is divided into at most so many stretches: a segment costs less here than in a store.
STRETCHES = 512
#: Stretches of segments may be longer or shorter by this factor than the queries of a later plan would have them.
UNEVEN = 4
#: Compaction may read so many times the bytes that a round has brought.
COMPACTED_TIMES = 4


class CellsInMemory:
    """The cells of a segment, held by this process."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    @cached_property
    def slices(self) -> Ints:
        return np.unique(self._cells.starts)

    def cells(self) -> Cells:
        return self._cells


class _InProcess:
    """The home of segments that refer to their cells: these live as long as some state has the segment.

    No other process gives its segments the same names: files of a checkpoint are known by them.
    """

    def __init__(self) -> None:
        self.begin_names()
        os.register_at_fork(after_in_child=self.begin_names)

    def begin_names(self) -> None:
        self._process, self._numbers = uuid4().hex[:16], count()

    def read(self, segment: Segment) -> Cells:
        assert segment.held is not None
        return segment.held.cells()

    def write(self, cells: Cells) -> tuple[str, int, HeldCells | None]:
        return f"{self._process}-{next(self._numbers)}", cells.nbytes, CellsInMemory(cells)

    def remove(self, segment: Segment) -> None:
        """Do nothing: nobody refers to the cells any more."""


IN_PROCESS = _InProcess()


@dataclass(frozen=True, slots=True)
class HeldSegments:
    """The segments of a set after a round, of stretches `ticks` long; `groups` is how many groups have been seen."""

    ticks: int
    segments: tuple[Segment, ...] = ()
    groups: int = 0

    @property
    def count(self) -> int:
        """The number of cells; those of a group and slice that are in several segments count for each."""
        return sum(each.cells for each in self.segments if each.level == 0)

    @property
    def nbytes(self) -> int:
        return sum(each.size for each in self.segments)

    @property
    def first(self) -> int | None:
        """The start of the first slice that is kept; None if there is none."""
        return min((each.first for each in self.segments if each.level == 0), default=None)

    def whole(self) -> Cells | None:
        """Return all cells as one table."""
        return SetSegments(IN_PROCESS, self.ticks, self.segments).since(TICK_MIN)

    def after_round(
        self, fresh: Cells | None, tick: int | None, closing: Closing | None, needed_from: int
    ) -> tuple[HeldSegments, Cells | None]:
        """Return the segments after a round has brought cells, and the cells that it reads.

        It reads the slices from `tick` on, if there is one, for windows that are `closing`. Afterwards, slices that
        begin before `needed_from` are dropped.
        """
        segments = SetSegments(IN_PROCESS, self.ticks, self.segments)
        groups, left = self.groups, COMPACTED_BYTES
        if fresh is not None:
            segments.add(fresh)
            groups, left = max(groups, fresh.groups), max(left, COMPACTED_TIMES * fresh.nbytes)
        read = None if tick is None else segments.since(tick, closing)
        if read is not None:
            groups = max(groups, read.groups)
        segments.drop(needed_from)
        segments.compact(left)
        return HeldSegments(self.ticks, tuple(segments.segments), groups), read

    def changed(self, change: Callable[[Cells], Cells]) -> HeldSegments:
        """Return these segments with other cells in the same stretches, and without summaries."""
        fine = []
        for segment in self.segments:
            if segment.level == 0:
                cells = SetSegments(IN_PROCESS, self.ticks, [segment]).since(TICK_MIN)
                assert cells is not None
                other = change(cells)
                name, size, held = IN_PROCESS.write(other)
                first, last = int(other.starts.min()), int(other.starts.max())
                fine.append(Segment(name, segment.stretch, first, last, len(other), size, held=held))
        return replace(self, segments=tuple(fine))


@dataclass(frozen=True, eq=False)
class HeldSets(Mapping[int, Cells]):
    """Cells by number of the set, in process."""

    tables: Mapping[int, Cells] = field(default_factory=dict)
    segments: Mapping[int, HeldSegments] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Cells:
        if number not in self.segments:
            return self.tables[number]
        cells = self.segments[number].whole()
        assert cells is not None, "segments without cells are not kept"
        return cells

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({*self.tables, *self.segments}))

    def __len__(self) -> int:
        return len(self.tables) + len(self.segments)

    def __contains__(self, number: object) -> bool:
        return number in self.tables or number in self.segments

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.tables.values()) + sum(each.nbytes for each in self.segments.values())

    def of(self, number: int) -> HeldSegments | None:
        """Return the segments of a set; None if it has none, or is one table."""
        return self.segments.get(number)


def held_after(tables: Mapping[int, Cells], segments: Mapping[int, HeldSegments], plan: Plan) -> HeldSets:
    """Return the cells of a round: tables that have grown large become segments, and small segments a table."""
    own, large = dict(tables), dict(segments)
    for number, cells in tables.items():
        if len(cells) > LARGE_CELLS and is_divided(plan, plan.sets[number]):
            divided = SetSegments(IN_PROCESS, stretch_ticks(plan.sets[number], STRETCHES))
            divided.add(own.pop(number))
            large[number] = HeldSegments(divided.ticks, tuple(divided.segments), cells.groups)
    for number, held in segments.items():
        if held.count <= LARGE_CELLS // 4:
            del large[number]
            cells_left = held.whole()
            if cells_left is not None:
                own[number] = cells_left
    return HeldSets(own, large)


def is_divided(plan: Plan, partial_set: PartialSet) -> bool:
    """Return whether a large set is kept in segments: its windows slide over time, and no join reads it."""
    return not partial_set.is_relation and all(
        isinstance(member.query.window, TimeWindow) and not member.query.is_side for member in partial_set.queries
    )


def is_even(held: HeldSegments, partial_set: PartialSet) -> bool:
    """Return whether the stretches of segments are about as long as the queries of a set would have them."""
    wanted = stretch_ticks(partial_set, STRETCHES)
    return wanted <= held.ticks * UNEVEN and held.ticks <= wanted * UNEVEN


def every(held: Mapping[int, Cells]) -> Iterable[Segment]:
    """Return all segments of a state's cells."""
    if isinstance(held, HeldSets):
        for own in held.segments.values():
            yield from own.segments
