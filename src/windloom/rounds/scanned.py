"""Counts of the tuples that a scan read: how many, how many satisfied each condition, which ticks they span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windloom.kernels.compiling.compiled import compiled
from windloom.model.arrays import Ints
from windloom.plan.conditions import conditions_of
from windloom.plan.physical import Plan
from windloom.plan.scans import Scan
from windloom.weave.signatures import SIGNATURE_BITS
from windloom.weave.tuples import Tuples

#: Different signatures are counted in a sample of this many tuples.
SAMPLE = 1 << 12


@dataclass(frozen=True, slots=True)
class Scanned:
    """`conditions` counts, by SQL, tuples that satisfied a predicate of a set or the condition of a FILTER.

    `signatures` is the number of different signatures in a sample.
    """

    tuples: int = 0
    conditions: Mapping[str, int] = field(default_factory=dict)
    signatures: int = 1

    def __add__(self, other: Scanned) -> Scanned:
        names = dict.fromkeys([*self.conditions, *other.conditions])
        conditions = {name: self.conditions.get(name, 0) + other.conditions.get(name, 0) for name in names}
        return Scanned(self.tuples + other.tuples, conditions, max(self.signatures, other.signatures))


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


def scanned_tuples(plan: Plan, scan: Scan, tuples: Tuples) -> Scanned:
    """Count the tuples of a scan by their signatures."""
    signatures = tuples.known_signatures
    if signatures is not None:
        step = -(-len(tuples) // SAMPLE)
        distinct = int(np.count_nonzero(np.bincount(signatures.codes[::step], minlength=1)))
        told = scanned_partials(plan, scan, list(signatures.words), signatures.counts)
        return Scanned(len(tuples), told.conditions, max(1, distinct))
    words = [tuples.word(number) for number in range(scan.signature.words)]
    counts = np.zeros((len(words), SIGNATURE_BITS), np.int64)
    for number, word in enumerate(words):
        _count_bits(word, counts[number, : len(scan.signature.predicates) - number * SIGNATURE_BITS])
    return Scanned(len(tuples), _named(plan, scan, counts), _distinct(words))


def scanned_partials(plan: Plan, scan: Scan, words: Sequence[Ints], tuples: Ints) -> Scanned:
    """Count the tuples of a native scan, by the signatures of its partials and the tuples in each."""
    counts = np.zeros((len(words), SIGNATURE_BITS), np.int64)
    for number, word in enumerate(words):
        for bit in range(min(SIGNATURE_BITS, len(scan.signature.predicates) - number * SIGNATURE_BITS)):
            counts[number, bit] = ((word >> bit) & 1) @ tuples
    return Scanned(int(tuples.sum()), _named(plan, scan, counts), _distinct(words))


def _named(plan: Plan, scan: Scan, counts: Ints) -> dict[str, int]:
    found = conditions_of(plan, scan)
    return {sql: int(counts[bit // SIGNATURE_BITS, bit % SIGNATURE_BITS]) for sql, bit in found.items()}


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
