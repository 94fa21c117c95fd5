"""The conditions that a scan tests on every tuple, by their canonical SQL, and the bit of each in its signature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windloom.plan.physical import Plan
from windloom.plan.scans import NativeScan, Scan, WovenScan


def conditions_of(plan: Plan, scan: Scan) -> dict[str, int]:
    """Predicates of sets and conditions of FILTERs that have a bit."""
    watched = () if isinstance(scan, NativeScan) else scan.watched
    found = {}
    for number, bit in [*((fed.number, fed.bit) for fed in scan.feeds), *watched]:
        predicate = plan.sets[number].predicate
        if predicate is not None and bit is not None:
            found[predicate.sql] = bit
    if isinstance(scan, WovenScan) and scan.kept is not None:
        found |= {sql: bit for sql, bit in scan.kept.conditions if bit is not None}
    for number, bits in _filters(scan):
        for planned, bit in zip(plan.sets[number].components, bits, strict=True):
            if planned.component.where is not None and bit is not None:
                found[planned.component.where.sql] = bit
    return found


def _filters(scan: Scan) -> Iterator[tuple[int, Sequence[int | None]]]:
    """For every set, the bits of its components' FILTERs."""
    if isinstance(scan, NativeScan):
        yield from ((fed.number, fed.filters) for fed in scan.feeds)
    else:
        yield from ((fed.number, [read.filter for read in fed.components]) for fed in scan.feeds)
