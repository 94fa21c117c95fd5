"""Kept tuples: which files hold the tuples of a stream, from when on they hold all of them, and which ones expire.

Files are immutable. A round adds files, and may replace several by one that holds the same tuples. A file is dropped
when its last tuple is not needed any more, so nothing is ever rewritten because it expires.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from windloom.model.rows import Reports, RowQuery
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.windows import Window
from windloom.plan.plan import Plan
from windloom.plan.rows import PlannedRows

#: Stands for no round: no tuple was there before.
NO_ROUND = -1


@dataclass(frozen=True, slots=True)
class RowSpan:
    """The ends `first, first + slide, …, last` of a query's windows; None: from the first tuple on, to the last.

    `seen` is the last round whose tuples were there when the window before `first` was reported, `NO_ROUND` if none
    was: a tuple that came later found that window closed, even if it belongs to it.
    """

    first: int | None = None
    last: int | None = None
    seen: int = NO_ROUND

    @property
    def follows(self) -> bool:
        """Whether the window before was reported."""
        return self.seen != NO_ROUND and self.first is not None


def last_end_upto(window: Window, tick: int) -> int:
    """Return the last end at or before a tick.

    >>> from windloom.model.windows import TimeWindow
    >>> [last_end_upto(TimeWindow(10, 4), tick) for tick in (-1, 1, 2)]
    [-2, -2, 2]
    """
    return tick - (tick - window.end_ticks) % window.slide_ticks


def row_span(window: Window, after: int, until: int, seen: int) -> RowSpan | None:
    """Return the span of ends in `(after, until]`; None if there are none."""
    first = None if after == TICK_MIN else last_end_upto(window, after) + window.slide_ticks
    last = None if until == TICK_MAX else last_end_upto(window, until)
    if until == TICK_MIN or (first is not None and last is not None and first > last):
        return None
    return RowSpan(first, last, seen if first is not None else NO_ROUND)


@dataclass(frozen=True, slots=True)
class ReportedWindows:
    """A row query, and which of its windows a round reports."""

    planned: PlannedRows
    span: RowSpan


def needed_from(rows: RowQuery, window: Window, span: RowSpan) -> int:
    """Return the first tick whose tuples are needed of a strand that is read through `window`."""
    if span.first is None:
        return TICK_MIN
    looks_back = span.follows and (rows.reports is Reports.LEAVING or not rows.has_lifetimes)
    return span.first - window.range_ticks - (window.slide_ticks if looks_back else 0)


def needed_until(span: RowSpan) -> int:
    """Return the tick before which tuples are needed."""
    return TICK_MAX if span.last is None else span.last


@dataclass(frozen=True, slots=True)
class TupleFile:
    """A file of tuples of one stream: their ticks lie in `first … last`, they came in `first_round … last_round`."""

    name: str
    first: int
    last: int
    first_round: int
    last_round: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """At ticks from `since` on, every tuple that one of `wheres` wants (None: every tuple) is kept with `columns`."""

    columns: tuple[str, ...]
    wheres: tuple[str, ...] | None
    since: int = TICK_MIN

    def holds(self, columns: Iterable[str], where: str | None) -> bool:
        """Return whether it covers all tuples that a condition wants (None: all tuples), with these columns."""
        if not set(columns) <= set(self.columns):
            return False
        return self.wheres is None or (where is not None and where in self.wheres)


@dataclass(frozen=True, slots=True)
class TupleStore:
    """The files of one stream, oldest rounds first, and what is certain about them."""

    files: tuple[TupleFile, ...] = ()
    coverages: tuple[Coverage, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def since(self, columns: Iterable[str], where: str | None) -> int | None:
        """Return the tick from which all tuples that a condition wants are there; None if no such tick is known."""
        columns = tuple(columns)
        ticks = [coverage.since for coverage in self.coverages if coverage.holds(columns, where)]
        return min(ticks, default=None)

    def between(self, begin: int, end: int) -> tuple[TupleFile, ...]:
        """Return the files that may hold a tick in `[begin, end)`."""
        return tuple(file for file in self.files if file.first < end and file.last >= begin)

    def without_before(self, tick: int) -> TupleStore:
        """Return what is left when tuples before a tick are not needed any more."""
        if tick == TICK_MIN:
            return self
        gone = [file.last for file in self.files if file.last < tick]
        return self._known_from(tuple(file for file in self.files if file.last >= tick), gone)

    def without(self, lost: Collection[str]) -> TupleStore:
        """Return what is left without some files: windows that need one of them are not complete."""
        gone = [file.last for file in self.files if file.name in lost]
        return self._known_from(tuple(file for file in self.files if file.name not in lost), gone)

    def _known_from(self, files: tuple[TupleFile, ...], gone: Sequence[int]) -> TupleStore:
        """Return these files; ticks up to the last one of files that are `gone` are no longer covered."""
        if not gone:
            return self
        least = max(gone) + 1
        coverages = tuple(replace(coverage, since=max(coverage.since, least)) for coverage in self.coverages)
        return TupleStore(files, coverages)


@dataclass(frozen=True, slots=True)
class NewTupleFiles:
    """The files that a round adds to those of one stream, and those that it replaces; `lost` are gone."""

    added: tuple[TupleFile, ...] = ()
    replaced: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


#: By name of the stream.
TupleStores = Mapping[str, TupleStore]


def files_of(kept: TupleStores) -> set[str]:
    """Return the names of all files."""
    return {file.name for kept_tuples in kept.values() for file in kept_tuples.files}


def carried_stores(kept: TupleStores, new: Plan, seen: Mapping[str, int]) -> dict[str, TupleStore]:
    """Return the kept tuples in terms of another plan: what it goes on to keep stays known, and the rest begins now."""
    stores = {}
    for store in new.stores:
        before = kept.get(store.stream, TupleStore())
        # A coverage stays true if the store will keep all that it says.
        coverages = [
            coverage
            for coverage in before.coverages
            if set(coverage.columns) <= set(store.columns)
            and (store.wheres is None or (coverage.wheres is not None and set(coverage.wheres) <= set(store.wheres)))
        ]
        # A file is of no use if nothing is known any more about what it holds.
        files = before.files if coverages else ()
        if not any(
            coverage.holds(store.columns, None) or (coverage.columns, coverage.wheres) == (store.columns, store.wheres)
            for coverage in coverages
        ):
            since = TICK_MIN if store.stream not in seen else seen[store.stream] + 1
            coverages.append(Coverage(store.columns, store.wheres, since))
        stores[store.stream] = TupleStore(files, tuple(coverages))
    return stores


def kept_with(kept: TupleStores, brought: Mapping[str, NewTupleFiles], plan: Plan) -> dict[str, TupleStore]:
    """Return everything that is there in a round: the files so far, and those that the round adds."""
    tuples_by_stream = {}
    for store in plan.stores:
        before = kept.get(store.stream)
        if before is None:  # the first round of all
            before = TupleStore((), (Coverage(store.columns, store.wheres),))
        new_files = brought.get(store.stream, NewTupleFiles())
        every = replace(before, files=(*before.files, *new_files.added)).without(new_files.lost)
        files = tuple(file for file in every.files if file.name not in new_files.replaced)
        tuples_by_stream[store.stream] = replace(every, files=files)
    return tuples_by_stream


def without_unneeded(
    kept: TupleStores,
    plan: Plan,
    closed: Mapping[tuple[str, ...], int],
    seen: Mapping[str, int],
    frontiers: Mapping[str, int],
) -> dict[str, TupleStore]:
    """Return what is left of the kept tuples after a round; streams that the plan does not keep have nothing left.

    `closed` says, by inputs of queries, up to where windows are closed after the round.
    """
    needed_since = dict.fromkeys(kept, TICK_MAX)
    for store in plan.stores:
        name = store.stream
        needed = [TICK_MAX]
        if store.keep_ticks and name in seen:
            needed.append(min(frontiers.get(name, TICK_MIN), seen[name] + 1) - store.keep_ticks)
        for planned in plan.rows:
            until = closed[planned.query.inputs]
            for strand in planned.rows.strands:
                if strand.stream == name and until in (TICK_MIN, TICK_MAX):
                    needed.append(until)
                elif strand.stream == name:  # a window that is open, or the last closed one, may hold the tick
                    needed.append(last_end_upto(strand.window, until) - strand.window.range_ticks)
        needed_since[name] = min(needed)
    return {name: store.without_before(needed_since[name]) for name, store in kept.items()}
