"""Tuples in order of a join key, which folds read instead of cells: when there are any, and how portions are merged.

Only a batch run has them: no round follows, so nothing has to be kept of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock

import numpy as np
import pyarrow as pa

from windloom.aggregates.registry import neutral
from windloom.kernels.folds.bands import SLICE_BITS
from windloom.kernels.tuples.set_tuples import ComponentInput
from windloom.kernels.tuples.sorted_tuples import (
    MOST_OUTS,
    MOST_SLICES,
    KeyGroups,
    SortedTuples,
    joined_records,
    key_tuples,
)
from windloom.kernels.tuples.tuples import Tuples
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.expression import Expression
from windloom.model.types import arrow_type
from windloom.plan.plan import FeedPlace, Plan, PlannedJoin
from windloom.plan.scans import KeyedFeed, KeyedSet, WovenFeed, WovenScan
from windloom.state.cells import Cells, number_groups
from windloom.weave.roll_up import bits_of
from windloom.weave.weave import share_columns, weave_set

#: Making cells takes, per tuple, about as long as this many steps of a tuple along its row of the band.
_STEPS_PER_CELL = 20
#: And what a tuple costs besides these steps, in the same unit.
_STEPS_PER_TUPLE = 4


class NotKeyedError(Exception):
    """Some chunk of a scan cannot be put in order: all chunks are read again, as cells."""


class KeyedChoice:
    """The feeds of a scan that are put in order; its first portion decides for all portions."""

    def __init__(self, scan: WovenScan) -> None:
        self._scan, self._lock = scan, Lock()
        self._wanted: dict[int, KeyedFeed] | None = None

    def of(self, tuples: Tuples) -> dict[int, KeyedFeed]:
        """Return feeds by their place in the scan. Raises NotKeyedError if these tuples cannot follow the others."""
        with self._lock:
            if self._wanted is None:
                feeds = enumerate(self._scan.keyed)
                self._wanted = {
                    index: feed for index, feed in feeds if _can_be_keyed(feed, tuples) and _pays(feed, tuples)
                }
        if not all(_can_be_keyed(feed, tuples) for feed in self._wanted.values()):
            raise NotKeyedError
        return self._wanted


@dataclass(frozen=True, slots=True)
class WeavingPlan:
    """The sets of a scan that cells are made for, and functions that put its tuples in order for all others.

    `makers` may be called in any order or at the same time; afterwards, `keyed` has the tuples in order.
    """

    plan: Plan
    scan: WovenScan
    makers: Sequence[Callable[[], None]] = ()
    keyed: Mapping[FeedPlace, SortedTuples] = field(default_factory=dict)


def plan_weaving(
    plan: Plan, scan: WovenScan, tuples: Tuples, choice: KeyedChoice | None, threads: int | None = None
) -> WeavingPlan:
    """Choose for which feeds of a scan tuples are put in order, because that is less work; None: for none."""
    if choice is None or not len(tuples) or not scan.keyed:
        return WeavingPlan(plan, scan)
    share_columns(plan, scan, tuples, threads)
    wanted = choice.of(tuples)
    keyed_by_place: dict[FeedPlace, SortedTuples] = {}

    def make(index: int, feed: KeyedFeed) -> None:
        keyed = key_tuples(tuples, feed.key, bits_of(feed), feed.outs, feed.values, feed.edges)
        if keyed is None:
            raise NotKeyedError
        if len(keyed):
            keyed_by_place[scan.number, index] = keyed
            for keyed_set in feed.sets:  # made by this thread: the step asks for them if there is one portion
                keyed.grouped(keyed_set.outs)

    return WeavingPlan(
        *_left(plan, scan, wanted), [partial(make, index, feed) for index, feed in wanted.items()], keyed_by_place
    )


def _can_be_keyed(feed: KeyedFeed, tuples: Tuples) -> bool:
    """Return whether every tuple has a value in every column."""
    return all(tuples.column(position).valid is None for position in (*feed.values, *feed.counted))


def _pays(feed: KeyedFeed, tuples: Tuples) -> bool:
    """Return whether folding tuples is less work than making cells of them and folding these.

    A tuple is walked along a row of the band by itself; a cell is walked along it once for all its tuples.
    """
    slices = len(tuples.slices.slicing(feed.edges).starts)
    sizes = [len(tuples.column(position).coded.dictionary) for position in (feed.key, *feed.outs)]
    if slices > MOST_SLICES or math.prod(sizes[1:]) > MOST_OUTS:
        return False
    count = max(1, tuples.count(bits_of(feed)))
    possible = float(slices * math.prod(sizes))
    cells = possible * -math.expm1(-count / possible)  # expected, if tuples are spread evenly
    return (1 - cells / count) * (_STEPS_PER_TUPLE + feed.width) < _STEPS_PER_CELL


def _left(plan: Plan, scan: WovenScan, wanted: Mapping[int, KeyedFeed]) -> tuple[Plan, WovenScan]:
    """Return a plan and a scan of the sets that readers besides folds still need, cut only where these need it."""
    feeds: dict[int, list[bool]] = {}
    needed: dict[int, KeyedSet] = {}
    for index, feed in enumerate(scan.keyed):
        for keyed_set in feed.sets:
            feeds.setdefault(keyed_set.number, []).append(index in wanted)
            needed[keyed_set.number] = keyed_set
    keyed = {number: needed[number].cells for number, are_keyed in feeds.items() if all(are_keyed)}
    sets = tuple(
        replace(each, edges=edges) if (edges := keyed.get(each.number)) is not None else each for each in plan.sets
    )
    return replace(plan, sets=sets), replace(
        scan,
        feeds=tuple(
            replace(fed, via=tuple(number for number in fed.via if number not in keyed))
            for fed in scan.feeds
            if fed.number not in keyed or keyed[fed.number] is not None
        ),
    )


def merge_keyed(parts: Sequence[Mapping[FeedPlace, SortedTuples]]) -> dict[FeedPlace, SortedTuples]:
    """Return the tuples of all portions together."""
    every = dict.fromkeys(place for part in parts for place in part)
    return {place: _merged([part[place] for part in parts if place in part]) for place in every}


def _merged(parts: Sequence[SortedTuples]) -> SortedTuples:
    """Merge the tuples of portions; raise NotKeyedError if there are more slices or groups than records hold."""
    if len(parts) == 1:
        return parts[0]
    starts = np.unique(np.concatenate([part.starts for part in parts]))
    numbers, keys = number_groups(
        [pa.concat_arrays([part.keys for part in parts])], sum(len(part.keys) for part in parts)
    )
    columns = [pa.concat_arrays(list(each)) for each in zip(*(part.outs for part in parts), strict=True)]
    outs, distinct = number_groups(columns, sum(part.out_count for part in parts))
    if len(starts) > MOST_SLICES or (distinct and len(distinct[0]) > MOST_OUTS):
        raise NotKeyedError
    own_keys = np.split(numbers, np.cumsum([len(part.keys) for part in parts])[:-1])
    own_outs = np.split(outs, np.cumsum([part.out_count for part in parts])[:-1])
    own_slices = [np.searchsorted(starts, part.starts) for part in parts]
    bounds, records = joined_records(parts, own_keys, own_outs, own_slices, len(keys[0]))
    sizes = tuple(max(each) for each in zip(*(part.sizes for part in parts), strict=True))
    return SortedTuples(keys[0], bounds, records, starts, tuple(distinct), sizes)


class KeyedSides:
    """Tuples in order for the sides of joins, and cells of them for folds that need cells after all."""

    def __init__(self, plan: Plan, keyed: Mapping[FeedPlace, SortedTuples]) -> None:
        self._plan, self._keyed, self._lock = plan, keyed, Lock()
        self._cells: dict[tuple[FeedPlace, int], Cells] = {}

    def __bool__(self) -> bool:
        return bool(self._keyed)

    @property
    def sets(self) -> Iterator[tuple[FeedPlace, KeyedSet]]:
        """Every set of which there are tuples in order."""
        for place in self._keyed:
            for keyed_set in self.feed(place).sets:
                yield place, keyed_set

    def feed(self, place: FeedPlace) -> KeyedFeed:
        return self._scan(place).keyed[place[1]]

    def _scan(self, place: FeedPlace) -> WovenScan:
        scan = self._plan.scans[place[0]]
        assert isinstance(scan, WovenScan)
        return scan

    def count(self, place: FeedPlace) -> int:
        """Return how many tuples there are."""
        return len(self._keyed[place])

    def of(self, join: PlannedJoin) -> tuple[SortedTuples, SortedTuples] | None:
        """Return the tuples of both sides of a join, if they are there."""
        sides = [self._keyed.get(place) for place in join.tuples]
        return (sides[0], sides[1]) if len(sides) == 2 and sides[0] is not None and sides[1] is not None else None

    def place(self, join: PlannedJoin, side: int) -> FeedPlace | None:
        """Return where the tuples of one side of a join are; None if it has cells."""
        return join.tuples[side] if join.tuples and join.tuples[side] in self._keyed else None

    def grouped(self, place: FeedPlace, number: int) -> KeyGroups:
        """Return the tuples by the grouping columns of a set."""
        return self._keyed[place].grouped(next(each.outs for each in self.feed(place).sets if each.number == number))

    def keys(self, place: FeedPlace, number: int) -> pa.Array:
        """Return the keys in the type that a set groups by."""
        fed, partial_set = self._fed(place, number), self._plan.sets[number]
        return self._keyed[place].keys.cast(arrow_type(partial_set.group_types[fed.groups.index(self.feed(place).key)]))

    def group_column(self, place: FeedPlace, number: int, expression: Expression) -> pa.Array:
        """Return the values, by number, that tuples of a set are grouped by besides the key."""
        column, feed = self._plan.sets[number].group_by.index(expression), self.feed(place)
        outs = next(each.outs for each in feed.sets if each.number == number)
        position = outs.index(feed.outs.index(self._fed(place, number).groups[column]))
        kind = arrow_type(self._plan.sets[number].group_types[column])
        return self.grouped(place, number).columns[position].cast(kind)

    def column(self, place: FeedPlace, number: int, component: Component) -> int:
        """Return the column of records that has a component of a set; 0 if it counts tuples."""
        reads = zip(self._plan.sets[number].components, self._fed(place, number).components, strict=True)
        read = next(read for planned, read in reads if planned.component == component)
        if component.kind != "sum":
            return 0
        assert read.argument is not None
        return 1 + self.feed(place).values.index(read.argument)

    def _fed(self, place: FeedPlace, number: int) -> WovenFeed:
        return next(fed for fed in self._scan(place).feeds if fed.number == number)

    def cells(self, join: PlannedJoin, cells: Mapping[int, Cells]) -> dict[int, Cells]:
        """Return the cells of all sets; where a side of the join has tuples instead, its cells are made from these."""
        cells_by_set = dict(cells)
        for place, side in zip(join.tuples, join.sides, strict=False):
            keyed = self._keyed.get(place)
            if keyed is not None:
                with self._lock:
                    if (place, side.set) not in self._cells:
                        self._cells[place, side.set] = self._made(place, keyed, side.set)
                cells_by_set[side.set] = self._cells[place, side.set]
        return cells_by_set

    def _made(self, place: FeedPlace, keyed: SortedTuples, number: int) -> Cells:
        feed, partial_set, fed = self.feed(place), self._plan.sets[number], self._fed(place, number)
        edges = next(each.edges for each in feed.sets if each.number == number)
        of_key = np.repeat(np.arange(len(keyed.keys), dtype=np.int32), np.diff(keyed.bounds))
        columns = {position: pa.array(of_key) for position in feed.counted}  # only whether there is a value counts
        columns |= {position: pa.array(keyed.records[:, 1 + i].copy()) for i, position in enumerate(feed.values)}
        outs = pa.array(keyed.records[:, 0] >> SLICE_BITS)
        columns |= {position: keyed.outs[i].take(outs) for i, position in enumerate(feed.outs)}
        columns[feed.key] = keyed.keys.take(pa.array(of_key))
        places = {position: i for i, position in enumerate(columns)}
        ticks = keyed.starts[keyed.records[:, 0] & (MOST_SLICES - 1)]
        table = pa.table([pa.array(ticks), *columns.values()], [f"c{i}" for i in range(len(columns) + 1)])
        pairs = zip(partial_set.components, fed.components, strict=True)
        known = {
            planned: ComponentInput(None if read.argument is None else places[read.argument])
            for planned, read in pairs
            if read.by is None and read.filter is None and (read.argument is None or read.argument in places)
            if planned.component.kind in (COUNT_STAR.kind, "count", "sum")
        }
        reduced_feed = replace(
            fed,
            bit=None,
            groups=tuple(places[position] for position in fed.groups),
            components=tuple(known.values()),
            via=(),
        )
        tuples = Tuples.of(table, 0, feed.edges)
        woven = weave_set(tuples, reduced_feed, replace(partial_set, components=tuple(known), edges=edges))
        # What no fold reads is left out.
        lifted = iter(woven.lifted)
        every = tuple(
            next(lifted) if planned in known else neutral(planned, len(woven)) for planned in partial_set.components
        )
        return replace(woven, lifted=every)
