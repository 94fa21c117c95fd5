"""The segments of a bucket of the operator, as blobs in its store.

store     head      facts and catalogue of the bucket, written in every round
          plan      the plan that the segments were made with, written when it changes
          s17-…     a segment: cells of one set, all of whose slices begin in one stretch of time
          s18-…     a summary: one cell per group for all segments of one or several stretches
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from windloom.checkpoint.state_codec import decode, encode, restored_cells
from windloom.plan.plan import Plan
from windloom.state.cells import Cells
from windloom.state.segments import COMPACTED_BYTES, Closing, HeldCells, Segment, SetSegments, stretch_ticks
from windloom.state.state import State

#: Cells are compressed on their way to a bucket and in its store: copying them from process to process costs more.
COMPRESSION = "lz4"


class SegmentStore(Protocol):
    """Where a bucket keeps its blobs by name: Spark's state store, or memory in a batch run.

    `place` is the same in all rounds of the bucket, and no other bucket has it; empty if there is only one round.
    """

    @property
    def place(self) -> str: ...

    def get(self, name: str) -> bytes | None: ...

    def put(self, name: str, blob: bytes) -> None: ...

    def remove(self, name: str) -> None: ...


class ReadSegments:
    """Cells of segments that this process has read or written lately: it may run the next round of the bucket too.

    The name of a segment has the checksum of its bytes, so that an attempt that failed leaves nothing behind under it.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._cells: OrderedDict[tuple[str, str], Cells] = OrderedDict()

    def get(self, place: str, name: str) -> Cells | None:
        cells = self._cells.get((place, name))
        if cells is not None:
            self._cells.move_to_end((place, name))
        return cells

    def put(self, place: str, name: str, cells: Cells) -> None:
        if not place or (place, name) in self._cells:
            return
        self._cells[place, name] = cells
        self._size += cells.nbytes
        while self._size > self._limit:
            _, dropped = self._cells.popitem(last=False)
            self._size -= dropped.nbytes


#: How many bytes of cells a process remembers.
READ_BYTES = 64 << 20
_READ = ReadSegments(READ_BYTES)


#: The segments of each set, by its number, in the order in which they were written.
Catalogue = Mapping[int, tuple[Segment, ...]]


class BucketSegments:
    """The segments of a bucket, while a round adds cells to them; `next_number` names the next one."""

    def __init__(self, store: SegmentStore, plan: Plan, catalogue: Catalogue, next_number: int) -> None:
        self.store, self.plan, self.next_number = store, plan, next_number
        self._sets: dict[int, SetSegments] = {}
        for number, segments in catalogue.items():
            self._sets[number] = self._segments_of(number, segments)

    @property
    def catalogue(self) -> Catalogue:
        return {number: tuple(own.segments) for number, own in sorted(self._sets.items()) if own.segments}

    def add(self, number: int, cells: Cells) -> None:
        """Write the cells of a set, as one segment for each stretch in which slices of them begin."""
        if number not in self._sets:
            self._sets[number] = self._segments_of(number)
        self._sets[number].add(cells)

    def since(self, number: int, tick: int, closing: Closing | None = None) -> Cells | None:
        """Return the cells of a set in all segments that reach to the tick or beyond; None if there are none."""
        return self._sets[number].since(tick, closing) if number in self._sets else None

    def drop(self, number: int, before: int) -> None:
        """Remove the segments of a set all of whose slices begin before the tick, and summaries of any of them."""
        if number in self._sets:
            self._sets[number].drop(before)

    def drop_all(self, number: int) -> None:
        if number in self._sets:
            self._sets[number].drop_all()

    def compact(self) -> None:
        """Put segments of one stretch and of like size together, within the budget of bytes of a round."""
        left = COMPACTED_BYTES
        for _, own in sorted(self._sets.items()):
            left = own.compact(left)

    def _segments_of(self, number: int, segments: tuple[Segment, ...] = ()) -> SetSegments:
        return SetSegments(_BlobsOfSet(self, number), stretch_ticks(self.plan.sets[number]), segments)


@dataclass(frozen=True, slots=True)
class _BlobsOfSet:
    """The home of a set's segments: blobs in the store of the bucket."""

    bucket: BucketSegments
    number: int

    def read(self, segment: Segment) -> Cells:
        store = self.bucket.store
        cells = _READ.get(store.place, segment.name)
        if cells is None:
            blob = store.get(segment.name)
            assert blob is not None, f"the catalogue names the segment {segment.name}"
            (cells,) = decode(blob).cells.values()
            _READ.put(store.place, segment.name, cells)
        return restored_cells(cells, self.bucket.plan.sets[self.number].components)

    def write(self, cells: Cells) -> tuple[str, int, HeldCells | None]:
        bucket, blob = self.bucket, encode(State({0: cells}), COMPRESSION)
        name = f"s{bucket.next_number}-{zlib.crc32(blob):08x}"
        _READ.put(bucket.store.place, name, cells)
        bucket.store.put(name, blob)
        bucket.next_number += 1
        return name, len(blob), None

    def remove(self, segment: Segment) -> None:
        self.bucket.store.remove(segment.name)
