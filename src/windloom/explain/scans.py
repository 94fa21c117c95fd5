"""EXPLAIN of scans: how each stream is taken in, and why; and the sets that one reading of it feeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windloom.explain.words import edge_rate, fact, measure_of, one_line, shorten, slice_id_text
from windloom.model.figures import count, share
from windloom.plan.conditions import conditions_of
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.scans import Fed, KeyedFeed, NativeScan, RolledUp, Scan, WovenScan, WovenSet

#: A scan with more predicates, columns or sets shows the first few only.
_MANY = 12


_SQL_WIDTH = 80


def scan_lines(plan: Plan, everything: bool = False) -> Iterator[str]:
    """Every scan."""
    for scan in plan.scans:
        yield ""
        yield from _lines(plan, scan, everything)


def scan_of(plan: Plan, partial_set: PartialSet) -> tuple[Scan, Fed | WovenSet] | None:
    """The scan of a set, and how it feeds the set; None if no tuple can be part of it, so that none is read for it."""
    scan = plan.scan_of(partial_set)
    if scan is None:
        return None
    feeds: tuple[Fed | WovenSet, ...] = scan.feeds
    return scan, next(fed for fed in feeds if fed.number == partial_set.number)


def fed_text(plan: Plan, partial_set: PartialSet) -> str:
    """Where a set's partials come from, in a few words."""
    found = scan_of(plan, partial_set)
    if found is None:
        return "nothing: no tuple satisfies its condition"
    scan, fed = found
    if len(scan.feeds) == 1:
        return f"scan {scan.number}, which has no other set"
    return f"scan {scan.number}, {_how(scan, fed)}"


def scan_way(scan: Scan) -> str:
    return "native" if isinstance(scan, NativeScan) else "woven"


def intake_text(scan: Scan) -> str:
    """How tuples become partials, and why."""
    if isinstance(scan, NativeScan):
        who = "Spark aggregates"
    else:
        who = f"{'Spark projects' if scan.local is None else 'the driver reads the files'}, kernels aggregate"
        if scan.rolled_up is not None:
            who += f", {_rolled_up_text(scan, scan.rolled_up)}"
    way = f"{scan_way(scan)}: {who}"
    return f"{way} ({scan.why})" if scan.why else way


def _rolled_up_text(scan: WovenScan, rolled: RolledUp) -> str:
    which = "sets are" if rolled.sets == len(scan.feeds) else f"{rolled.sets} of its sets are"
    return f"{which} rolled up from signatures, of which {rolled.signatures:,.0f} are expected"


def _keyed_text(scan: WovenScan, feed: KeyedFeed) -> str:
    """The tuples that are put in order for folds."""
    key = shorten(one_line(scan.columns[feed.key].sql), _SQL_WIDTH)
    sets = ", ".join(str(keyed_set.number) for keyed_set in feed.sets)
    which = "every tuple" if feed.bit is None else f"tuples with bit {feed.bit}"
    made = [str(keyed_set.number) for keyed_set in feed.sets if keyed_set.cells is None]
    without = f"; no cells of {'set' if len(made) == 1 else 'sets'} {', '.join(made)}" if made else ""
    return f"{which} by {key}, for folds that read {'set' if len(feed.sets) == 1 else 'sets'} {sets}{without}"


def scan_title(plan: Plan, scan: Scan) -> list[str]:
    """The details that the picture shows when the reader points at a scan."""
    lines = [_head(scan), intake_text(scan)]
    lines += [f"bit {bit}: {one_line(predicate.sql)}" for bit, predicate in enumerate(scan.signature.predicates)]
    feeds: tuple[Fed | WovenSet, ...] = scan.feeds
    return lines + [_feed(plan, scan, fed) for fed in feeds]


def scan_notes(scan: Scan) -> list[str]:
    """The three lines on its card."""
    bits = len(scan.signature.predicates)
    if isinstance(scan, NativeScan):
        made = (
            "by " + ", ".join(one_line(expression.sql) for expression in scan.group_by)
            if scan.group_by
            else "not grouped"
        )
    else:
        made = count(len(scan.columns), "column") if scan.columns else "time alone"
    fed = f"feeds {count(len(scan.feeds), 'set')}" if scan.feeds else "counts late tuples"
    return [made, f"signature of {count(bits, 'bit')}" if bits else "no signature", fed]


def _head(scan: Scan) -> str:
    what = f"for {count(len(scan.feeds), 'set')}" if scan.feeds else "to count late tuples"
    return f"Scan {scan.number}: reads {one_line(scan.stream)} once {what}"


