"""State as immutable blobs: the cells of a bucket in segments by time, and summaries that windows read instead.

    store     head      facts and catalogue of the bucket, written in every round
              plan      the plan that the segments were made with, written when it changes
              s17 …     a segment: cells of one set, all of whose slices begin in one stretch of time
              s18 …     a summary: one cell per group for all segments of one or several stretches

              |  stretch 0  |  stretch 1  |  stretch 2  |  stretch 3  |
              |  s3         |  s9    s14  |  s17 s18    |  s21        |    what a round brings is a segment of its own
              |     s12     |     s20     |                                summaries of one stretch …
              |            s23            |                                … of two, of four: a tree over segments
              window        [ s20         | s17  s18    )

A late tuple makes a small segment in an older stretch. Segments of one stretch and of like size are compacted; they are
dropped as a whole, once no window that is still to be reported may cover them.

A window that closes reads the summaries of what lies wholly in it, and segments where it begins and ends. So what it
costs grows with the logarithm of its range. A summary is made when a window first reads it, if later ones will too.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from windloom.checkpoint.state_codec import decode, encode, restored_cells
from windloom.model.arrays import Ints
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.plan import PartialSet, Plan
from windloom.state.cells import Cells, CellsBuilder, keep_cells, merge_all
from windloom.state.state import State

#: Cells are compressed on their way to a bucket and in its store: copying them from process to process costs more.
COMPRESSION = "lz4"
#: A set's longest window is divided into at most so many stretches. Each is at least so many slices long.
STRETCHES, SLICES = 64, 4
#: A summary of the next level has the stretches of so many, on so many levels: of 1, 4, 16 and 64 stretches.
FAN_OUT, LEVELS = 4, 4
#: A summary is made if so many windows that close later will read it.
READ_AGAIN = 2
#: So many segments of one stretch, and of like size, become one.
COMPACTED = 4
#: Segments are of like size if the larger one has less than this many times the bytes of the smaller one.
LIKE_SIZE = 4
#: Compaction stops for the round when it has read this many bytes.
COMPACTED_BYTES = 8 << 20


class SegmentStore(Protocol):
    """Where a bucket keeps its blobs by name: Spark's state store, or memory in a batch run.

    `place` is the same in all rounds of the bucket, and no other bucket has it; empty if there is only one round.
    """

    @property
    def place(self) -> str: ...

    def get(self, name: str) -> bytes | None: ...

    def put(self, name: str, blob: bytes) -> None: ...

    def remove(self, name: str) -> None: ...


class MemoryStore:
    """Blobs in memory: for tests, and for a batch run, after which nothing is kept."""

    def __init__(self, place: str = "") -> None:
        self.place = place
        self.blobs: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self.blobs.get(name)

    def put(self, name: str, blob: bytes) -> None:
        self.blobs[name] = blob

    def remove(self, name: str) -> None:
        del self.blobs[name]


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


class Segment(NamedTuple):
    """Some cells of one set: their slices begin from the tick `first` to the tick `last`.

    On level 0, they are in one stretch of time, the one of that number. On level n, they are a summary: of the segments
    `covers`, those in the stretches from `FAN_OUT`^(n - 1) · `stretch` on.
    """

    name: str
    stretch: int
    first: int
    last: int
    cells: int
    size: int  # in bytes
    level: int = 0
    covers: tuple[str, ...] = ()


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

    def since(self, number: int, tick: int, closing: Closing | None = None) -> Cells | None:
        """Return the cells of a set in all segments that reach to the tick or beyond; None if there are none.

        If it is known which windows are `closing`, cells that all of them hold, or none, may be put together.
        """
        wanted = [each for each in self._segments.get(number, ()) if each.level == 0 and each.last >= tick]
        if closing is not None:
            wanted = self._summarised(number, wanted, closing)
        # In order of time, because parts that follow one another are put together without sorting.
        return self._together(number, sorted(wanted, key=lambda segment: segment.first)) if wanted else None

    def _summarised(self, number: int, wanted: list[Segment], closing: Closing) -> list[Segment]:
        """Return the segments to be read, with summaries in the place of those that no closing window divides."""
        found: list[Segment] = []
        late: list[Segment] = []  # came when the summary of their stretch had been made
        for level in range(LEVELS, 0, -1):
            stretches = FAN_OUT ** (level - 1)
            nodes: dict[int, list[Segment]] = {}
            for segment in wanted:
                nodes.setdefault(segment.stretch // stretches, []).append(segment)
            wanted = []
            for node, covered in sorted(nodes.items()):
                first, last = min(each.first for each in covered), max(each.last for each in covered)
                end = (node + 1) * stretches * stretch_ticks(self._plan.sets[number])
                if end > closing.sealed or closing.divides(first, last) or closing.read_again(first, last) < READ_AGAIN:
                    wanted += covered
                    continue
                summary = self._summary(number, level, node, covered)
                found.append(summary)
                late += [each for each in covered if each.name not in summary.covers]
        return [*found, *late, *wanted]

    def _summary(self, number: int, level: int, node: int, covered: list[Segment]) -> Segment:
        """Return the summary of these segments, or of those of them that were there when it was made."""
        names = {each.name for each in covered}
        known = [each for each in self._segments[number] if each.level > 0 and names.issuperset(each.covers)]
        for summary in known:
            if (summary.level, summary.stretch) == (level, node):
                return summary
        # From the largest summaries of lower levels, and from segments that none of them covers.
        parts: list[Segment] = []
        for part in [*sorted(known, key=lambda each: -each.level), *covered]:
            own = set(part.covers) or {part.name}
            if part.level < level and own <= names:
                parts.append(part)
                names -= own
        cells = self._together(number, sorted(parts, key=lambda segment: segment.first))
        first = min(each.first for each in covered)
        one = CellsBuilder.of_cells(cells, np.full(len(cells), first, np.int64)).build(cells.lifted)
        return self._write(number, node, one, level, tuple(sorted(each.name for each in covered)), covered)

    def drop(self, number: int, before: int) -> None:
        """Remove the segments of a set all of whose slices begin before the tick, and summaries of any of them."""
        gone = {each.name for each in self._segments.get(number, ()) if each.level == 0 and each.last < before}
        self._remove(number, gone)

    def drop_all(self, number: int) -> None:
        self._remove(number, {segment.name for segment in self._segments.get(number, ())})

    def _remove(self, number: int, names: set[str]) -> None:
        kept = []
        for segment in self._segments.get(number, ()):
            if segment.name in names or not names.isdisjoint(segment.covers):
                self._store.remove(segment.name)
            else:
                kept.append(segment)
        self._segments[number] = kept

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
                self._remove(number, {segment.name for segment in together})
                self._write(number, together[0].stretch, cells)

    def _together(self, number: int, segments: Sequence[Segment]) -> Cells:
        return merge_all([self._read(number, segment) for segment in segments])

    def _read(self, number: int, segment: Segment) -> Cells:
        cells = _READ.get(self._store.place, segment.name)
        if cells is None:
            blob = self._store.get(segment.name)
            assert blob is not None, f"the catalogue names the segment {segment.name}"
            (cells,) = decode(blob).cells.values()
            _READ.put(self._store.place, segment.name, cells)
        return restored_cells(cells, self._plan.sets[number].components)

    def _write(
        self,
        number: int,
        stretch: int,
        cells: Cells,
        level: int = 0,
        covers: tuple[str, ...] = (),
        covered: Sequence[Segment] = (),
    ) -> Segment:
        blob = encode(State({0: cells}), COMPRESSION)
        name = f"s{self.next_number}-{zlib.crc32(blob):08x}"
        _READ.put(self._store.place, name, cells)
        first = min((each.first for each in covered), default=int(cells.starts.min()))
        last = max((each.last for each in covered), default=int(cells.starts.max()))
        segment = Segment(name, stretch, first, last, len(cells), len(blob), level, covers)
        self._store.put(name, blob)
        self._segments.setdefault(number, []).append(segment)
        self.next_number += 1
        return segment


@dataclass(frozen=True, slots=True)
class Closing:
    """The windows of a set that close in a round, and up to where its cells are complete but for late tuples.

    `starts` and `ends` are those of the windows, as pairs in any order; `slides` are how far the next window of the
    same query begins behind each.
    """

    sealed: int
    starts: Ints
    ends: Ints
    slides: Ints

    def divides(self, first: int, last: int) -> bool:
        """Return whether a window begins or ends between slices that begin at these ticks."""
        begins = (self.starts > first) & (self.starts <= last)
        return bool((begins | ((self.ends > first) & (self.ends <= last))).any())

    def read_again(self, first: int, last: int) -> int:
        """Return how many later windows hold slices that begin between these ticks, which no closing one divides."""
        holds = (self.starts <= first) & (self.ends > last)
        return int(((first - self.starts[holds]) // self.slides[holds]).max(initial=0))


def stretch_ticks(partial_set: PartialSet) -> int:
    """Return the length of the stretches by which the segments of a set are divided."""
    windows = [planned.query.window for planned in partial_set.queries]
    longest = max(window.extent_ticks or window.slide_ticks for window in windows)
    slice_ticks = TICKS_PER_SECOND / partial_set.edges.edges_per_second
    return max(1, longest // STRETCHES, min(longest, round(SLICES * slice_ticks)))


def _alike(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Return groups of segments to be compacted: at least `COMPACTED` of one stretch and of like size."""
    groups: dict[tuple[int, int], list[Segment]] = {}
    for segment in segments:
        if segment.level > 0:
            continue
        tier = segment.size.bit_length() // (LIKE_SIZE.bit_length() - 1)
        groups.setdefault((segment.stretch, tier), []).append(segment)
    return [group for _, group in sorted(groups.items()) if len(group) >= COMPACTED]
