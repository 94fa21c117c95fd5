"""Scans: how each stream is read, and why; and the sets that one reading of it feeds."""

from __future__ import annotations

from collections.abc import Iterator

from windloom.explain.node import ExplainNode, Fact, cut_short, json_only, words_only
from windloom.explain.words import edge_rate, grouping, measure_of, one_line, shorten, slice_id_text
from windloom.model.formatting import count, share
from windloom.plan.graph import conditions_of
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import NativeFeed, NativeScan, Scan, WovenFeed, WovenScan

_SQL_WIDTH = 80
_SHOWN_COLUMNS = 12


def scan_node(plan: Plan, scan: Scan, everything: bool = True) -> ExplainNode:
    what = f"for {count(len(scan.feeds), 'set')}" if scan.feeds else "to count late tuples"
    name = f"Scan {scan.number}: reads {one_line(scan.stream)} once {what}"
    return ExplainNode(name, list(_facts(plan, scan, everything)))


def _facts(plan: Plan, scan: Scan, everything: bool) -> Iterator[Fact]:
    """Yield the facts that all scans have, and then those of native scans, or of woven ones."""
    feeds: tuple[NativeFeed | WovenFeed, ...] = scan.feeds
    where, predicates, shares = scan.signature.where, scan.signature.predicates, _shares(plan, scan)
    implied = "which all of them imply" if len(feeds) > 1 else "before anything else"
    bits = [
        f"bit {bit}: {shorten(one_line(predicate.sql), _SQL_WIDTH)}{shares.get(bit, '')}"
        for bit, predicate in enumerate(predicates)
    ]
    fed = [f"set {each.number} (by {grouping(plan.sets[each.number])}): {_picked(scan, each)}" for each in feeds]
    fed = cut_short(fed, everything, "more sets") if len(feeds) > 1 else []
    yield from json_only(number=scan.number, stream=scan.stream)
    yield Fact("intake", scan_way(scan), intake_text(scan))
    yield Fact("why", scan.why)
    yield Fact("where", where and where.sql, f"{one_line(where.sql)}, {implied}" if where else ())
    sqls = [predicate.sql for predicate in predicates]
    yield Fact("predicates", sqls, cut_short(bits, everything), label="signature")
    yield Fact("feeds", [{"set": each.number, "bit": each.bit} for each in feeds], fed, is_late=True)
    if isinstance(scan, NativeScan):
        measure = measure_of(plan.sets[scan.feeds[0].number])
        groups = [expression.sql for expression in scan.group_by]
        slices = f"{edge_rate(scan.edges, measure)}; {slice_id_text(scan.slice_id, measure)}"
        yield Fact("group_by", groups, ", ".join(map(one_line, groups)) or "none", label="group by")
        yield Fact("components", [str(planned.component) for planned in scan.components])
        yield Fact("edges_per_second", scan.edges.edges_per_second, slices, label="slices")
        return
    if scan.local is not None:
        yield Fact("read_by", "driver")
    if scan.rolled_up is not None:
        yield Fact("rolled_up", {"sets": scan.rolled_up.sets, "signatures": scan.rolled_up.signatures})
    columns = [shorten(one_line(column.sql), _SQL_WIDTH) for column in scan.columns]
    shown = columns if everything else columns[:_SHOWN_COLUMNS]
    rest = f", and {len(columns) - len(shown):,} more" if len(shown) < len(columns) else ""
    places = ["time"] if scan.counted_by is None else ["time", "position"]
    projected = f"{', '.join([*places, *shown])}{rest}"
    yield Fact("columns", [column.sql for column in scan.columns], projected, label="projects")
    for feed in scan.keyed:  # tuples that are put in order for folds
        key = shorten(one_line(scan.columns[feed.key].sql), _SQL_WIDTH)
        which = "every tuple" if feed.bit is None else f"tuples with bit {feed.bit}"
        numbers = [str(keyed_set.number) for keyed_set in feed.sets]
        without = [str(keyed_set.number) for keyed_set in feed.sets if keyed_set.cells is None]
        read, no_cells = (f"{'set' if len(each) == 1 else 'sets'} {', '.join(each)}" for each in (numbers, without))
        but = f"; no cells of {no_cells}" if without else ""
        yield words_only("orders", f"{which} by {key}, for folds that read {read}{but}")


def fed_text(plan: Plan, partial_set: PartialSet) -> str:
    """Return where a set's partials come from, in a few words."""
    scan = plan.scan_of(partial_set)
    if scan is None:
        return "nothing: no tuple satisfies its condition"
    if len(scan.feeds) == 1:
        return f"scan {scan.number}, which has no other set"
    feeds: tuple[NativeFeed | WovenFeed, ...] = scan.feeds
    return f"scan {scan.number}, {_picked(scan, next(fed for fed in feeds if fed.number == partial_set.number))}"


def scan_way(scan: Scan) -> str:
    return "native" if isinstance(scan, NativeScan) else "woven"


def intake_text(scan: Scan) -> str:
    """Return how tuples become partials, and why."""
    if isinstance(scan, NativeScan):
        who = "Spark aggregates"
    else:
        who = f"{'Spark projects' if scan.local is None else 'the driver reads the files'}, kernels aggregate"
        if (rolled := scan.rolled_up) is not None:
            which = "sets are" if rolled.sets == len(scan.feeds) else f"{rolled.sets} of its sets are"
            who += f", {which} rolled up from signatures, of which {rolled.signatures:,.0f} are expected"
    return f"{scan_way(scan)}: {who}" + (f" ({scan.why})" if scan.why else "")


def scan_notes(scan: Scan) -> list[str]:
    """Return the three lines on the scan's card in the picture."""
    bits = len(scan.signature.predicates)
    if isinstance(scan, NativeScan):
        groups = ", ".join(one_line(expression.sql) for expression in scan.group_by)
        detail = f"by {groups}" if groups else "not grouped"
    else:
        detail = count(len(scan.columns), "column") if scan.columns else "time alone"
    fed = f"feeds {count(len(scan.feeds), 'set')}" if scan.feeds else "counts late tuples"
    return [detail, f"signature of {count(bits, 'bit')}" if bits else "no signature", fed]


def _shares(plan: Plan, scan: Scan) -> dict[int, str]:
    """Return the share of tuples that were seen to satisfy the condition of each bit."""
    watched = () if isinstance(scan, NativeScan) else tuple(number for number, _ in scan.watched)
    number = next(iter((*(fed.number for fed in scan.feeds), *watched)), None)
    seen = {} if number is None else plan.sets[number].statistics.conditions
    conditions = conditions_of(plan, scan)
    return {bit: f", {share(seen[sql])} of the tuples (observed)" for sql, bit in conditions.items() if sql in seen}


def _picked(scan: Scan, fed: NativeFeed | WovenFeed) -> str:
    """Return which of a scan's tuples or partials a set takes."""
    what = "tuple" if isinstance(scan, WovenScan) else "partial"
    picked = f"every {what}" if fed.bit is None else f"{what}s with bit {fed.bit}"
    is_coarser = isinstance(scan, NativeScan) and len(fed.groups) < len(scan.group_by)
    return f"{picked}, rolled up" if is_coarser else picked