def _lines(plan: Plan, scan: Scan, everything: bool) -> Iterator[str]:
    yield _head(scan)
    yield from fact("intake", intake_text(scan))
    signature, shares = scan.signature, _shares(plan, scan)
    if signature.where is not None:
        told = "which all of them imply" if len(scan.feeds) > 1 else "before anything else"
        yield from fact("where", f"{one_line(signature.where.sql)}, {told}")
    bits = [
        f"bit {bit}: {shorten(one_line(predicate.sql), _SQL_WIDTH)}{shares.get(bit, '')}"
        for bit, predicate in enumerate(signature.predicates)
    ]
    yield from _some("signature", bits, "more", everything)
    if isinstance(scan, WovenScan):
        columns = [shorten(one_line(column.sql), _SQL_WIDTH) for column in scan.columns]
        shown = columns if everything else columns[:_MANY]
        rest = f", and {len(columns) - len(shown):,} more" if len(shown) < len(columns) else ""
        places = ["time"] if scan.counted_by is None else ["time", "position"]
        yield from fact("projects", f"{', '.join([*places, *shown])}{rest}")
        for feed in scan.keyed:
            yield from fact("orders", _keyed_text(scan, feed))
    else:
        yield from fact("group by", ", ".join(one_line(expression.sql) for expression in scan.group_by) or "none")
        measure = measure_of(plan.sets[scan.feeds[0].number])
        yield from fact("slices", f"{edge_rate(scan.edges, measure)}; {slice_id_text(scan.slice_id, measure)}")
    if len(scan.feeds) > 1:
        feeds: tuple[Fed | WovenSet, ...] = scan.feeds
        yield from _some("feeds", [_feed(plan, scan, fed) for fed in feeds], "more sets", everything)


def _shares(plan: Plan, scan: Scan) -> dict[int, str]:
    """The share of tuples that were seen to satisfy the condition of each bit."""
    watched = () if isinstance(scan, NativeScan) else tuple(number for number, _ in scan.watched)
    number = next((set_number for set_number in (*(fed.number for fed in scan.feeds), *watched)), None)
    seen = {} if number is None else plan.sets[number].statistics.conditions
    return {
        bit: f", {share(seen[sql])} of the tuples (observed)"
        for sql, bit in conditions_of(plan, scan).items()
        if sql in seen
    }


def _some(label: str, lines: list[str], more: str, everything: bool) -> Iterator[str]:
    shown = lines if everything else lines[:_MANY]
    for line in shown:
        yield from fact(label, line)
        label = ""
    if len(shown) < len(lines):
        yield from fact("", f"… and {len(lines) - len(shown):,} {more}")


def _feed(plan: Plan, scan: Scan, fed: Fed | WovenSet) -> str:
    groups = ", ".join(one_line(expression.sql) for expression in plan.sets[fed.number].group_by) or "none"
    return f"set {fed.number} (by {groups}): {_how(scan, fed)}"


def _how(scan: Scan, fed: Fed | WovenSet) -> str:
    what = "partial" if isinstance(scan, NativeScan) else "tuple"
    picked = f"every {what}" if fed.bit is None else f"{what}s with bit {fed.bit}"
    is_coarser = isinstance(scan, NativeScan) and len(fed.groups) < len(scan.group_by)
    return f"{picked}, rolled up" if is_coarser else picked


def scans_json(plan: Plan) -> list[dict[str, Any]]:
    return [_scan_json(scan) for scan in plan.scans]


def _scan_json(scan: Scan) -> dict[str, Any]:
    signature = scan.signature
    feeds: tuple[Fed | WovenSet, ...] = scan.feeds
    about: dict[str, Any] = {
        "number": scan.number,
        "stream": scan.stream,
        "intake": scan_way(scan),
        "why": scan.why,
        "where": None if signature.where is None else signature.where.sql,
        "predicates": [predicate.sql for predicate in signature.predicates],
        "feeds": [{"set": fed.number, "bit": fed.bit} for fed in feeds],
    }
    if isinstance(scan, WovenScan):
        read_by: dict[str, Any] = {} if scan.local is None else {"read_by": "driver"}
        if scan.rolled_up is not None:
            read_by["rolled_up"] = {"sets": scan.rolled_up.sets, "signatures": scan.rolled_up.signatures}
        return {**about, **read_by, "columns": [column.sql for column in scan.columns]}
    return {
        **about,
        "group_by": [expression.sql for expression in scan.group_by],
        "components": [str(planned.component) for planned in scan.components],
        "edges_per_second": scan.edges.edges_per_second,
    }
