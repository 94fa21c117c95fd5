"""The cells of a set as immutable segments by time, and summaries that windows read instead: state costs what changes.

              |  stretch 0  |  stretch 1  |  stretch 2  |  stretch 3  |
              |  s3         |  s9    s14  |  s17 s18    |  s21        |    what a round brings is a segment of its own
              |     s12     |     s20     |                                summaries of one stretch …
              |            s23            |                                … of two, of four: a tree over segments
              window        [ s20         | s17  s18    )

A late tuple makes a small segment in an older stretch. Segments of one stretch and of like size are compacted; they are
dropped as a whole, once no window that is still to be reported may cover them.

A window that closes reads the summaries of what lies wholly in it, and segments where it begins and ends. So what it
costs grows with the logarithm of its range. A summary is made when a window first reads it, if later ones will too.

Where segments lie is for their home to say: in memory and files of a checkpoint in process, in Spark's state store in
the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from windloom.model.arrays import Ints
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.plan import PartialSet
from windloom.state.cells import Cells, CellsBuilder, keep_cells, keep_from, merge_all

#: A set's longest window is divided into at most so many stretches. Each is at least so many slices long.
STRETCHES, SLICES = 64, 4
#: A summary of the next level has the stretches of so many, on so many levels: of 1, 4, 16, 64 and 256 stretches.
FAN_OUT, LEVELS = 4, 5
#: A summary is made if so many windows that close later will read it.
READ_AGAIN = 2
#: So many segments of one stretch, and of like size, become one.
COMPACTED = 4
#: Segments are of like size if the larger one has less than this many times the bytes of the smaller one.
LIKE_SIZE = 4
#: Compaction stops for the round when it has read this many bytes.
COMPACTED_BYTES = 8 << 20


class HeldCells(Protocol):
    """The cells of a segment that this process holds, or can read without asking a store."""

    @property
    def slices(self) -> Ints:
        """The distinct starts of their slices, in ascending order."""

    def cells(self) -> Cells: ...


class Segment(NamedTuple):
    """Some cells of one set: their slices begin from the tick `first` to the tick `last`.

    On level 0, they are in one stretch of time, the one of that number. On level n, they are a summary: of the segments
    `covers`, those in the stretches from `FAN_OUT`^(n - 1) · `stretch` on. `is_cut`: cells of slices that begin before
    `first` are dropped, though they are still stored. In process, `held` has the cells.
    """

    name: str
    stretch: int
    first: int
    last: int
    cells: int
    size: int  # in bytes
    level: int = 0
    covers: tuple[str, ...] = ()
    is_cut: bool = False
    held: HeldCells | None = None

    @property
    def figures(self) -> tuple[Any, ...]:
        """Everything but the cells, for a catalogue."""
        return self[:-1]

    @classmethod
    def of_figures(cls, figures: Sequence[Any], held: HeldCells | None = None) -> Segment:
        *fields, covers, is_cut = figures
        return cls._make((*fields, tuple(covers), is_cut, held))


class SegmentHome(Protocol):
    """Where the segments of a set are."""

    def read(self, segment: Segment) -> Cells:
        """Return all cells that are stored."""

    def write(self, cells: Cells) -> tuple[str, int, HeldCells | None]:
        """Store cells; return their name, which is new, and their bytes."""

    def remove(self, segment: Segment) -> None: ...


class SetSegments:
    """The segments of one set, while a round changes them; their stretches are `ticks` long."""

    def __init__(self, home: SegmentHome, ticks: int, segments: Iterable[Segment] = ()) -> None:
        self._home, self.ticks, self.segments = home, ticks, list(segments)

    @property
    def fine(self) -> list[Segment]:
        """The segments that are no summaries, in order of time."""
        # Parts that follow one another are put together without sorting.
        return sorted((each for each in self.segments if each.level == 0), key=lambda segment: segment.first)

    def add(self, cells: Cells) -> None:
        """Store cells, as one segment for each stretch in which slices of them begin."""
        if not len(cells):
            return
        stretch_of = cells.starts // self.ticks
        for stretch in np.unique(stretch_of):
            self._write(int(stretch), keep_cells(cells, stretch_of == stretch))

    def since(self, tick: int, closing: Closing | None = None) -> Cells | None:
        """Return the cells in all segments that reach to the tick or beyond; None if there are none.

        If it is known which windows are `closing`, cells that all of them hold, or none, may be put together.
        """
        wanted = [each for each in self.segments if each.level == 0 and each.last >= tick]
        if closing is not None:
            wanted = self._summarised(wanted, closing)
        return self._together(sorted(wanted, key=lambda segment: segment.first)) if wanted else None

    def _summarised(self, wanted: list[Segment], closing: Closing) -> list[Segment]:
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
                end = (node + 1) * stretches * self.ticks
                if end > closing.sealed or closing.divides(first, last) or closing.read_again(first, last) < READ_AGAIN:
                    wanted += covered
                    continue
                summary = self._summary(level, node, covered)
                found.append(summary)
                late += [each for each in covered if each.name not in summary.covers]
        return [*found, *late, *wanted]

    def _summary(self, level: int, node: int, covered: list[Segment]) -> Segment:
        """Return the summary of these segments, or of those of them that were there when it was made."""
        names = {each.name for each in covered}
        known = [each for each in self.segments if each.level > 0 and names.issuperset(each.covers)]
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
        cells = self._together(sorted(parts, key=lambda segment: segment.first))
        first = min(each.first for each in covered)
        one = CellsBuilder.of_cells(cells, np.full(len(cells), first, np.int64)).build(cells.lifted)
        return self._write(node, one, level, tuple(sorted(each.name for each in covered)), covered)

    def drop(self, before: int) -> None:
        """Drop the slices that begin before the tick, with summaries of any of them.

        A segment that reaches further stays. Its earlier cells are not read any more if the process holds it; if not,
        they may still be, which changes no window, because none that is still to be reported covers them.
        """
        gone, cut = set[str](), dict[str, Segment]()
        for each in self.segments:
            if each.level == 0 and each.last < before:
                gone.add(each.name)
            elif each.level == 0 and each.first < before and each.held is not None:
                slices = each.held.slices
                first = int(slices[np.searchsorted(slices, before)])
                cut[each.name] = each._replace(first=first, is_cut=True)
        if cut:
            self.segments = [cut.get(each.name, each) for each in self.segments]
        self._remove(gone, gone | cut.keys())

    def drop_all(self) -> None:
        names = {segment.name for segment in self.segments}
        self._remove(names, names)

    def _remove(self, names: set[str], changed: set[str]) -> None:
        """Remove segments, and summaries of those that have changed."""
        if not changed:
            return
        kept = []
        for segment in self.segments:
            if segment.name in names or not changed.isdisjoint(segment.covers):
                self._home.remove(segment)
            else:
                kept.append(segment)
        self.segments = kept

    def compact(self, left: int) -> int:
        """Put segments of one stretch and of like size together, as long as bytes are left; return what is left."""
        for together in _alike(self.segments):
            size = sum(segment.size for segment in together)
            if size > left:
                continue
            left -= size
            cells = self._together(together)
            names = {segment.name for segment in together}
            self._remove(names, names)
            self._write(together[0].stretch, cells)
        return left

    def _together(self, segments: Sequence[Segment]) -> Cells:
        return merge_all([self._read(segment) for segment in segments])

    def _read(self, segment: Segment) -> Cells:
        cells = self._home.read(segment)
        return keep_from(cells, segment.first) if segment.is_cut else cells

    def _write(
        self,
        stretch: int,
        cells: Cells,
        level: int = 0,
        covers: tuple[str, ...] = (),
        covered: Sequence[Segment] = (),
    ) -> Segment:
        first = min((each.first for each in covered), default=int(cells.starts.min()))
        last = max((each.last for each in covered), default=int(cells.starts.max()))
        name, size, held = self._home.write(cells)
        segment = Segment(name, stretch, first, last, len(cells), size, level, covers, held=held)
        self.segments.append(segment)
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


def stretch_ticks(partial_set: PartialSet, stretches: int | None = None) -> int:
    """Return the length of the stretches by which the segments of a set are divided, at most `stretches` per window."""
    windows = [planned.query.window for planned in partial_set.queries]
    longest = max(window.extent_ticks or window.slide_ticks for window in windows)
    slice_ticks = TICKS_PER_SECOND / partial_set.edges.edges_per_second
    return max(1, longest // (stretches or STRETCHES), min(longest, round(SLICES * slice_ticks)))


def _alike(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Return groups of segments to be compacted: at least `COMPACTED` of one stretch and of like size."""
    groups: dict[tuple[int, int], list[Segment]] = {}
    for segment in segments:
        if segment.level > 0:
            continue
        tier = segment.size.bit_length() // (LIKE_SIZE.bit_length() - 1)
        groups.setdefault((segment.stretch, tier), []).append(segment)
    return [group for _, group in sorted(groups.items()) if len(group) >= COMPACTED]
