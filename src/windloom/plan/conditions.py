"""The conditions that a scan tests on every tuple, by their canonical SQL, and the bit of each in its signature."""

from __future__ import annotations

from windloom.plan.physical import Plan
from windloom.plan.scans import Fed, NativeScan, Scan, WovenScan


def conditions_of(plan: Plan, scan: Scan) -> dict[str, int]:
    """The bit of every predicate of a set and condition of a FILTER that has one, by SQL."""
    watched = () if isinstance(scan, NativeScan) else scan.watched
    bit_of = {}
    for number, bit in [*((fed.number, fed.bit) for fed in scan.feeds), *watched]:
        predicate = plan.sets[number].predicate
        if predicate is not None and bit is not None:
            bit_of[predicate.sql] = bit
    if isinstance(scan, WovenScan) and scan.kept is not None:
        bit_of |= {sql: bit for sql, bit in scan.kept.conditions if bit is not None}
    for fed in scan.feeds:
        filters = fed.filters if isinstance(fed, Fed) else [read.filter for read in fed.components]
        for planned, bit in zip(plan.sets[fed.number].components, filters, strict=True):
            if planned.component.where is not None and bit is not None:
                bit_of[planned.component.where.sql] = bit
    return bit_of
