"""State as immutable blobs: the cells of a bucket in segments by time, so that a round writes only what it brings.

    store     head      facts and catalogue of the bucket, written in every round
              plan      the plan that the segments were made with, written when it changes
              s17 …     a segment: cells of one set, all of whose slices begin in one stretch of time

              |  stretch 0  |  stretch 1  |  stretch 2  |      what a round brings is a segment of its own;
              |  s3         |  s9    s14  |  s17 s18    |      segments of one stretch and of like size are compacted;
                     ^ dropped as a whole, once no window that is still to be reported may cover it

A late tuple makes a small segment in an older stretch. A window that closes reads the stretches that it covers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from windloom.checkpoint.state_codec import decode, encode, restored_state
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.plan import PartialSet, Plan
from windloom.state.cells import Cells, keep_cells, merge_all
from windloom.state.state import State

#: Cells are compressed on their way to a bucket and in its store: copying them from process to process costs more.
COMPRESSION = "lz4"
#: A set's longest window is divided into about this many stretches: what is read of a stretch in vain, and what stays
#: of it after the last window has passed, is at most one part of so many.
STRETCHES = 16
#: So many segments of one stretch, and of like size, become one.
COMPACTED = 4
#: Segments are of like size if the larger one has less than this many times the bytes of the smaller one.
LIKE_SIZE = 4
#: Compaction stops for the round when it has read this many bytes.
COMPACTED_BYTES = 8 << 20


class SegmentStore(Protocol):
    """Where a bucket keeps its blobs by name: Spark's state store, or memory in a batch run."""

    def get(self, name: str) -> bytes | None: ...

    def put(self, name: str, blob: bytes) -> None: ...

    def remove(self, name: str) -> None: ...


class MemoryStore:
    """Blobs in memory: for tests, and for a batch run, after which nothing is kept."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self.blobs.get(name)

    def put(self, name: str, blob: bytes) -> None:
        self.blobs[name] = blob

    def remove(self, name: str) -> None:
        del self.blobs[name]


@dataclass(frozen=True, slots=True)
class Segment:
    """Some cells of one set: their slices begin from the tick `first` to the tick `last`, in one stretch of time."""

    name: str
    stretch: int
    first: int
    last: int
    cells: int
    size: int  # in bytes


#: The segments of each set, by its number, in the order in which they were written.
Catalogue = Mapping[int, tuple[Segment, ...]]


class BucketSegments:
    """The segments of a bucket, while a round adds cells to them; `next_number` names the next one."""

    def __init__(self, store: SegmentStore, plan: Plan, catalogue: Catalogue, next_number: int) -> None:
        self._store, self._plan, self.next_number = store, plan, next_number
        self._segments = {number: list(segments) for number, segments in catalogue.items()}

    @property
    def catalogue(self) -> Catalogue:
        return {number: tuple(segments) for number, segments in sorted(self._segments.items()) if segments}

    def add(self, number: int, cells: Cells) -> None:
        """Write the cells of a set, as one segment for each stretch in which slices of them begin."""
        if not len(cells):
            return
        stretch_of = cells.starts // stretch_ticks(self._plan.sets[number])
        for stretch in np.unique(stretch_of):
            self._write(number, int(stretch), keep_cells(cells, stretch_of == stretch))

    def since(self, number: int, tick: int) -> Cells | None:
        """Return the cells of a set in all segments that reach to the tick or beyond; None if there are none."""
        wanted = [segment for segment in self._segments.get(number, ()) if segment.last >= tick]
        # In order of time, because parts that follow one another are put together without sorting.
        return self._together(number, sorted(wanted, key=lambda segment: segment.first)) if wanted else None

    def drop(self, number: int, before: int) -> None:
        """Remove the segments of a set all of whose slices begin before the tick."""
        kept = []
        for segment in self._segments.get(number, ()):
            if segment.last < before:
                self._store.remove(segment.name)
            else:
                kept.append(segment)
        self._segments[number] = kept

    def drop_all(self, number: int) -> None:
        for segment in self._segments.pop(number, ()):
            self._store.remove(segment.name)

    def compact(self) -> None:
        """Put segments of one stretch and of like size together, within the budget of bytes of a round."""
        left = COMPACTED_BYTES
        for number in sorted(self._segments):
            for together in _alike(self._segments[number]):
                size = sum(segment.size for segment in together)
                if size > left:
                    continue
                left -= size
                cells = self._together(number, together)
                names = {segment.name for segment in together}
                for name in sorted(names):
                    self._store.remove(name)
                self._segments[number] = [each for each in self._segments[number] if each.name not in names]
                self._write(number, together[0].stretch, cells)

    def _together(self, number: int, segments: Sequence[Segment]) -> Cells:
        return merge_all([self._read(number, segment) for segment in segments])

    def _read(self, number: int, segment: Segment) -> Cells:
        blob = self._store.get(segment.name)
        assert blob is not None, f"the catalogue names the segment {segment.name}"
        (cells,) = decode(blob).cells.values()
        return restored_state(State({number: cells}), self._plan).cells[number]

    def _write(self, number: int, stretch: int, cells: Cells) -> None:
        name, blob = f"s{self.next_number}", encode(State({0: cells}), COMPRESSION)
        first, last = int(cells.starts.min()), int(cells.starts.max())
        self._store.put(name, blob)
        self._segments.setdefault(number, []).append(Segment(name, stretch, first, last, len(cells), len(blob)))
        self.next_number += 1


def stretch_ticks(partial_set: PartialSet) -> int:
    """Return the length of the stretches by which the segments of a set are divided."""
    longest = max(
        planned.query.window.extent_ticks or planned.query.window.slide_ticks for planned in partial_set.queries
    )
    return max(TICKS_PER_SECOND, longest // STRETCHES)


def _alike(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Return groups of segments to be compacted: at least `COMPACTED` of one stretch and of like size."""
    groups: dict[tuple[int, int], list[Segment]] = {}
    for segment in segments:
        tier = segment.size.bit_length() // (LIKE_SIZE.bit_length() - 1)
        groups.setdefault((segment.stretch, tier), []).append(segment)
    return [group for _, group in sorted(groups.items()) if len(group) >= COMPACTED]
