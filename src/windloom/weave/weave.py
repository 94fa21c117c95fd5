"""Weaving: one pass over projected tuples makes the cells of every set that a scan feeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from math import prod
from operator import call
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windloom.aggregates.aggregator import ListAggregator
from windloom.kernels.compiling import compiled
from windloom.kernels.tuples.set_tuples import SetTuples
from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.kernels.tuples.tuples import Tuples
from windloom.model.arrays import Ints
from windloom.model.time import TICK_MIN, TICKS_PER_SECOND
from windloom.model.types import arrow_type
from windloom.plan.graph import conditions_of
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import FEW_CELLS, Scan, WovenFeed, WovenScan
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.state.cells import Cells, CellsBuilder, roll_up
from windloom.state.windows.registry import life_of
from windloom.weave.roll_up import SignedCells, bits_of, sign_sets

#: `map`, by one thread or by those of a pool.
Each = Callable[[Callable[[Callable[[], Any]], Any], Iterable[Callable[[], Any]]], Iterable[Any]]

#: For fewer tuples, threads cost more than they gain.
FEW_TUPLES = 20_000

#: Fewer tuples, and cells of fewer groups, stay in the caches whatever their order is.
MANY_TUPLES = 1 << 17
MANY_GROUPS = 1 << 12

#: A list counts as this many other components when work is divided among threads.
_LIST_WORK = 8


def read_tuples(plan: Plan, scan: WovenScan, table: pa.Table) -> Tuples:
    """Return projected tuples, all with a tick, in the form that the sets of their scan share."""
    numbers = [*(fed.number for fed in scan.feeds), *(number for number, _ in scan.watched)]
    # Late tuples are counted by slice, so slices are as fine as those of the sets that are only watched.
    own = [plan.sets[number] for number in numbers if plan.sets[number].counted_by == scan.counted_by]
    edges = {partial_set.edges for partial_set in own if partial_set.window.is_sliced} or {
        partial_set.edges for partial_set in own
    }
    if not own:  # it only keeps tuples
        edges = {EdgeSet((EdgeClass(TICKS_PER_SECOND, 0),))}
    finest = EdgeSet.of(edge_class for each in edges for edge_class in each.classes)
    return Tuples.of(table, scan.signature.words, finest, has_positions=scan.counted_by is not None)


def weave(
    plan: Plan,
    scan: WovenScan,
    tuples: Tuples,
    closed: int = TICK_MIN,
    threads: int | None = None,
    by_signature: bool | None = None,
    beside: Sequence[Callable[[], None]] = (),
) -> dict[int, Cells]:
    """Return the cells of each set of a scan, by its number; a set that no tuple is part of has none.

    `closed` is where the sets were closed before the tuples came: some kinds of windows leave late ones out.
    `by_signature` forces or forbids rolling sets up from signatures; None: where that is less work. The functions in
    `beside` are called by the same threads.
    """
    if not len(tuples):
        return {}
    workers = _workers(tuples, threads)
    made: dict[int, Cells] = {}
    with ThreadPoolExecutor(workers) as pool:
        each: Each = map if workers == 1 else pool.map
        if workers > 1:
            # Parts that many sets share are made first, one by each thread: otherwise the first sets would wait for
            # one another.
            list(each(call, _shared(plan, scan, tuples)))
        # Sets from which others may be rolled up come first, and in each group the longest ones, so that no thread is
        # left with a large set at the end.
        for lot in ([fed for fed in scan.feeds if not fed.via], [fed for fed in scan.feeds if fed.via]):
            if workers > 1 and tuples.known_signatures is None and any(fed.via for fed in lot):
                list(each(call, _choices(tuples, lot)))  # to decide, tuples are counted
            finer: dict[int, int | None] = {}  # the set from whose cells a set is rolled up
            for fed in lot:
                source = min(fed.via, key=lambda number: len(made[number]), default=None)
                if source is not None and FEW_CELLS * len(made[source]) > tuples.count(bits_of(fed)):
                    source = None
                finer[fed.number] = source
            signed: dict[int, SignedCells] = {}
            if by_signature is not False:
                others = [(fed, plan.sets[fed.number]) for fed in lot if finer[fed.number] is None]
                signed = sign_sets(tuples, others, always=by_signature is True)
            list(each(call, [maker for cells in dict.fromkeys(signed.values()) for maker in cells.makers()]))
            from_tuples = [fed for fed in lot if fed.number not in signed and finer[fed.number] is None]
            if workers > 1:
                list(each(call, _choices(tuples, from_tuples)))
                list(each(call, _moved(plan, tuples, from_tuples)))
            weights = {
                fed.number: sum(_LIST_WORK if each.family.is_list else 1 for each in plan.sets[fed.number].components)
                for fed in lot
            }
            ordered = sorted(lot, key=lambda fed: -tuples.count(bits_of(fed)) * weights[fed.number])
            makers: list[Callable[[], Cells]] = []
            for fed in ordered:
                partial_set, source = plan.sets[fed.number], finer[fed.number]
                if fed.number in signed:
                    makers.append(partial(signed[fed.number].cells, fed, partial_set))
                elif source is not None:
                    makers.append(partial(roll_up, made[source], plan.sets[source], partial_set))
                else:
                    makers.append(partial(weave_set, tuples, fed, partial_set, closed))
            found = list(each(call, [*beside, *makers]))[len(beside) :]
            made |= {fed.number: cells for fed, cells in zip(ordered, found, strict=True)}
            beside = ()
    return {fed.number: made[fed.number] for fed in scan.feeds if len(made[fed.number])}


def share_columns(plan: Plan, scan: WovenScan, tuples: Tuples, threads: int | None = None) -> None:
    """Make the parts that the sets of a scan share, if there are threads to divide them among."""
    workers = _workers(tuples, threads)
    if workers > 1:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(call, _shared(plan, scan, tuples)))


def _workers(tuples: Tuples, threads: int | None) -> int:
    return threads or (1 if len(tuples) < FEW_TUPLES else os.cpu_count() or 1)


def _shared(plan: Plan, scan: WovenScan, tuples: Tuples) -> list[Callable[[], object]]:
    """Return makers of the parts that sets share: ranks, slices, codes of groups; the longest work comes first."""
    listed = {
        read.argument
        for fed in scan.feeds
        for planned, read in zip(plan.sets[fed.number].components, fed.components, strict=True)
        if isinstance(planned.aggregator, ListAggregator) and planned.aggregator.is_ranked and read.argument is not None
    }
    grouped = {position for fed in scan.feeds for position in fed.groups} - listed
    return [
        *(partial(getattr, tuples.column(position), "ranked") for position in sorted(listed)),
        partial(getattr, tuples, "slices"),
        *(partial(getattr, tuples.column(position), "coded") for position in sorted(grouped)),
    ]


def _choices(tuples: Tuples, sets: Sequence[WovenFeed]) -> list[Callable[[], object]]:
    """Return makers of the lists of tuples of each predicate."""
    return [partial(tuples.chosen, bits) for bits in sorted({bits_of(fed) for fed in sets})]


def _moved(plan: Plan, tuples: Tuples, sets: Sequence[WovenFeed]) -> list[Callable[[], object]]:
    """Return makers of columns in the order in which sets need them."""
    makers: dict[tuple[int, int, str], Callable[[], object]] = {}
    for fed in sets:
        column = _sorted_by(tuples, fed, plan.sets[fed.number])
        if column is None:
            continue
        ordered = tuples.by(column)
        for position in fed.groups:
            makers[column, position, "coded"] = partial(getattr, ordered.column(position), "coded")
        for position in {read.argument for read in fed.components if read.argument is not None}:
            if pa.types.is_integer(ordered.column(position).type):
                makers[column, position, "integers"] = partial(getattr, ordered.column(position), "integers")
    return list(makers.values())


def _sorted_by(tuples: Tuples, fed: WovenFeed, partial_set: PartialSet) -> int | None:
    """Return the column by which tuples are sorted before a set is woven; None if they stay as they are.

    If there are nearly as many cells as tuples, work on cells would otherwise jump to and fro in memory.
    """
    if not fed.groups or not partial_set.window.is_sliced:
        return None
    if any(planned.family.is_list for planned in partial_set.components):  # these are made from tuples in other orders
        return None
    sizes = [len(tuples.column(position).coded.dictionary) for position in fed.groups]
    if prod(sizes) < MANY_GROUPS:
        return None
    slices = len(tuples.slices.slicing(partial_set.edges).starts)
    if prod(sizes) * slices < len(tuples) // 2:
        return None
    many = tuples.count(bits_of(fed))  # last, since tuples may have to be listed for it
    return None if many < MANY_TUPLES or 2 * many < len(tuples) else fed.groups[int(np.argmax(sizes))]


def weave_set(tuples: Tuples, fed: WovenFeed, partial_set: PartialSet, closed: int = TICK_MIN) -> Cells:
    """Make the cells of one set from tuples; `closed` is where the set was closed before they came."""
    life = life_of(partial_set.window)
    tuples = life.in_time(partial_set.window, tuples, closed)
    column = _sorted_by(tuples, fed, partial_set)
    if column is not None:
        tuples = tuples.by(column)
    bits = bits_of(fed)
    grid = life.grid(tuples, fed, partial_set)
    kept = grid.every if not bits else grid.holding(tuples.counts(grid, bits))
    cut = SetTuples(tuples, grid, bits, kept)
    keys = [key.cast(arrow_type(kind)) for key, kind in zip(grid.keys(kept), partial_set.group_types, strict=True)]
    built = CellsBuilder(keys, kept.bounds, grid.starts_of(kept))
    for planned, read in zip(partial_set.components, fed.components, strict=True):
        built.add(planned.aggregator.weave(planned, cut, read))
    return built.build()


# Counts of the tuples that a scan read: how many, how many satisfied each condition, which ticks they span.

#: Different signatures are counted in a sample of this many tuples.
SAMPLE = 1 << 12


@dataclass(frozen=True, slots=True)
class ScanCounts:
    """`conditions` counts, by SQL, tuples that satisfied a predicate of a set or the condition of a FILTER.

    `signatures` is the number of different signatures in a sample.
    """

    tuples: int = 0
    conditions: Mapping[str, int] = field(default_factory=dict)
    signatures: int = 1

    def __add__(self, other: ScanCounts) -> ScanCounts:
        names = dict.fromkeys([*self.conditions, *other.conditions])
        conditions = {name: self.conditions.get(name, 0) + other.conditions.get(name, 0) for name in names}
        return ScanCounts(self.tuples + other.tuples, conditions, max(self.signatures, other.signatures))


@dataclass(frozen=True, slots=True)
class Ticks:
    """The smallest and the largest event tick of some tuples, and how many have none.

    `tuples` counts the tuples with a tick, if they were counted.
    """

    first: int | None = None
    last: int | None = None
    untimed: int = 0
    tuples: int | None = None

    def __add__(self, other: Ticks) -> Ticks:
        firsts = [tick for tick in (self.first, other.first) if tick is not None]
        lasts = [tick for tick in (self.last, other.last) if tick is not None]
        counted = [count for count in (self.tuples, other.tuples) if count is not None]
        untimed = self.untimed + other.untimed
        return Ticks(min(firsts, default=None), max(lasts, default=None), untimed, sum(counted) if counted else None)

    @classmethod
    def between(cls, first: pa.ChunkedArray, last: pa.ChunkedArray, untimed: int) -> Ticks:
        return cls(pc.min(first).as_py(), pc.max(last).as_py(), untimed)


def timed_tuples(table: pa.Table) -> tuple[pa.Table, Ticks]:
    """Return the tuples that have a tick, and the ticks that all tuples span."""
    untimed = table.column(0).null_count
    if untimed:
        table = table.filter(pc.is_valid(table.column(0)))
    return table, Ticks.between(table.column(0), table.column(0), untimed)


def scanned_tuples(plan: Plan, scan: Scan, tuples: Tuples) -> ScanCounts:
    """Count the tuples of a scan by their signatures."""
    signatures = tuples.known_signatures
    if signatures is not None:
        step = -(-len(tuples) // SAMPLE)
        distinct = int(np.count_nonzero(np.bincount(signatures.codes[::step], minlength=1)))
        told = scanned_partials(plan, scan, list(signatures.words), signatures.counts)
        return ScanCounts(len(tuples), told.conditions, max(1, distinct))
    words = [tuples.word(number) for number in range(scan.signature.words)]
    counts = np.zeros((len(words), SIGNATURE_BITS), np.int64)
    for number, word in enumerate(words):
        _count_bits(word, counts[number, : len(scan.signature.predicates) - number * SIGNATURE_BITS])
    return ScanCounts(len(tuples), _named(plan, scan, counts), _distinct(words))


def scanned_partials(plan: Plan, scan: Scan, words: Sequence[Ints], tuples: Ints) -> ScanCounts:
    """Count the tuples of a native scan, by the signatures of its partials and the tuples in each."""
    counts = np.zeros((len(words), SIGNATURE_BITS), np.int64)
    for number, word in enumerate(words):
        for bit in range(min(SIGNATURE_BITS, len(scan.signature.predicates) - number * SIGNATURE_BITS)):
            counts[number, bit] = ((word >> bit) & 1) @ tuples
    return ScanCounts(int(tuples.sum()), _named(plan, scan, counts), _distinct(words))


def _named(plan: Plan, scan: Scan, counts: Ints) -> dict[str, int]:
    bits = conditions_of(plan, scan)
    return {sql: int(counts[bit // SIGNATURE_BITS, bit % SIGNATURE_BITS]) for sql, bit in bits.items()}


def _distinct(words: Sequence[Ints]) -> int:
    if not words or not len(words[0]):
        return 1
    step = -(-len(words[0]) // SAMPLE)
    return len(np.unique(np.stack([word[::step] for word in words], axis=1), axis=0))


@compiled
def _count_bits(word, counts):  # type: ignore[no-untyped-def]
    """Adds to every count the tuples that have its bit."""
    for bit in range(len(counts)):
        total = 0
        for i in range(len(word)):
            total += (word[i] >> bit) & 1
        counts[bit] += total
