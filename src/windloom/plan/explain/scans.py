"""EXPLAIN of scans: what one reading of a stream feeds, and how: the lattice from fine groupings to coarse ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windloom.plan.explain.sentences import fact
from windloom.plan.explain.slices import edge_rate, measure_of, slice_id_text
from windloom.plan.explain.words import count, one_line, shorten
from windloom.plan.physical import Fed, PartialSet, Plan, Scan

#: A scan with more predicates, or sets, shows the first few only.
_MANY = 12
_SQL_WIDTH = 80


def scan_lines(plan: Plan, everything: bool = False) -> Iterator[str]:
    """Every scan that feeds more than one set."""
    for scan in plan.scans:
        if len(scan.feeds) > 1:
            yield ""
            yield from _lines(plan, scan, everything)


def scan_of(plan: Plan, one: PartialSet) -> tuple[Scan, Fed] | None:
    """None: no tuple can be part of the set, and none is read for it."""
    scan = plan.scan_of(one)
    return None if scan is None else (scan, next(fed for fed in scan.feeds if fed.number == one.number))


def fed_text(plan: Plan, one: PartialSet) -> str:
    """Where a set's partials come from, in a few words."""
    found = scan_of(plan, one)
    if found is None:
        return "nothing: no tuple satisfies its condition"
    scan, fed = found
    if len(scan.feeds) == 1:
        return "a scan of its own"
    return f"scan {scan.number}, {_how(scan, fed)}"


def _lines(plan: Plan, scan: Scan, everything: bool) -> Iterator[str]:
    yield f"Scan {scan.number}: reads {one_line(scan.stream)} once for {count(len(scan.feeds), 'set')}"
    if scan.where is not None:
        yield from fact("where", f"{one_line(scan.where.sql)}, which all of them imply")
    shown = scan.predicates if everything else scan.predicates[:_MANY]
    label = "signature"
    for bit, predicate in enumerate(shown):
        yield from fact(label, f"bit {bit}: {shorten(one_line(predicate.sql), _SQL_WIDTH)}")
        label = ""
    if len(shown) < len(scan.predicates):
        yield from fact("", f"… and {len(scan.predicates) - len(shown):,} more")
    yield from fact("group by", ", ".join(one_line(part.sql) for part in scan.group_by) or "none")
    measure = measure_of(plan.sets[scan.feeds[0].number])
    yield from fact("slices", f"{edge_rate(scan.edges, measure)}; {slice_id_text(scan.slice_id, measure)}")
    label = "feeds"
    feeds = scan.feeds if everything else scan.feeds[:_MANY]
    for fed in feeds:
        one = plan.sets[fed.number]
        groups = ", ".join(one_line(part.sql) for part in one.group_by) or "none"
        yield from fact(label, f"set {fed.number} (by {groups}): {_how(scan, fed)}")
        label = ""
    if len(feeds) < len(scan.feeds):
        yield from fact("", f"… and {count(len(scan.feeds) - len(feeds), 'more set')}")


def _how(scan: Scan, fed: Fed) -> str:
    if fed.via is not None:
        return f"rolled up from set {fed.via}"
    picked = "every partial" if fed.bit is None else f"partials with bit {fed.bit}"
    return picked if len(fed.groups) == len(scan.group_by) else f"{picked}, rolled up"


def scans_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "number": scan.number,
            "stream": scan.stream,
            "where": None if scan.where is None else scan.where.sql,
            "predicates": [predicate.sql for predicate in scan.predicates],
            "group_by": [part.sql for part in scan.group_by],
            "components": [str(part.component) for part in scan.components],
            "edges_per_second": scan.edges.edges_per_second,
            "feeds": [{"set": fed.number, "bit": fed.bit, "via": fed.via} for fed in scan.feeds],
        }
        for scan in plan.scans
    ]
